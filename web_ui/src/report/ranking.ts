/** The rows of a comparison under a memory limit and in an order, and the sentence on the fastest one. */

import { Times } from "../format.js";
import { missingOf, NEEDS, needsText } from "../needs.js";
import type { ComparisonFacts, ComparisonRow } from "../records.js";
import { memoryForm } from "./memory_form.js";

export type SortKey = "schedule" | "chunks" | "makespan" | "bubble" | "peak" | "bound" | "gap";

export interface Sort {
  readonly key: SortKey;
  readonly descending: boolean;
}

export const SHORTEST_FIRST: Sort = { key: "makespan", descending: false };

export interface Ranked {
  readonly row: ComparisonRow;
  /** Index of its row, which is also that of its timeline. */
  readonly at: number;
  readonly over: boolean;
  /** Position of its group; 0 if it needs nothing beyond what is allowed. */
  readonly more: number;
  /** Gap of the makespan to the bound of its placement; null over the limit. */
  readonly gap: number | null;
}

/** Share by which a peak may exceed the limit because of rounding. */
const ROUNDING = 1e-9;

/** Times that differ by no more than this share are equal, as in the comparison's own order. */
const EQUAL = 1e-9;

/**
 * Return the rows in an order; those over the limit are below the others. The initial order is that of the comparison: group by group,
 * by what the schedules need.
 */
export function ranked(comparison: ComparisonFacts, limit: number | null, sort: Sort): Ranked[] {
  const rows = comparison.rows.map((row, at): Ranked => {
    const over = isOver(comparison, row, limit);
    const more = placeOf(missingOf(row.needs, comparison.allowed));
    return { row, at, over, more, gap: over ? null : Math.max(row.makespan / row.bound - 1, 0) };
  });
  const sign = sort.descending ? -1 : 1;
  return rows.sort(
    (one, other) =>
      (sort === SHORTEST_FIRST ? one.more - other.more : 0) ||
      Number(one.over) - Number(other.over) ||
      sign * compared(sortedBy(one, sort.key), sortedBy(other, sort.key)) ||
      one.at - other.at,
  );
}

/** Return the position of a group: fewer needs first, then in the order of the needs. */
function placeOf(missing: ComparisonRow["needs"]): number {
  return missing.reduce((place, need) => 4 * place + NEEDS.indexOf(need), missing.length);
}

function isOver({ limit: own }: ComparisonFacts, row: ComparisonRow, limit: number | null): boolean {
  if (limit === null) return false;
  return row.peak > limit * (1 + ROUNDING) || (limit === own && !row.fits);
}

function sortedBy({ row, gap }: Ranked, key: SortKey): number | string {
  if (key === "gap") return gap ?? 0;
  return row[key];
}

function compared(one: number | string, other: number | string): number {
  if (typeof one === "string" || typeof other === "string") return String(one).localeCompare(String(other), "en");
  return Math.abs(one - other) <= EQUAL * Math.max(Math.abs(one), Math.abs(other)) ? 0 : one - other;
}

/** Return the row with the least bound among the schedules that need no more than is allowed or than the first row needs. */
export function leastBound({ rows, allowed }: ComparisonFacts): ComparisonRow {
  const needs = [...allowed, ...(rows[0]?.needs ?? [])];
  const covered = rows.filter((row) => missingOf(row.needs, needs).length === 0);
  return covered.reduce((least, row) => (row.bound < least.bound ? row : least));
}

/** Return the schedules to draw initially: the fastest within the limit, and a well-known one or the second. */
export function initialSchedules(comparison: ComparisonFacts, limit: number | null): string[] {
  const rows = ranked(comparison, limit, SHORTEST_FIRST);
  const within = [...rows.filter(({ over }) => !over), ...rows.filter(({ over }) => over)];
  const names = within.map(({ row }) => row.schedule);
  const reference = names.includes(REFERENCE) && names[0] !== REFERENCE ? REFERENCE : names[1];
  return [names[0], reference].filter((name) => name !== undefined);
}

const REFERENCE = "1f1b";

/**
 * Return the sentence of a comparison under a memory limit. It is the comparison's own one, or, under a limit that the reader
 * chose, one in the same words without the bound, which holds for the comparison's limit only.
 */
export function headlineWithin(comparison: ComparisonFacts, limit: number | null): string {
  if (limit === comparison.limit) return comparison.headline;
  const { rows, unit, allowed } = comparison;
  const memory = memoryForm(comparison);
  const times = Times.of(
    rows.map(({ makespan }) => makespan),
    unit,
  );
  const within = ranked(comparison, limit, SHORTEST_FIRST).filter(({ over }) => !over);
  const best = within.find(({ more }) => more === 0)?.row;
  const faster = within
    .filter(({ row, more }) => more > 0 && (best === undefined || row.makespan < best.makespan))
    .reduce<ComparisonRow | null>((least, { row }) => (least && least.makespan <= row.makespan ? least : row), null);
  const more = faster && `; with ${needsText(faster.needs)}, ${faster.schedule} takes ${times.text(faster.makespan)}`;
  const fits = limit === null ? "" : ` that fits ${memory.text(limit)}`;
  if (best !== undefined) return `${best.schedule} is the fastest${fits}: ${times.text(best.makespan)}${more ?? ""}`;
  if (more) {
    const needs = `${allowed.length > 0 ? "at most " : ""}${needsText(allowed) || "nothing"}`;
    return `No schedule that needs ${needs} fits ${memory.text(limit ?? 0)}${more}`;
  }
  const leanest = rows.reduce((least, row) => (row.peak < least.peak ? row : least));
  return `No schedule fits ${memory.text(limit ?? 0)}: ${leanest.schedule}, which needs the least, takes ${memory.text(leanest.peak)}`;
}
