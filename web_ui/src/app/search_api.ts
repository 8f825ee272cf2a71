/** Requests of the search panels, and the lines of their answers. */

import type { FrontLine, FrontPointReply, FrontReply, SearchLine, SearchReply, SearchStatus } from "../records.js";
import { type OwnFile, posted, Refusal, type Settings } from "./api.js";
import { lines } from "./lines.js";

export interface Asked {
  readonly settings: Settings;
  readonly allow: readonly string[];
  readonly placement: string;
  readonly objective: string;
  readonly seconds: number;
}

export interface SearchAsked extends Asked {
  /** Further choices that the search optimizes. */
  readonly decide: readonly string[];
  readonly start: readonly string[];
  readonly files: readonly OwnFile[];
}

export interface FrontAsked extends Asked {
  readonly points: number;
}

export type {
  FrontPointReply as FrontPoint,
  FrontReply as Front,
  SearchStatus as SearchProgress,
} from "../records.js";

/** Result of a search, with all of its optional fields. */
export type Found = Required<SearchReply>;

export interface SearchEvents {
  progress(progress: SearchStatus): void;
  /** The best schedule so far, as pipeplan's JSON. */
  best(text: string): void;
}

export interface FrontEvents {
  progress(progress: SearchStatus): void;
  point(point: FrontPointReply): void;
}

type Line = SearchLine & FrontLine;

/** The page's own name for the server, which lets a page search once at a time; a new one each time it is opened. */
const SESSION = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");

/** Search; `signal` ends it, as does leaving the page. */
export async function search(asked: SearchAsked, events: SearchEvents, signal: AbortSignal): Promise<Found> {
  for await (const line of told("/api/search", asked, signal)) {
    if (line.progress !== undefined) events.progress(line.progress);
    if (line.best !== undefined) events.best(line.best);
    if (line.found !== undefined) return line.found as Found;
  }
  throw ENDED;
}

/** Search under several limits. */
export async function front(asked: FrontAsked, events: FrontEvents, signal: AbortSignal): Promise<FrontReply> {
  for await (const line of told("/api/front", asked, signal)) {
    if (line.progress !== undefined) events.progress(line.progress);
    if (line.point !== undefined) events.point(line.point);
    if (line.front !== undefined) return line.front;
  }
  throw ENDED;
}

const ENDED = new Refusal([{ field: "", message: "the connection ended without an answer" }]);

async function* told(address: string, asked: Asked, signal: AbortSignal): AsyncGenerator<Line> {
  const answer = await posted(address, { ...asked, session: SESSION }, signal);
  try {
    for await (const text of lines(answer)) {
      const line = JSON.parse(text) as Line;
      if (line.errors !== undefined) throw new Refusal(line.errors);
      yield line;
    }
  } catch (error) {
    // If the connection breaks, browsers report only "network error".
    throw error instanceof Refusal || signal.aborted ? error : ENDED;
  }
}
