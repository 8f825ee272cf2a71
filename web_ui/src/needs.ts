/** What schedules need of the model and the trainer beyond a plain pipeline (model/needs.py). */

export type Need = "slices" | "copies" | "recompute";

export const NEED_WORDS: Readonly<Record<Need, string>> = {
  slices: "sequence slices",
  copies: "two copies of the model",
  recompute: "recomputation",
};

export const NEEDS = Object.keys(NEED_WORDS) as readonly Need[];

export function needsText(needs: readonly Need[]): string {
  return needs.map((need) => NEED_WORDS[need]).join(" and ");
}

/** The needs that are not allowed. */
export function missingOf(needs: readonly Need[], allowed: readonly Need[]): readonly Need[] {
  return needs.filter((need) => !allowed.includes(need));
}
