/** What a search gained, and what it has proven, in words. */

import { percent, type Times } from "../format.js";

/** `6.3% shorter than zbv`; a gain below 0 is a loss. */
export function gainText(gain: number, than: string): string {
  const text = percent(Math.abs(gain));
  if (text === "0.0%") return `as long as ${than}`;
  return `${text} ${gain > 0 ? "shorter" : "longer"} than ${than}`;
}

interface Proven {
  readonly lower_bound: number;
  readonly bound_reason: string;
  readonly gap: number;
}

/** How far from optimal it can be, and why. */
export function provenText(
  { lower_bound: bound, bound_reason: why, gap }: Proven,
  optimal: boolean,
  times: Times,
): string {
  if (optimal) return `Proven optimal: ${why} takes as long.`;
  return `At most ${percent(gap)} above optimal: none takes less than ${times.text(bound)} (${why}).`;
}
