/** Bars of times on one scale, which begins at the bound: near the bound, small differences are visible. */

import type { Comparison } from "./api.js";

export interface BarScale {
  /** Time at which bars begin. */
  readonly start: number;
  readonly end: number;
  /** Whether the start is the bound of the headline; else it is the least bound of all schedules. */
  readonly common: boolean;
}

/** Return the scale for makespans of a comparison. Bounds hold within the memory limit, so schedules over it have no bar. */
export function barScale({ results: all, least_bound: least }: Pick<Comparison, "results" | "least_bound">): BarScale {
  const results = all.filter(({ over }) => over === null);
  const times = results.map(({ makespan }) => makespan);
  const end = Math.max(...times, 0);
  const common = times.every((time) => time >= least.value);
  return { start: common ? least.value : Math.min(...results.map((result) => result.lower_bound)), end, common };
}

/** Return the length of a time's bar as a share of the longest one, 0 to 1. */
export function barShare(time: number, { start, end }: BarScale): number {
  return end > start ? Math.min(Math.max((time - start) / (end - start), 0), 1) : 0;
}
