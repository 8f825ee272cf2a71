/** View state, and its form in a link: `#from=3&to=9&op=0:3F7&layout=overlaid&gaps=1`. */

import type { ThemeName } from "./data.js";

export type Layout = "stacked" | "overlaid";
export type ThemeChoice = ThemeName | "auto";

export interface LaneRef {
  readonly view: number;
  readonly lane: number;
}

/** A measured interval of time on some ranks. */
export interface Band {
  readonly from: number;
  readonly to: number;
  /** First and last row of the interval. */
  readonly first: LaneRef;
  readonly last: LaneRef;
}

export interface State {
  /** Visible range of time; null for all. */
  readonly span: readonly [number, number] | null;
  /** Numbers of the visible views in order; null for all. */
  readonly views: readonly number[] | null;
  readonly layout: Layout;
  readonly gaps: boolean;
  readonly memory: boolean;
  readonly critical: boolean;
  /** Whether colours follow the data's scale, if it has one, instead of the kinds. */
  readonly scale: boolean;
  readonly theme: ThemeChoice;
  /** The measured interval. */
  readonly band: Band | null;
  /** Height of lanes relative to the fitting height. */
  readonly tall: number;
  readonly query: string;
  /** The selected op: its view and its notation. */
  readonly op: { readonly view: number; readonly name: string } | null;
}

export const INITIAL: State = {
  span: null,
  views: null,
  layout: "stacked",
  gaps: false,
  memory: true,
  critical: false,
  scale: true,
  theme: "auto",
  band: null,
  tall: 1,
  query: "",
  op: null,
};

/** Return the differences from the initial state, as a fragment without its `#`. */
export function toFragment(state: State): string {
  const parts = new URLSearchParams();
  if (state.span !== null) {
    parts.set("from", short(state.span[0]));
    parts.set("to", short(state.span[1]));
  }
  if (state.op !== null) parts.set("op", `${state.op.view}:${state.op.name}`);
  if (state.layout !== INITIAL.layout) parts.set("layout", state.layout);
  if (state.gaps) parts.set("gaps", "1");
  if (!state.memory) parts.set("memory", "0");
  if (state.critical) parts.set("critical", "1");
  if (!state.scale) parts.set("scale", "0");
  if (state.views !== null) parts.set("show", state.views.join(","));
  if (state.theme !== INITIAL.theme) parts.set("theme", state.theme);
  if (state.band !== null) parts.set("band", bandText(state.band));
  if (state.tall !== 1) parts.set("tall", short(state.tall));
  if (state.query !== "") parts.set("find", state.query);
  return parts.toString();
}

/** Return the state of a fragment; missing and invalid parts have their initial values. */
export function fromFragment(fragment: string): State {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  return {
    span: spanOf(parts),
    layout: parts.get("layout") === "overlaid" ? "overlaid" : "stacked",
    gaps: parts.get("gaps") === "1",
    memory: parts.get("memory") !== "0",
    critical: parts.get("critical") === "1",
    scale: parts.get("scale") !== "0",
    views: viewsOf(parts.get("show")),
    band: bandOf(parts.get("band")),
    theme: themeOf(parts.get("theme")),
    tall: Math.min(Math.max(finite(parts.get("tall")) ?? 1, 1), MOST_TALL),
    query: (parts.get("find") ?? "").slice(0, 64),
    op: opOf(parts.get("op")),
  };
}

export const MOST_TALL = 16;

function spanOf(parts: URLSearchParams): [number, number] | null {
  const from = finite(parts.get("from"));
  const to = finite(parts.get("to"));
  return from !== null && to !== null && from >= 0 && to > from ? [from, to] : null;
}

function viewsOf(text: string | null): number[] | null {
  if (text === null || !/^\d{1,4}(,\d{1,4})*$/.test(text)) return null;
  return [...new Set(text.split(",").map(Number))].sort((one, other) => one - other);
}

function themeOf(text: string | null): ThemeChoice {
  return text === "light" || text === "dark" ? text : "auto";
}

function opOf(text: string | null): State["op"] {
  const match = /^(\d{1,4}):([\w.]{1,32})$/.exec(text ?? "");
  return match === null ? null : { view: Number(match[1]), name: match[2] };
}

/** Return the text of an interval: `3~5.5~0:0~0:3`, from, to, first and last row by view and lane. */
function bandText({ from, to, first, last }: Band): string {
  const lane = (row: LaneRef) => `${row.view}:${row.lane}`;
  return [short(from), short(to), lane(first), lane(last)].join("~");
}

function bandOf(text: string | null): Band | null {
  const match = /^([^~]+)~([^~]+)~(\d{1,4}):(\d{1,5})~(\d{1,4}):(\d{1,5})$/.exec(text ?? "");
  if (match === null) return null;
  const [from, to] = [finite(match[1]), finite(match[2])];
  if (from === null || to === null || from < 0 || to <= from) return null;
  const [view, lane, lastView, lastLane] = match.slice(3).map(Number);
  return { from, to, first: { view, lane }, last: { view: lastView, lane: lastLane } };
}

function finite(text: string | null): number | null {
  const value = text === null || text === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

function short(value: number): string {
  return String(Number(value.toPrecision(9)));
}
