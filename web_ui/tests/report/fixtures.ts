/** A small comparison, in the format of Python. */

import type { ComparisonFacts, ComparisonRow } from "../../src/records.js";

const GIB = 1024 ** 3;

export function row(schedule: string, makespan: number, gib: number, more: Partial<ComparisonRow> = {}): ComparisonRow {
  return {
    schedule,
    placement: "linear",
    needs: [],
    chunks: 1,
    makespan,
    bubble: 1 - 80 / makespan,
    peak: gib * GIB,
    fullest: 0,
    fits: true,
    bound: 90,
    bound_reason: "the work of rank 0",
    from_costs: false,
    ...more,
  };
}

export function comparison(rows: readonly ComparisonRow[], more: Partial<ComparisonFacts> = {}): ComparisonFacts {
  return {
    headline: "1f1b is the fastest: 100 ms, 11.1% above the bound",
    ranks: 4,
    microbatches: 8,
    unit: "ms",
    memory_unit: "bytes",
    limit: null,
    costs: {
      forward: 10,
      backward: 20,
      backward_input: 12,
      backward_weight: 8,
      even: true,
      transfer: 0.5,
      activation: 2.5 * GIB,
    },
    allowed: [],
    covers: "schedules without slices",
    rows,
    refused: [],
    notes: [],
    ...more,
  };
}

export const SMALL = comparison([
  row("zbv", 100, 28, { placement: "v", chunks: 2, bound: 95 }),
  row("v-half", 110, 17, { placement: "v", chunks: 2, bound: 95 }),
  row("1f1b", 125, 28),
  row("v-min", 130, 14, { placement: "v", chunks: 2, bound: 95 }),
]);

export const gib = (value: number): number => value * GIB;
