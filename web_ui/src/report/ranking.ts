/** The rows of a comparison under a memory limit and in an order, and the fastest schedule in words. */

import { change, Times } from "../format.js";
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

/** Return a sentence about the fastest schedule within the limit, compared with others. */
export function answer(comparison: ComparisonFacts, limit: number | null): string {
  const rows = ranked(comparison, limit, SHORTEST_FIRST);
  const memory = memoryForm(comparison);
  const times = Times.of(
    rows.map(({ row }) => row.makespan),
    comparison.unit,
  );
  const within = rows.filter(({ over }) => !over);
  if (within.length === 0) {
    const leanest = rows.reduce((least, entry) => (entry.row.peak < least.row.peak ? entry : least)).row;
    return `No schedule fits ${memory.text(limit ?? 0)}: the leanest, ${leanest.schedule}, needs ${memory.text(leanest.peak)}.`;
  }
  const [{ row: first, more }] = within;
  const inLimit = limit === null ? "" : ` within ${memory.text(limit)}`;
  const grouped = rows.some((entry) => entry.more !== more);
  const needs = more > 0 ? `, and needs ${needsText(first.needs)}` : grouped ? ofThose(comparison.allowed) : "";
  const what = `${first.schedule} is the fastest${inLimit}${needs}`;
  const sentence = `${what}: ${times.text(first.makespan)} with ${memory.text(first.peak)}${against(first, rows)}.`;
  const faster = withMore(first, within).map(
    (row) => `${row.schedule}, ${times.text(row.makespan)}, needs ${needsText(row.needs)}`,
  );
  return faster.length > 0 ? `${sentence} Faster with more: ${faster.join("; ")}.` : sentence;
}

function ofThose(allowed: ComparisonFacts["allowed"]): string {
  return ` of those that need ${allowed.length > 0 ? `at most ${needsText(allowed)}` : "nothing"}`;
}

/** Return the fastest schedule of each group that needs more than the first one, if it is faster. */
function withMore(first: ComparisonRow, within: readonly Ranked[]): ComparisonRow[] {
  const best = new Map<string, ComparisonRow>();
  for (const { row, more } of within) {
    const key = row.needs.join();
    if (more > 0 && row.makespan < first.makespan && !best.has(key)) best.set(key, row);
  }
  return [...best.values()].sort((one, other) => one.makespan - other.makespan);
}

/** Return `, 18.6% faster than 1f1b, 10.6% slower than zbv, which does not fit`. */
function against(first: ComparisonRow, rows: readonly Ranked[]): string {
  const reference = rows.find(({ row }) => row.schedule === REFERENCE);
  const alike = rows.filter(({ row }) => missingOf(row.needs, first.needs).length === 0);
  const shortest = alike.reduce((least, entry) => (entry.row.makespan < least.row.makespan ? entry : least));
  const others = [...new Set([reference, shortest])].filter((entry) => entry !== undefined && entry.row !== first);
  const over = others.filter((entry) => entry?.over);
  const parts = others.flatMap((entry) => (entry === undefined ? [] : [lengthAgainst(first, entry.row)]));
  if (over.length > 0) parts.push(over.length > 1 ? "neither of which fits" : "which does not fit");
  return parts.map((text) => `, ${text}`).join("");
}

function lengthAgainst(one: ComparisonRow, other: ComparisonRow): string {
  const text = change(one.makespan / other.makespan - 1);
  if (text === "0.0%") return `as fast as ${other.schedule}`;
  return `${text.slice(1)} ${text.startsWith("-") ? "faster" : "slower"} than ${other.schedule}`;
}
