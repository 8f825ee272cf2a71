/** What the page of plans asks the server, and what it gets. */

import { answered, type Fault, type OwnFile, posted, Refusal, type Settings } from "../app/api.js";
import type { FormFields } from "../app/fields.js";
import { lines } from "../app/lines.js";
import type { TimelineData } from "../data.js";

/** A part of a bar, with its colour on light and on dark pages. */
export interface Share {
  readonly key: string;
  readonly title: string;
  readonly light: string;
  readonly dark: string;
}

/** What the form is made of, and what time is spent on and memory held by. */
export interface PlanFields extends FormFields {
  readonly time: readonly Share[];
  readonly memory: readonly Share[];
}

export interface ErrorBar {
  readonly low: number;
  readonly high: number;
  readonly step_time_s: readonly [number, number];
  readonly runs: readonly string[];
}

/** One configuration and what is predicted of it; times are seconds, memory is GiB. */
export interface Candidate {
  readonly words: string;
  readonly layout: string;
  readonly recompute: string;
  readonly document: Readonly<Record<string, unknown>>;
  readonly configuration: Readonly<Record<string, unknown>>;
  readonly step_time_s: number;
  readonly peak_memory_gib: number;
  readonly breakdown: Readonly<Record<string, number>>;
  readonly memory_breakdown_by_rank_gib: readonly Readonly<Record<string, number>>[];
  readonly tokens_per_s: number;
  readonly mfu: number;
  readonly error_bar: ErrorBar | null;
  readonly costs_from: Readonly<Record<string, string>>;
  readonly assumed: readonly string[];
  readonly lost_because?: string;
}

export interface Sensitivity {
  readonly input: string;
  readonly factor: number;
  readonly step_time: number;
  readonly changes: boolean;
  readonly instead: string;
}

export interface SearchedOrder {
  readonly words: string;
  readonly step_time_s: number;
  readonly instead_of_s: number;
  readonly found_by: string;
}

export interface Plan {
  readonly heading: string;
  readonly miss: string;
  readonly objective: string;
  readonly memory_limit_gib: number;
  readonly best: Candidate | null;
  readonly runners_up: readonly Candidate[];
  readonly front: readonly Candidate[];
  readonly closest_miss: Candidate | null;
  /** A better order of ops than every published one, for one of the configurations. */
  readonly searched: SearchedOrder | null;
  readonly sensitivity: readonly Sensitivity[];
  readonly counts: {
    readonly legal: number;
    readonly over_memory: number;
    readonly too_slow: number;
    readonly estimated: number;
  };
  readonly seconds: number;
  readonly complete: boolean;
}

export interface Flags {
  readonly text: string;
  readonly files: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
}

export interface Chosen {
  readonly estimate: { readonly flags: Readonly<Record<string, Flags>>; readonly error_bar: ErrorBar | null };
  readonly timeline: TimelineData | null;
  /** Of all ranks, as a share of all their time. */
  readonly idle: number;
  /** What compares schedules on its costs. */
  readonly compare: { readonly settings: Settings; readonly schedule: string };
}

export interface PlanProgress {
  readonly share: number;
  readonly said: string;
  readonly best_s?: number | null;
}

interface Line {
  readonly progress?: PlanProgress;
  readonly plan?: Plan;
  readonly errors?: readonly Fault[];
}

export async function planSettings(): Promise<PlanFields> {
  return (await answered("/api/plan/settings", {})).json() as Promise<PlanFields>;
}

/** The plan; `tell` hears how far it is, and `signal` ends it. */
export async function plan(
  settings: Settings,
  model: OwnFile | null,
  tell: (progress: PlanProgress) => void,
  signal: AbortSignal,
): Promise<Plan> {
  const answer = await posted("/api/plan", { settings, model_file: model }, signal);
  for await (const text of lines(answer)) {
    const line = JSON.parse(text) as Line;
    if (line.errors !== undefined) throw new Refusal(line.errors);
    if (line.progress !== undefined) tell(line.progress);
    if (line.plan !== undefined) return line.plan;
  }
  throw new Refusal([{ field: "", message: "the server ended without an answer" }]);
}

/** A configuration's flags and timeline. */
export async function chosen(candidate: Candidate, signal: AbortSignal): Promise<Chosen> {
  return (await posted("/api/plan/chosen", { document: candidate.document }, signal)).json() as Promise<Chosen>;
}
