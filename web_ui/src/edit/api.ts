/** What the editor asks the server, and what it gets. */

import type { Question, Result, Settings } from "../app/api.js";
import { posted } from "../app/api.js";
import type { TimelineData } from "../data.js";

export interface Shape {
  readonly placement: readonly (readonly number[])[];
  readonly microbatches: number;
  readonly slices: number;
}

export interface Begin {
  readonly name: string;
  readonly rows: string;
  readonly shape: Shape;
  readonly ops: number;
}

/** One thing that is wrong, with its words: line and number. */
export interface Flaw {
  readonly rule: string;
  readonly message: string;
  readonly places: readonly (readonly [number, number])[];
}

export interface Waiting {
  readonly rank: number;
  readonly op: string;
  readonly message: string;
  readonly places: readonly (readonly [number, number])[];
}

export interface Trainer {
  readonly trainer: string;
  readonly format: string;
  readonly runs: boolean;
  readonly reason: string;
}

export interface Verdict {
  readonly valid: boolean;
  readonly flaws: readonly Flaw[];
  readonly more: number;
  readonly over: readonly Flaw[];
  readonly notes: readonly string[];
  readonly shape: Shape | null;
  readonly result: Result | null;
  readonly changed: string;
  readonly stopped: {
    readonly until: number;
    readonly ran: number;
    readonly ops: number;
    readonly waiting: readonly Waiting[];
  } | null;
  readonly trainers: readonly Trainer[] | null;
  readonly timeline: TimelineData | null;
}

export interface EditQuestion {
  readonly settings: Settings;
  readonly name: string;
  readonly rows: string;
  readonly shape: Shape | null;
  readonly before: string | null;
  readonly draw: boolean;
}

export async function begin(question: Question): Promise<Begin> {
  return (await posted("/api/edit/begin", question)).json() as Promise<Begin>;
}

export async function judge(question: EditQuestion): Promise<Verdict> {
  return (await posted("/api/edit", question)).json() as Promise<Verdict>;
}

/** Settings that a text answers by itself. */
const SHAPE = new Set([
  "ranks",
  "stages",
  "microbatches",
  "chunks",
  "slices",
  "group_size",
  "variant",
  "recompute",
  "offload",
]);

/** The settings without the shape, which is the text's own. */
export function costsOf(settings: Settings): Settings {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !SHAPE.has(name)));
}
