/** Requests of the page of plans and their answers. */

import { answered, type OwnFile, posted, Refusal, type Settings } from "../app/api.js";
import { lines } from "../app/lines.js";
import type { ChosenReply, Plan, PlanFormOut, PlanLine, PlannedConfiguration, PlanStatus } from "../records.js";

export type {
  ChosenReply as Chosen,
  ErrorBar,
  FlagsRecord as Flags,
  Plan,
  PlanFormOut as PlanFields,
  PlanStatus as PlanProgress,
  ShareOut as Share,
} from "../records.js";

/** A configuration of a plan; one that is not the best has lost for a reason. */
export type Candidate = PlannedConfiguration & { readonly lost_because?: string };

export async function planSettings(): Promise<PlanFormOut> {
  return (await answered("/api/plan/settings", {})).json() as Promise<PlanFormOut>;
}

/** The plan; `tell` hears how far it is, and `signal` ends it. */
export async function plan(
  settings: Settings,
  model: OwnFile | null,
  tell: (progress: PlanStatus) => void,
  signal: AbortSignal,
): Promise<Plan> {
  const answer = await posted("/api/plan", { settings, model_file: model }, signal);
  for await (const text of lines(answer)) {
    const line = JSON.parse(text) as PlanLine;
    if (line.errors !== undefined) throw new Refusal(line.errors);
    if (line.progress !== undefined) tell(line.progress);
    if (line.plan !== undefined) return line.plan;
  }
  throw new Refusal([{ field: "", message: "the connection ended without an answer" }]);
}

/** A configuration's flags and timeline. */
export async function chosen(candidate: Candidate, signal: AbortSignal): Promise<ChosenReply> {
  return (await posted("/api/plan/chosen", { document: candidate.document }, signal)).json() as Promise<ChosenReply>;
}
