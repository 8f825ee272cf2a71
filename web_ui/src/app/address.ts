/** State of the page in its address: the settings by name, then `schedules`, `allow`, `show` and `open`. */

import type { Field } from "./fields.js";
import type { Typed } from "./values.js";

export interface PageState {
  readonly typed: Typed;
  /** The schedules to compare; null for all of them. */
  readonly schedules: readonly string[] | null;
  /** Needs that the best schedule may have. */
  readonly allow: readonly string[];
  /** Schedules whose timelines are visible; if empty, the best one. */
  readonly visible: readonly string[];
  /** The name of the open panel; empty for none. */
  readonly open: string;
}

export const INITIAL: PageState = {
  typed: { ranks: "8", microbatches: "24", p2p_time: "0.1" },
  schedules: null,
  allow: [],
  visible: [],
  open: "",
};

/** Maximum length of an address in characters; servers and chat programs truncate longer ones. */
export const LONGEST = 8000;

/** Return the query of the page's address; `more` has the parameters of the open panel. */
export function toQuery(state: PageState, more: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams();
  for (const [name, text] of Object.entries(state.typed)) {
    if (text.trim() !== "") query.set(name, text.trim().replaceAll(", ", ","));
  }
  if (state.schedules !== null) query.set("schedules", state.schedules.join(","));
  if (state.allow.length > 0) query.set("allow", state.allow.join(","));
  if (state.visible.length > 0) query.set("show", state.visible.join(","));
  if (state.open !== "") query.set("open", state.open);
  for (const [name, text] of Object.entries(more)) query.set(name, text);
  return query.toString().replaceAll("%2C", ",");
}

/** Return the state of an address; without a query, the state of the example. */
export function fromQuery(text: string, fields: readonly Field[]): PageState {
  const query = new URLSearchParams(text);
  if (query.size === 0) return INITIAL;
  const entries = fields.map((field) => [field.name, query.get(field.name) ?? ""] as const);
  return {
    typed: Object.fromEntries(entries.filter(([, value]) => value !== "")),
    schedules: query.has("schedules") ? namesIn(query.get("schedules")) : null,
    allow: namesIn(query.get("allow")),
    visible: namesIn(query.get("show")),
    open: query.get("open") ?? "",
  };
}

function namesIn(text: string | null): string[] {
  return (text ?? "").split(",").filter((name) => name !== "");
}
