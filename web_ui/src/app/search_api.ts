/** Requests of the search panels, and the lines of their streamed responses. */

import type { FrontLine, FrontPointReply, FrontReply, SearchLine, SearchReply, SearchStatus } from "../records.js";
import { type OwnFile, post, Refusal, type Settings } from "./api.js";
import { lines } from "./lines.js";

export interface SearchOptions {
  readonly settings: Settings;
  readonly allow: readonly string[];
  readonly placement: string;
  readonly objective: string;
  readonly seconds: number;
}

export interface SearchRequest extends SearchOptions {
  /** Further choices that the search optimizes. */
  readonly decide: readonly string[];
  readonly start: readonly string[];
  readonly files: readonly OwnFile[];
}

export interface FrontRequest extends SearchOptions {
  readonly points: number;
}

export type {
  FrontPointReply as FrontPoint,
  FrontReply as Front,
  SearchStatus as SearchProgress,
} from "../records.js";

/** Result of a search, with all of its optional fields. */
export type SearchResult = Required<SearchReply>;

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

/** Identifier of the page for the server, which allows one search per page at a time; new each time the page is opened. */
const SESSION = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");

/** Run a search; aborting `signal` or leaving the page ends it. */
export async function search(request: SearchRequest, events: SearchEvents, signal: AbortSignal): Promise<SearchResult> {
  for await (const line of streamLines("/api/search", request, signal)) {
    if (line.progress !== undefined) events.progress(line.progress);
    if (line.best !== undefined) events.best(line.best);
    if (line.found !== undefined) return line.found as SearchResult;
  }
  throw ENDED;
}

/** Run a search under each of several memory limits. */
export async function front(request: FrontRequest, events: FrontEvents, signal: AbortSignal): Promise<FrontReply> {
  for await (const line of streamLines("/api/front", request, signal)) {
    if (line.progress !== undefined) events.progress(line.progress);
    if (line.point !== undefined) events.point(line.point);
    if (line.front !== undefined) return line.front;
  }
  throw ENDED;
}

const ENDED = new Refusal([{ field: "", message: "the connection ended without an answer" }]);

async function* streamLines(address: string, request: SearchOptions, signal: AbortSignal): AsyncGenerator<Line> {
  const answer = await post(address, { ...request, session: SESSION }, signal);
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
