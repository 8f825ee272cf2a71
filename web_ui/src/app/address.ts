/** State of the page in its address: the settings by name, then `schedules`, `show` and `open`. */

import type { Field } from "./fields.js";
import type { Typed } from "./values.js";

export interface PageState {
  readonly typed: Typed;
  /** The schedules to compare; null for all of them. */
  readonly schedules: readonly string[] | null;
  /** What the best schedule may need. */
  readonly allow: readonly string[];
  /** Schedules whose timelines are visible; if empty, the best one. */
  readonly shown: readonly string[];
  /** The name of the open panel; empty for none. */
  readonly open: string;
}

export const INITIAL: PageState = {
  typed: { ranks: "8", microbatches: "24", p2p_time: "0.1" },
  schedules: null,
  allow: [],
  shown: [],
  open: "",
};

/** Servers and chats cut addresses that are longer. */
export const LONGEST = 8000;

/** The query of a page's address; `more` is what the open panel adds. */
export function toQuery(state: PageState, more: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams();
  for (const [name, text] of Object.entries(state.typed)) {
    if (text.trim() !== "") query.set(name, text.trim().replaceAll(", ", ","));
  }
  if (state.schedules !== null) query.set("schedules", state.schedules.join(","));
  if (state.allow.length > 0) query.set("allow", state.allow.join(","));
  if (state.shown.length > 0) query.set("show", state.shown.join(","));
  if (state.open !== "") query.set("open", state.open);
  for (const [name, text] of Object.entries(more)) query.set(name, text);
  return query.toString().replaceAll("%2C", ",");
}

/** The state of an address; a page without a query begins with an example. */
export function fromQuery(text: string, fields: readonly Field[]): PageState {
  const query = new URLSearchParams(text);
  if (query.size === 0) return INITIAL;
  const said = fields.map((field) => [field.name, query.get(field.name) ?? ""] as const);
  return {
    typed: Object.fromEntries(said.filter(([, value]) => value !== "")),
    schedules: query.has("schedules") ? namesIn(query.get("schedules")) : null,
    allow: namesIn(query.get("allow")),
    shown: namesIn(query.get("show")),
    open: query.get("open") ?? "",
  };
}

function namesIn(text: string | null): string[] {
  return (text ?? "").split(",").filter((name) => name !== "");
}
