/** Pareto front of memory and makespan, and room for the names of its schedules. */

import type { ComparisonRow } from "../records.js";

/** Rows that no other row with as little memory beats, by memory; of equals the first. */
export function front(rows: readonly ComparisonRow[]): ComparisonRow[] {
  const byMemory = [...rows].sort((one, other) => one.peak - other.peak || one.makespan - other.makespan);
  const found: ComparisonRow[] = [];
  for (const row of byMemory) {
    const last = found.at(-1);
    if (last === undefined || row.makespan < last.makespan) found.push(row);
  }
  return found;
}

export interface Label {
  readonly text: string;
  /** Its right end and its base line. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

const LINE = 13;

/** Maximum distance of a label below its place. */
const NUDGES = [0, 7, 14, 21];

/**
 * The labels that find room right of `left` and above `bottom`, over no other and none of the `taken`; those that stand
 * lowest choose first.
 */
export function freeLabels(labels: readonly Label[], taken: readonly Label[], left: number, bottom: number): Label[] {
  const placed: Label[] = [];
  for (const label of [...labels].sort((one, other) => other.y - one.y)) {
    const tries = NUDGES.map((by) => ({ ...label, y: label.y + by })).filter(({ y }) => y <= bottom - 3);
    const free = tries.find((each) => ![...placed, ...taken].some((other) => overlap(other, each)));
    if (free !== undefined && free.x - free.width >= left) placed.push(free);
  }
  return placed;
}

function overlap(one: Label, other: Label): boolean {
  const beside = one.x < other.x - other.width || other.x < one.x - one.width;
  return !beside && Math.abs(one.y - other.y) < LINE;
}
