/** Candidates of a plan: the best, the runners-up and the rest of the front, each once. */

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
