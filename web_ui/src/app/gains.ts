/** Gain and proven bound of a search, in words. */

import { percent, type Times } from "../format.js";

/** `6.3% faster than zbv`; a gain below 0 is a loss. */
export function gainText(gain: number, than: string): string {
  const text = percent(Math.abs(gain));
  if (text === "0.0%") return `as fast as ${than}`;
  return `${text} ${gain > 0 ? "faster" : "slower"} than ${than}`;
}

interface Proven {
  readonly lower_bound: number;
  readonly bound_reason: string;
  readonly gap: number;
}

/** Maximum distance from the optimum, and its reason. */
export function provenText(
  { lower_bound: bound, bound_reason: why, gap }: Proven,
  optimal: boolean,
  times: Times,
): string {
  if (optimal) return `Proven optimal: equals the lower bound (${why}).`;
  return `At most ${percent(gap)} above optimal: the lower bound is ${times.text(bound)} (${why}).`;
}
