/** Requirements of schedules on the model and the trainer, beyond those of a plain pipeline. */

import { type ComparisonRow, NEED_WORDS } from "./records.js";

export type Need = ComparisonRow["needs"][number];

export const NEEDS = Object.keys(NEED_WORDS) as readonly Need[];

export function needsText(needs: readonly Need[]): string {
  return needs.map((need) => NEED_WORDS[need]).join(" and ");
}

/** Return the needs that are not allowed. */
export function missingOf(needs: readonly Need[], allowed: readonly Need[]): readonly Need[] {
  return needs.filter((need) => !allowed.includes(need));
}
