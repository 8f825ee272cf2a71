/** State of a comparison's page in its address, in addition to the state of its timeline. */

import type { Sort, SortKey } from "./ranking.js";
import { SHORTEST_FIRST } from "./ranking.js";

export interface ReportState {
  /** Schedules with a timeline; null for the initial ones. */
  readonly drawn: readonly string[] | null;
  /** Memory limit in the unit of the comparison; undefined for the comparison's own limit, null for none. */
  readonly limit: number | null | undefined;
  readonly sort: Sort;
}

export const INITIAL: ReportState = { drawn: null, limit: undefined, sort: SHORTEST_FIRST };

const KEYS: readonly SortKey[] = ["schedule", "chunks", "makespan", "bubble", "peak", "bound", "gap"];

/** Return the differences from the initial state, as parts of a fragment. */
export function toParts({ drawn, limit, sort }: ReportState): URLSearchParams {
  const parts = new URLSearchParams();
  if (drawn !== null) parts.set("draw", drawn.join(","));
  if (limit !== undefined) parts.set("limit", limit === null ? "none" : String(limit));
  if (sort.key !== SHORTEST_FIRST.key || sort.descending) parts.set("sort", `${sort.descending ? "-" : ""}${sort.key}`);
  return parts;
}

/** Return the state of a fragment; missing and invalid parts have their initial values. */
export function fromFragment(fragment: string): ReportState {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const show = parts.get("draw");
  return { drawn: show === null ? null : show.split(",").filter(Boolean), limit: limitOf(parts), sort: sortOf(parts) };
}

function limitOf(parts: URLSearchParams): number | null | undefined {
  const text = parts.get("limit");
  if (text === "none") return null;
  const value = text === null || text === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}

function sortOf(parts: URLSearchParams): Sort {
  const text = parts.get("sort") ?? "";
  const key = KEYS.find((candidate) => candidate === text.replace(/^-/, ""));
  return key === undefined ? SHORTEST_FIRST : { key, descending: text.startsWith("-") };
}
