/** Keyboard control: movement from op to op, and the action of each key. */

import type { Frame } from "./frame.js";
import { isBeside } from "./part.js";
import { firstAbove, type Plot } from "./plot.js";
import type { BarRef } from "./search.js";
import type { Flippable } from "./toolbar.js";

export interface Commands {
  focus(ref: BarRef): void;
  select(): void;
  release(): void;
  zoomBy(factor: number): void;
  panBy(share: number): void;
  showAll(): void;
  scrollBy(pages: number): void;
  stretchBy(factor: number): void;
  /** Start or continue the movement of a pressed key; return false for a key without one. */
  fly(event: KeyboardEvent): boolean;
  /** Measure the interval of the focused op; with `grown`, extend the measured interval. */
  mark(grown: boolean): void;
  /** Zoom to the measured interval, or to the op. */
  fit(): void;
  switchWheel(): void;
  flip(name: Flippable): void;
  switchLayout(): void;
  switchTheme(): void;
  search(): void;
  step(by: number): void;
  /** Move the focused op by a number of positions; return false if the schedule cannot be edited. */
  moveBy(by: number): boolean;
  help(): void;
}

const KEYS: Record<string, (commands: Commands) => void> = {
  Enter: (commands) => commands.select(),
  " ": (commands) => commands.select(),
  Escape: (commands) => commands.release(),
  "+": (commands) => commands.zoomBy(1.5),
  "=": (commands) => commands.zoomBy(1.5),
  "-": (commands) => commands.zoomBy(1 / 1.5),
  "0": (commands) => commands.showAll(),
  PageUp: (commands) => commands.scrollBy(-0.8),
  PageDown: (commands) => commands.scrollBy(0.8),
  "[": (commands) => commands.stretchBy(1 / 1.25),
  "]": (commands) => commands.stretchBy(1.25),
  g: (commands) => commands.flip("gaps"),
  b: (commands) => commands.flip("memory"),
  m: (commands) => commands.mark(false),
  M: (commands) => commands.mark(true),
  f: (commands) => commands.fit(),
  F: (commands) => commands.fit(),
  z: (commands) => commands.switchWheel(),
  c: (commands) => commands.flip("critical"),
  v: (commands) => commands.flip("scale"),
  o: (commands) => commands.switchLayout(),
  t: (commands) => commands.switchTheme(),
  n: (commands) => commands.step(1),
  N: (commands) => commands.step(-1),
  "/": (commands) => commands.search(),
  "?": (commands) => commands.help(),
};

type Move = (frame: Frame, from: BarRef) => BarRef;

const MOVES: Record<string, Move> = {
  ArrowLeft: (frame, from) => along(frame, from, -1),
  ArrowRight: (frame, from) => along(frame, from, 1),
  ArrowUp: (frame, from) => across(frame, from, -1),
  ArrowDown: (frame, from) => across(frame, from, 1),
  Home: (frame, from) => edge(frame, from, 0),
  End: (frame, from) => edge(frame, from, -1),
};

/** Run the action of a key; return false if it has none. */
export function pressed(event: KeyboardEvent, frame: Frame, focused: BarRef | null, commands: Commands): boolean {
  if (event.ctrlKey || event.metaKey) return false;
  if (event.altKey) return altered(event.key, commands);
  if (event.shiftKey && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
    commands.panBy(event.key === "ArrowLeft" ? -0.2 : 0.2);
    return true;
  }
  if (commands.fly(event)) return true;
  const move = MOVES[event.key];
  if (move !== undefined) {
    const next = focused === null ? firstVisible(frame) : move(frame, focused);
    if (next !== null) commands.focus(next);
    return true;
  }
  const command = KEYS[event.key];
  command?.(commands);
  return command !== undefined;
}

/** Handle alt with an arrow key if ops can be moved; otherwise the browser handles it. */
function altered(key: string, commands: Commands): boolean {
  if (key !== "ArrowLeft" && key !== "ArrowRight") return false;
  return commands.moveBy(key === "ArrowLeft" ? -1 : 1);
}

/** Return the first visible op of the first lane that has one. */
function firstVisible(frame: Frame): BarRef | null {
  const [from] = frame.x.domain();
  for (const row of frame.content.rows) {
    const bar = nearest(row.plot, row.lane, from);
    if (bar >= 0) return { view: row.plot.index, bar };
  }
  return null;
}

/** Return the compute ops of a lane in the order of time, or all ops if it has no compute ops. */
function opsOf(plot: Plot, lane: number): Int32Array {
  const tracks = plot.tracks[lane];
  const compute = tracks.filter((track) => !isBeside(track.part));
  const selected = compute.length > 0 ? compute : tracks;
  if (selected.length === 1) return selected[0].items;
  return Int32Array.from(selected.flatMap((track) => [...track.items])).sort(
    (one, other) => plot.start[one] - plot.start[other] || one - other,
  );
}

function along(frame: Frame, { view, bar }: BarRef, by: number): BarRef {
  const plot = frame.plots[view];
  const ops = opsOf(plot, plot.lane[bar]);
  const at = Math.min(Math.max(ops.indexOf(bar) + by, 0), ops.length - 1);
  return { view, bar: ops[at] };
}

function edge(frame: Frame, { view, bar }: BarRef, at: number): BarRef {
  const plot = frame.plots[view];
  return { view, bar: opsOf(plot, plot.lane[bar]).at(at) ?? bar };
}

/** Return the op at the same time on the next row that has ops; after the last row of a schedule comes the next schedule. */
function across(frame: Frame, from: BarRef, by: number): BarRef {
  const { rows } = frame.content;
  const plot = frame.plots[from.view];
  const time = (plot.start[from.bar] + plot.end[from.bar]) / 2;
  let at = rows.findIndex((row) => row.plot === plot && row.lane === plot.lane[from.bar]);
  for (at += by; at >= 0 && at < rows.length; at += by) {
    const bar = nearest(rows[at].plot, rows[at].lane, time);
    if (bar >= 0) return { view: rows[at].plot.index, bar };
  }
  return from;
}

/** Return the op of a lane that runs at a time, or the nearer of its neighbours; -1 for an empty lane. */
function nearest(plot: Plot, lane: number, time: number): number {
  const ops = opsOf(plot, lane);
  const after = firstAbove(
    Float64Array.from(ops, (bar) => plot.start[bar]),
    time,
  );
  const [before, next] = [ops[after - 1] ?? -1, ops[after] ?? -1];
  if (before < 0 || next < 0) return Math.max(before, next);
  return time - plot.end[before] <= plot.start[next] - time ? before : next;
}
