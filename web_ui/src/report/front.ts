/** Which schedules none beats in both memory and makespan, and where their names have room. */

import type { Row } from "./contract.js";

/** Those that no other is shorter than within their memory, by memory; of equals the first. */
export function front(rows: readonly Row[]): Row[] {
  const byMemory = [...rows].sort((one, other) => one.peak - other.peak || one.makespan - other.makespan);
  const found: Row[] = [];
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

/** The labels that lie right of `left` and above `bottom` and over no other, those that stand lowest first. */
export function freeLabels(labels: readonly Label[], left: number, bottom: number): Label[] {
  const placed: Label[] = [];
  for (const label of [...labels].reverse()) {
    const y = Math.min(label.y, bottom - 3);
    const moved = { ...label, y, x: Math.max(label.x, left + label.width) };
    if (!placed.some((other) => overlap(other, moved))) placed.push(moved);
  }
  return placed;
}

function overlap(one: Label, other: Label): boolean {
  const beside = one.x < other.x - other.width || other.x < one.x - one.width;
  return !beside && Math.abs(one.y - other.y) < LINE;
}
