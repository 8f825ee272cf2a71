/** Requests of the page and their answers. */

import type {
  BundledCosts,
  CompareReply,
  ConfigReply,
  Explanation,
  Fault,
  FormatEntry,
  Settings,
  StrategyRecord,
} from "../records.js";
import type { FormFields } from "./fields.js";

export type {
  BundledCosts as Preset,
  CompareReply as Comparison,
  ConfigReply as Config,
  Explanation,
  Fault,
  FormatEntry as Format,
  Remedy as Change,
  Result,
  Settings,
  StrategyRecord as Schedule,
  Value,
} from "../records.js";

export interface OwnFile {
  readonly name: string;
  readonly text: string;
}

export interface Question {
  readonly settings: Settings;
  readonly allow: readonly string[];
  readonly schedules: readonly string[];
  readonly files: readonly OwnFile[];
}

/** A request that was refused, or not answered at all: then its only fault has no field. */
export class Refusal extends Error {
  constructor(readonly faults: readonly Fault[]) {
    super(faults.map((fault) => fault.message).join("; "));
  }
}

/** All fields of the form. */
export async function settings(): Promise<FormFields> {
  return (await answered("/api/settings", {})).json() as Promise<FormFields>;
}

export async function schedules(): Promise<readonly StrategyRecord[]> {
  return (await answered("/api/schedules", {})).json() as Promise<readonly StrategyRecord[]>;
}

export async function formats(): Promise<readonly FormatEntry[]> {
  return (await answered("/api/formats", {})).json() as Promise<readonly FormatEntry[]>;
}

export async function presets(): Promise<readonly BundledCosts[]> {
  return (await answered("/api/presets", {})).json() as Promise<readonly BundledCosts[]>;
}

export async function preset(name: string): Promise<ConfigReply> {
  return (await answered(`/api/presets/${encodeURIComponent(name)}`, {})).json() as Promise<ConfigReply>;
}

export async function compare(
  question: Question,
  draw: readonly string[] | null,
  signal: AbortSignal,
): Promise<CompareReply> {
  const asked = { ...question, draw, reasons: true };
  return (await posted("/api/compare", asked, signal)).json() as Promise<CompareReply>;
}

export async function explain(question: Question): Promise<Explanation> {
  return (await posted("/api/explain", question)).json() as Promise<Explanation>;
}

export async function config(file: File): Promise<ConfigReply> {
  const address = `/api/config?name=${encodeURIComponent(file.name.slice(-80))}`;
  return (await answered(address, { method: "POST", body: file })).json() as Promise<ConfigReply>;
}

/** The settings that a schedule determines: its shape. */
export async function shape(file: OwnFile): Promise<ConfigReply> {
  return (await posted("/api/shape", file)).json() as Promise<ConfigReply>;
}

/** A file made by the server, its name, and what the user must know of it. */
export interface Download {
  readonly blob: Blob;
  readonly name: string;
  readonly warnings: readonly string[];
}

export async function download(question: Question, format: string): Promise<Download> {
  const answer = await posted("/api/download", { ...question, format });
  const name = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1];
  const warnings = JSON.parse(decodeURIComponent(answer.headers.get("pipeplan-warnings") ?? "[]")) as string[];
  return { blob: await answer.blob(), name: name ?? `schedule.${format}`, warnings };
}

export function posted(address: string, body: unknown, signal: AbortSignal | null = null): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return answered(address, { method: "POST", headers, body: JSON.stringify(body), signal });
}

export async function answered(address: string, request: RequestInit): Promise<Response> {
  const answer = await fetch(address, request).catch(() => null);
  if (answer === null) throw new Refusal([{ field: "", message: "The server does not respond. Is it still running?" }]);
  if (answer.ok) return answer;
  const said = (await answer.json().catch(() => null)) as { errors?: readonly Fault[] } | null;
  throw new Refusal(said?.errors ?? [{ field: "", message: `server error ${answer.status}` }]);
}
