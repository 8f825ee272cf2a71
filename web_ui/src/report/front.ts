/** Pareto front of memory and makespan, and the placement of the names of its schedules. */

import type { ComparisonRow } from "../records.js";

/** Return the rows on the Pareto front of memory and makespan, by memory; of equal rows the first. */
export function front(rows: readonly ComparisonRow[]): ComparisonRow[] {
  const byMemory = [...rows].sort((one, other) => one.peak - other.peak || one.makespan - other.makespan);
  const members: ComparisonRow[] = [];
  for (const row of byMemory) {
    const last = members.at(-1);
    if (last === undefined || row.makespan < last.makespan) members.push(row);
  }
  return members;
}

export interface Label {
  readonly text: string;
  /** Right end of the label, and its baseline. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

const LINE = 13;

/** Distances below its preferred position at which a label is tried. */
const NUDGES = [0, 7, 14, 21];

/**
 * Return the labels that fit right of `left` and above `bottom` without overlaps with each other and `occupied`. The
 * lowest labels are placed first.
 */
export function freeLabels(
  labels: readonly Label[],
  occupied: readonly Label[],
  left: number,
  bottom: number,
): Label[] {
  const placed: Label[] = [];
  for (const label of [...labels].sort((one, other) => other.y - one.y)) {
    const tries = NUDGES.map((by) => ({ ...label, y: label.y + by })).filter(({ y }) => y <= bottom - 3);
    const free = tries.find((place) => ![...placed, ...occupied].some((other) => overlap(other, place)));
    if (free !== undefined && free.x - free.width >= left) placed.push(free);
  }
  return placed;
}

function overlap(one: Label, other: Label): boolean {
  const beside = one.x < other.x - other.width || other.x < one.x - one.width;
  return !beside && Math.abs(one.y - other.y) < LINE;
}
