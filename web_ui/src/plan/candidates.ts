/** Candidates of a plan: the best, the runners-up and the rest of the front, each once. */

import { figure, percent } from "../format.js";
import type { Candidate, Plan } from "./api.js";

export interface Row {
  readonly candidate: Candidate;
  /** Its role: `best`, `runner-up`, `front`, `closest`. */
  readonly role: string;
  readonly onFront: boolean;
}

export function rowsOf(plan: Plan): Row[] {
  const front = new Set(plan.front.map(keyOf));
  const rows: Row[] = [];
  const add = (role: string, candidates: readonly (Candidate | null)[]) => {
    for (const candidate of candidates) {
      if (candidate === null || rows.some((row) => keyOf(row.candidate) === keyOf(candidate))) continue;
      rows.push({ candidate, role, onFront: front.has(keyOf(candidate)) });
    }
  };
  add("best", [plan.best]);
  add("runner-up", plan.runners_up);
  add("front", plan.front);
  add("closest", [plan.closest_miss]);
  return rows;
}

/** Return a key that identifies a configuration. */
export function keyOf(candidate: Candidate): string {
  return JSON.stringify(candidate.configuration);
}

/** What a plan minimizes instead of the step time, in words. */
const AIMS: Readonly<Record<string, string>> = {
  cost: "the plan minimizes cost",
  gpus: "the plan uses the fewest GPUs",
};

/** Return why the chosen configuration is not the fastest in the picture, or that it is; empty if nothing fits. */
export function whyChosen(plan: Plan): string {
  const { best, memory_limit_gib: limit } = plan;
  if (best === null) return "";
  const faster = rowsOf(plan)
    .map(({ candidate }) => candidate)
    .filter((candidate) => candidate.step_time_s < best.step_time_s)
    .sort((one, other) => one.step_time_s - other.step_time_s);
  const gain = (candidate: Candidate) => percent(1 - candidate.step_time_s / best.step_time_s);
  const fitting = faster.find((candidate) => candidate.peak_memory_gib <= limit);
  const over = faster.find((candidate) => candidate.peak_memory_gib > limit);
  const sentences = [];
  if (fitting === undefined) sentences.push("The chosen configuration is the fastest of those that fit.");
  else {
    const because = plan.simpler_because || AIMS[plan.objective] || "the difference is within the error of predictions";
    sentences.push(
      `The chosen configuration is not the fastest: ${fitting.words} takes ${figure(fitting.step_time_s)} s, ${gain(fitting)} less, but ${because}.`,
    );
  }
  if (over !== undefined)
    sentences.push(
      `${over.words} would be ${gain(over)} faster, but needs ${over.peak_memory_gib.toFixed(1)} of ${limit.toFixed(1)} GiB.`,
    );
  return sentences.join(" ");
}
