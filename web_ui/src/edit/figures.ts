/** Results of an edited schedule, now and before. */

import type { Result } from "../app/api.js";
import { make } from "../dom.js";
import { change, memoryScale, memoryText, percent, Times } from "../format.js";

interface Row {
  readonly name: string;
  readonly title: string;
  readonly now: string;
  readonly before: string;
  readonly change: string;
  /** True if the change is an improvement; null for no change. */
  readonly better: boolean | null;
}

/** Return the table; null results show a dash. */
export function figures(now: Result | null, before: Result | null): HTMLTableElement {
  const head = ["", "now", "before", "change"].map((text) => make("th", { scope: "col" }, text));
  const rows = rowsOf(now, before).map((row) => {
    const moved = make("td", { class: row.better === null ? "" : row.better ? "better" : "worse" }, row.change);
    return make(
      "tr",
      {},
      make("th", { scope: "row", title: row.title }, row.name),
      make("td", {}, row.now),
      make("td", { class: "faint" }, row.before),
      moved,
    );
  });
  return make("table", { class: "figures" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}

function rowsOf(now: Result | null, before: Result | null): Row[] {
  return [makespan(now, before), bubble(now, before), peak(now, before), gap(now, before)];
}

const DASH = "\u2013";

function makespan(now: Result | null, before: Result | null): Row {
  const both = [now, before].filter((result) => result !== null);
  const times = Times.of([...both.map((result) => result.makespan), ...differences(now, before)], unitOf(now, before));
  const text = (result: Result | null) => (result === null ? DASH : times.text(result.makespan));
  const [by] = differences(now, before);
  const moved = by === undefined || before === null ? "" : movedBy(times.signed(by), by / before.makespan);
  return {
    name: "makespan",
    title: "time from 0 to the end of the last op",
    now: text(now),
    before: text(before),
    change: moved,
    better: betterBy(by, times.signed(by ?? 0)),
  };
}

function unitOf(now: Result | null, before: Result | null): string {
  return now?.time_unit ?? before?.time_unit ?? "";
}

function differences(now: Result | null, before: Result | null): number[] {
  return now === null || before === null ? [] : [now.makespan - before.makespan];
}

/** Return the text of a change: `+3 (+9.1%)`; `0` for no change. */
function movedBy(text: string, share: number): string {
  return /^[0.,]*$/.test(text) ? "0" : `${text} (${change(share)})`;
}

/** Return whether a decrease is an improvement; null if the displayed change is zero. */
function betterBy(by: number | undefined, text: string): boolean | null {
  return by === undefined || /^[+-]?[0.,]*%?$/.test(text) ? null : by < 0;
}

function bubble(now: Result | null, before: Result | null): Row {
  return shares("bubble", "idle time / total time", now, before, (result) => result.bubble.idle_over_total);
}

function gap(now: Result | null, before: Result | null): Row {
  return shares("gap", "makespan above the lower bound of the placement", now, before, (result) => result.gap);
}

function shares(
  name: string,
  title: string,
  now: Result | null,
  before: Result | null,
  of: (result: Result) => number | null,
): Row {
  const [one, other] = [now, before].map((result) => (result === null ? null : of(result)));
  const text = (value: number | null) => (value === null ? DASH : percent(Math.max(value, 0)));
  const by = one === null || other === null ? undefined : one - other;
  const points = by === undefined ? "" : (100 * by).toFixed(1).replace("-0.0", "0.0");
  const moved = by === undefined ? "" : points === "0.0" ? "0" : `${by > 0 ? "+" : ""}${points} points`;
  return { name, title, now: text(one), before: text(other), change: moved, better: betterBy(by, points) };
}

function peak(now: Result | null, before: Result | null): Row {
  const peaks = [now, before].map((result) =>
    result === null ? null : Math.max(...(result.peak_bytes ?? result.peak_activation)),
  );
  const inBytes = (now ?? before)?.peak_bytes != null;
  const scale = memoryScale(inBytes ? "bytes" : "activations", Math.max(...peaks.map((value) => value ?? 0)));
  const unit = scale.unit === "activations" ? "act." : scale.unit;
  const text = (value: number | null) => (value === null ? DASH : `${memoryText(value, scale)} ${unit}`);
  const [one, other] = peaks;
  const by = one === null || other === null ? undefined : one - other;
  const size = by === undefined ? "" : memoryText(Math.abs(by), scale);
  const moved = by === undefined ? "" : size === "0" ? "0" : `${by > 0 ? "+" : "-"}${size} ${unit}`;
  return {
    name: "peak memory",
    title: inBytes
      ? "peak memory of the fullest rank"
      : "peak memory of the fullest rank, in activations of one microbatch",
    now: text(one),
    before: text(other),
    change: moved,
    better: betterBy(by, moved),
  };
}
