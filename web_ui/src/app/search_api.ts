/** What the panels that search ask the server, and the lines that it answers with. */

import { type Fault, type OwnFile, posted, Refusal, type Settings } from "./api.js";
import { lines } from "./lines.js";

export interface Asked {
  readonly settings: Settings;
  readonly placement: string;
  readonly objective: string;
  readonly seconds: number;
}

export interface SearchAsked extends Asked {
  /** What is decided beside what every search decides. */
  readonly decide: readonly string[];
  readonly start: readonly string[];
  readonly files: readonly OwnFile[];
}

export interface FrontAsked extends Asked {
  readonly points: number;
}

export interface SearchProgress {
  /** How much of the budget is spent, from 0 to 1. */
  readonly share: number;
  readonly value: number;
  readonly bound: number;
  readonly found_by: string;
  readonly evaluations: number;
  readonly seconds: number;
  readonly published: { readonly name: string; readonly value: number } | null;
}

/** The result of a search, as far as the page needs it. */
export interface Found {
  readonly time_unit: string;
  readonly found_by: string;
  readonly optimal: boolean;
  readonly seconds: number;
  readonly evaluations: number;
  readonly objective: {
    readonly name: string;
    readonly value: number;
    readonly lower_bound: number;
    readonly bound_reason: string;
    readonly gap: number;
  };
  /** What was gained over published schedules, a sentence each. */
  readonly said: readonly string[];
}

export interface FrontPoint {
  /** In bytes or activations; null without a limit. */
  readonly limit: number | null;
  readonly peak: number;
  readonly value: number;
  /** The schedule, as pipeplan's JSON. */
  readonly text: string;
}

export interface Front {
  readonly memory: "bytes" | "activations";
  readonly time_unit: string;
  readonly points: readonly FrontPoint[];
  /** What was gained over published schedules. */
  readonly said: string;
  readonly published: readonly { readonly schedule: string; readonly peak: number; readonly value: number }[];
}

export interface SearchEvents {
  progress(progress: SearchProgress): void;
  /** The best schedule so far, as pipeplan's JSON. */
  best(text: string): void;
}

export interface FrontEvents {
  progress(progress: SearchProgress): void;
  point(point: FrontPoint): void;
}

interface Line {
  readonly progress?: SearchProgress;
  readonly best?: string;
  readonly point?: FrontPoint;
  readonly found?: Found;
  readonly front?: Front;
  readonly errors?: readonly Fault[];
}

/** The page's own name for the server, which lets a page search once at a time; a new one each time it is opened. */
const SESSION = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");

/** Search; `signal` ends it, as does leaving the page. */
export async function search(asked: SearchAsked, events: SearchEvents, signal: AbortSignal): Promise<Found> {
  for await (const line of told("/api/search", asked, signal)) {
    if (line.progress !== undefined) events.progress(line.progress);
    if (line.best !== undefined) events.best(line.best);
    if (line.found !== undefined) return line.found;
  }
  throw ENDED;
}

/** Search under several limits. */
export async function front(asked: FrontAsked, events: FrontEvents, signal: AbortSignal): Promise<Front> {
  for await (const line of told("/api/front", asked, signal)) {
    if (line.progress !== undefined) events.progress(line.progress);
    if (line.point !== undefined) events.point(line.point);
    if (line.front !== undefined) return line.front;
  }
  throw ENDED;
}

const ENDED = new Refusal([{ field: "", message: "the server ended without an answer" }]);

async function* told(address: string, asked: Asked, signal: AbortSignal): AsyncGenerator<Line> {
  const answer = await posted(address, { ...asked, session: SESSION }, signal);
  try {
    for await (const text of lines(answer)) {
      const line = JSON.parse(text) as Line;
      if (line.errors !== undefined) throw new Refusal(line.errors);
      yield line;
    }
  } catch (error) {
    // Where the connection breaks, browsers say no more than "network error".
    throw error instanceof Refusal || signal.aborted ? error : ENDED;
  }
}
