/** State of the page in its address: `preset` and the settings by name, then `schedules`, `allow`, `show` and `open`. */

import type { Field } from "./fields.js";
import type { Typed } from "./values.js";

export interface PageState {
  /** Name of the preset with which the form began. */
  readonly preset?: string;
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
  preset: "",
  typed: { ranks: "8", microbatches: "24", p2p_time: "0.1" },
  schedules: null,
  allow: [],
  visible: [],
  open: "",
};

/** Maximum length of an address in characters; servers and chat programs truncate longer ones. */
export const LONGEST = 8000;

/** Names of parameters beside those of the settings. */
export const PARAMETERS: readonly string[] = ["preset", "schedules", "allow", "show", "open", "rows"];

/**
 * Return the query of the page's address; `more` has the parameters of the open panel. Of a form that began with a preset,
 * whose texts are `base`, the query has the differences.
 */
export function toQuery(state: PageState, more: Readonly<Record<string, string>> = {}, base: Typed = {}): string {
  const query = new URLSearchParams();
  if (state.preset) query.set("preset", state.preset);
  for (const name of new Set([...Object.keys(state.typed), ...Object.keys(base)])) {
    const text = plain(state.typed[name]);
    if (text !== plain(base[name])) query.set(name, text);
  }
  if (state.schedules !== null) query.set("schedules", state.schedules.join(","));
  if (state.allow.length > 0) query.set("allow", state.allow.join(","));
  if (state.visible.length > 0) query.set("show", state.visible.join(","));
  if (state.open !== "") query.set("open", state.open);
  for (const [name, text] of Object.entries(more)) query.set(name, text);
  return query.toString().replaceAll("%2C", ",");
}

function plain(text = ""): string {
  return text.trim().replaceAll(", ", ",");
}

/** Return the preset of an address; empty if it has none. */
export function presetIn(text: string): string {
  return new URLSearchParams(text).get("preset") ?? "";
}

/** Return the state of an address, whose preset has the texts `base`; without a query, the state of the example. */
export function fromQuery(text: string, fields: readonly Field[], base: Typed = {}): PageState {
  const query = new URLSearchParams(text);
  if (query.size === 0) return INITIAL;
  const entries = fields.map((field) => [field.name, query.get(field.name) ?? base[field.name] ?? ""] as const);
  return {
    preset: query.get("preset") ?? "",
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
