/** Time of ranks in an interval, by kind of op and by reason for idling; the sum is the interval. */

import type { Theme } from "./palette.js";
import { Part } from "./part.js";
import type { Plot, Track } from "./plot.js";
import type { Band } from "./state.js";

/** Use of time: a kind of op, an overlapped pair, a reason for idling, or time after a schedule's end. */
export interface Use {
  readonly key: string;
  readonly title: string;
  readonly idle: boolean;
}

export interface Measured {
  /** Uses with time in the interval. */
  readonly uses: readonly Use[];
  /** One row per rank: its plot, its lane, and its time for each use. */
  readonly rows: readonly { readonly plot: Plot; readonly lane: number; readonly times: readonly number[] }[];
  /** Sum over all ranks. */
  readonly totals: readonly number[];
  readonly length: number;
}

const PAIR: Use = { key: "pair", title: "overlapped pairs", idle: false };
const UNEXPLAINED: Use = { key: "idle", title: "idle", idle: true };
const AFTER: Use = { key: "after", title: "after its end", idle: true };

interface Place {
  readonly plot: Plot;
  readonly lane: number;
}

export function measured(places: readonly Place[], { from, to }: Pick<Band, "from" | "to">, theme: Theme): Measured {
  const timesByLane = places.map(({ plot, lane }) => timesOf(plot, lane, from, to));
  const order = usesInOrder(places, theme).filter(({ key }) => timesByLane.some((times) => (times.get(key) ?? 0) > 0));
  const rows = places.map((place, at) => ({ ...place, times: order.map(({ key }) => timesByLane[at].get(key) ?? 0) }));
  const totals = order.map((_, use) => rows.reduce((sum, { times }) => sum + times[use], 0));
  return { uses: order, rows, totals, length: to - from };
}

/** Return the kinds in the order of the view, then the reasons for idle time in the order of the theme. */
function usesInOrder(places: readonly Place[], theme: Theme): Use[] {
  const kinds = places[0]?.plot.view.kinds ?? [];
  const reasons = Object.entries(theme.base.reasons);
  return [
    ...kinds.map((kind) => ({ key: `kind ${kind}`, title: theme.base.kinds[kind].title, idle: false })),
    PAIR,
    ...reasons.map(([reason, { title }]) => ({ key: `idle ${reason}`, title: `idle: ${title}`, idle: true })),
    UNEXPLAINED,
    AFTER,
  ];
}

/** Return the times of one lane by the keys of their uses; messages run during compute and are not counted. */
function timesOf(plot: Plot, lane: number, from: number, to: number): Map<string, number> {
  const times = new Map<string, number>();
  const add = (key: string, time: number) => times.set(key, (times.get(key) ?? 0) + time);
  const end = Math.max(Math.min(to, plot.view.makespan), from);
  const tracks = plot.tracks[lane];
  for (const track of tracks.filter(({ part }) => part === Part.FULL)) {
    eachWithin(track, from, end, (at, time) => add(`kind ${plot.kindName(track.items[at])}`, time));
  }
  const halves = tracks.filter(({ part }) => part === Part.UPPER || part === Part.LOWER);
  if (halves.length > 0) add(PAIR.key, covered(halves, from, end));
  const busy = [...times.values()].reduce((sum, time) => sum + time, 0);
  const { gaps } = plot;
  if (gaps !== null) {
    const { reasons, reason, tracks: idle } = gaps;
    eachWithin(idle[lane], from, end, (at, time) => add(`idle ${reasons[reason[idle[lane].items[at]]]}`, time));
  }
  const explained = gaps === null ? busy : [...times.values()].reduce((sum, time) => sum + time, 0);
  if (end - from - explained > 1e-9 * plot.view.makespan) add(UNEXPLAINED.key, end - from - explained);
  if (to > end) add(AFTER.key, to - end);
  return times;
}

function eachWithin(track: Track, from: number, to: number, add: (at: number, time: number) => void): void {
  const [first, stop] = track.between(from, to);
  for (let at = first; at < stop; at++) {
    const time = Math.min(track.end[at], to) - Math.max(track.start[at], from);
    if (time > 0) add(at, time);
  }
}

/** Return the time that at least one of the tracks covers. */
function covered(tracks: readonly Track[], from: number, to: number): number {
  const spans: [number, number][] = [];
  for (const track of tracks) {
    eachWithin(track, from, to, (at) => spans.push([Math.max(track.start[at], from), Math.min(track.end[at], to)]));
  }
  spans.sort((one, other) => one[0] - other[0]);
  let [sum, reach] = [0, from];
  for (const [start, end] of spans) {
    if (end <= reach) continue;
    sum += end - Math.max(start, reach);
    reach = end;
  }
  return sum;
}
