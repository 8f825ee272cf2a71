/** Requests of the planning page and their responses. */

import { type OwnFile, post, Refusal, type Settings, send } from "../app/api.js";
import { lines } from "../app/lines.js";
import type { ChosenReply, Plan, PlanFormOut, PlanLine, PlannedConfiguration, PlanStatus } from "../records.js";

export type {
  ChosenReply as CandidateDetails,
  ErrorBar,
  FlagsRecord as Flags,
  Plan,
  PlanFormOut as PlanFields,
  PlanStatus as PlanProgress,
  ShareOut as Share,
} from "../records.js";

/** A configuration of a plan; all but the best have a reason why they lost. */
export type Candidate = PlannedConfiguration & { readonly lost_because?: string };

export async function planSettings(): Promise<PlanFormOut> {
  return (await send("/api/plan/settings", {})).json() as Promise<PlanFormOut>;
}

/** Request a plan; `onProgress` receives its progress, and aborting `signal` ends it. */
export async function plan(
  settings: Settings,
  model: OwnFile | null,
  onProgress: (progress: PlanStatus) => void,
  signal: AbortSignal,
): Promise<Plan> {
  const answer = await post("/api/plan", { settings, model_file: model }, signal);
  for await (const text of lines(answer)) {
    const line = JSON.parse(text) as PlanLine;
    if (line.errors !== undefined) throw new Refusal(line.errors);
    if (line.progress !== undefined) onProgress(line.progress);
    if (line.plan !== undefined) return line.plan;
  }
  throw new Refusal([{ field: "", message: "the connection ended without an answer" }]);
}

/** Fetch a configuration's flags and timeline. */
export async function detailsOf(candidate: Candidate, signal: AbortSignal): Promise<ChosenReply> {
  return (await post("/api/plan/chosen", { document: candidate.document }, signal)).json() as Promise<ChosenReply>;
}
