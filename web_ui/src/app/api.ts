/** What the page asks the server, and what it gets. */

import type { TimelineData } from "../data.js";
import type { FormFields } from "./fields.js";

export type Value = number | string | boolean | readonly (number | string)[];
export type Settings = Readonly<Record<string, Value>>;

export interface OwnFile {
  readonly name: string;
  readonly text: string;
}

export interface Question {
  readonly settings: Settings;
  readonly schedules: readonly string[];
  readonly files: readonly OwnFile[];
}

export interface Fault {
  readonly field: string;
  readonly message: string;
}

export interface Schedule {
  readonly name: string;
  readonly title: string;
  readonly placement: string;
  readonly chunks: number;
  readonly takes_chunks: boolean;
  readonly accepts: string;
  readonly bubble: string;
  readonly memory: string;
  readonly paper: string;
}

/** A file format: whether it is `written` and `read`, and whether a file of it holds `several` schedules. */
export interface Format {
  readonly name: string;
  readonly title: string;
  readonly ending: string;
  readonly written: boolean;
  readonly read: boolean;
  readonly several: boolean;
}

export interface Result {
  readonly schedule: string;
  readonly ranks: number;
  readonly chunks: number;
  readonly microbatches: number;
  readonly makespan: number;
  readonly bubble: { readonly idle_over_total: number; readonly over_ideal: number; readonly span: number };
  readonly peak_activation: readonly number[];
  readonly peak_bytes: readonly number[] | null;
  readonly lower_bound: number;
  readonly bound_reason: string;
  readonly gap: number | null;
  /** How far it is above the least bound of all placements here; null over the memory limit. */
  readonly least_gap?: number | null;
  readonly fits: boolean;
  /** The rank that is furthest over its memory limit, what it holds and what it may; null where all are within theirs. */
  readonly over: {
    readonly rank: number;
    readonly peak: number;
    readonly limit: number;
    readonly unit: "bytes" | "activations";
  } | null;
  readonly ops: number;
  readonly time_unit: string;
}

export interface Comparison {
  readonly results: readonly Result[];
  readonly refused: readonly (Fault & { readonly schedule: string })[];
  readonly warnings: readonly string[];
  readonly least_bound: {
    readonly value: number;
    readonly reason: string;
    readonly placement: string;
    readonly chunks: number;
    readonly slices: number;
    /** Whether it holds for schedules that recompute the same stages alone. */
    readonly recomputing: boolean;
  };
  readonly drawn: readonly string[];
  readonly undrawn: readonly string[];
  readonly timeline: TimelineData | null;
}

export interface Explanation {
  readonly schedule: string;
  readonly makespan: number;
  readonly time_unit: string;
  readonly idle: {
    readonly reasons: readonly { readonly key: string; readonly title: string }[];
    readonly by_rank: readonly (readonly number[])[];
  };
  readonly critical_path: {
    readonly ops: number;
    readonly by_kind: readonly { readonly kind: string; readonly title: string; readonly time: number }[];
    readonly transfer: number;
    readonly overhead: number;
    readonly by_stage: readonly number[];
  };
  /** The whole in a sentence, then one for each rank that says most. */
  readonly sentences: readonly string[];
  /** What to do next; empty where nothing could be tried. */
  readonly advice: string;
  readonly per_microbatch: number;
  readonly peak: { readonly value: number; readonly unit: "bytes" | "activations" };
  /** The best first. */
  readonly what_ifs: readonly Change[];
}

export interface Change {
  readonly change: string;
  readonly kind: string;
  readonly makespan: number;
  readonly per_microbatch: number;
  readonly peak_activation: number;
  readonly peak_bytes: number | null;
  readonly helps: boolean;
}

export interface Config {
  readonly settings: Settings;
  readonly schedules: readonly string[];
  readonly notes: readonly string[];
}

/** Costs that come with pipeplan. */
export interface Preset {
  readonly name: string;
  readonly origin: "measured" | "planned";
  readonly about: string;
}

/** A request that was refused, or not answered at all: then its only fault has no field. */
export class Refusal extends Error {
  constructor(readonly faults: readonly Fault[]) {
    super(faults.map((fault) => fault.message).join("; "));
  }
}

/** What the form is made of: every setting that has a field. */
export async function settings(): Promise<FormFields> {
  return (await answered("/api/settings", {})).json() as Promise<FormFields>;
}

export async function schedules(): Promise<readonly Schedule[]> {
  return (await answered("/api/schedules", {})).json() as Promise<readonly Schedule[]>;
}

export async function formats(): Promise<readonly Format[]> {
  return (await answered("/api/formats", {})).json() as Promise<readonly Format[]>;
}

export async function presets(): Promise<readonly Preset[]> {
  return (await answered("/api/presets", {})).json() as Promise<readonly Preset[]>;
}

export async function preset(name: string): Promise<Config> {
  return (await answered(`/api/presets/${encodeURIComponent(name)}`, {})).json() as Promise<Config>;
}

export async function compare(
  question: Question,
  draw: readonly string[] | null,
  signal: AbortSignal,
): Promise<Comparison> {
  const asked = { ...question, draw, reasons: true };
  return (await posted("/api/compare", asked, signal)).json() as Promise<Comparison>;
}

export async function explain(question: Question): Promise<Explanation> {
  return (await posted("/api/explain", question)).json() as Promise<Explanation>;
}

export async function config(file: File): Promise<Config> {
  const address = `/api/config?name=${encodeURIComponent(file.name.slice(-80))}`;
  return (await answered(address, { method: "POST", body: file })).json() as Promise<Config>;
}

/** A file made by the server, with the name that it gave it. */
export async function download(question: Question, format: string): Promise<{ blob: Blob; name: string }> {
  const answer = await posted("/api/download", { ...question, format });
  const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1];
  return { blob: await answer.blob(), name: name ?? `schedule.${format}` };
}

export function posted(address: string, body: unknown, signal: AbortSignal | null = null): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return answered(address, { method: "POST", headers, body: JSON.stringify(body), signal });
}

export async function answered(address: string, request: RequestInit): Promise<Response> {
  const answer = await fetch(address, request).catch(() => null);
  if (answer === null) throw new Refusal([{ field: "", message: "The server does not answer. Is it still running?" }]);
  if (answer.ok) return answer;
  const said = (await answer.json().catch(() => null)) as { errors?: readonly Fault[] } | null;
  throw new Refusal(said?.errors ?? [{ field: "", message: `the server answered ${answer.status}` }]);
}
