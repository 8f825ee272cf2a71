/**
 * Moving ops by hand: what a page that edits schedules gets from the timeline, and what it decides.
 *
 * While a timeline has an `Editing`, a drag that begins on an op (by touch: on the selected op) moves a ghost of it, with a
 * mark where it would go; alt with left or right moves the focused op one place. The timeline changes nothing itself:
 * whoever edits gets a `Move`, and hands over other data, or does not.
 */

import type { Plot } from "./plot.js";

/** An op of a timeline, by the place that it has in its rank's order. */
export interface PlacedOp {
  readonly view: number;
  /** The op in the notation: `3F7`. */
  readonly name: string;
  readonly rank: number;
  /** Its place among all the ops of the rank, messages included, from 0. */
  readonly index: number;
  /** Its place among the ops of the whole view. */
  readonly bar: number;
}

export interface Move {
  readonly op: PlacedOp;
  /** The place it would have among the rank's ops once it is taken out and put in again; never its own. */
  readonly to: number;
}

export interface Editing {
  /** Return whether an op can be moved; by default every op can. */
  canGrab?(op: PlacedOp): boolean;
  /** While an op hangs over a place: why it may not go there, or null. */
  refuses?(move: Move): string | null;
  /** An op was dropped at another place, or moved there by keys. */
  moved(move: Move): void;
}

/** The dragged op, its target, and why it cannot go there. */
export interface Ghost {
  readonly op: PlacedOp;
  /** From the op's own start to where it hangs, in time. */
  readonly shift: number;
  readonly to: number;
  readonly refused: string | null;
}

/** The ops of a rank in its order: bars are in the order of the schedule. */
export function opsOfRank(plot: Plot, rank: number): number[] {
  const ops: number[] = [];
  for (let bar = 0; bar < plot.bars; bar++) if (plot.lane[bar] === rank) ops.push(bar);
  return ops;
}

export function placedOp(plot: Plot, bar: number): PlacedOp {
  const rank = plot.lane[bar];
  return { view: plot.index, name: plot.name(bar), rank, index: opsOfRank(plot, rank).indexOf(bar), bar };
}

/** The place that an op would take if it were dropped at a time: after every other op whose middle lies before it. */
export function placeAt(plot: Plot, { bar, rank }: PlacedOp, time: number): number {
  const others = opsOfRank(plot, rank).filter((op) => op !== bar);
  return others.filter((op) => (plot.start[op] + plot.end[op]) / 2 < time).length;
}

/** The time of the mark between two ops: before the op that it would go before. */
export function markAt(plot: Plot, { op, to }: Pick<Ghost, "op" | "to">): number {
  const others = opsOfRank(plot, op.rank).filter((other) => other !== op.bar);
  if (others.length === 0) return plot.start[op.bar];
  return to < others.length ? plot.start[others[to]] : plot.end[others[others.length - 1]];
}

/** The move by this many places, or null at the ends. */
export function step(plot: Plot, bar: number, by: number): Move | null {
  const op = placedOp(plot, bar);
  const to = op.index + by;
  return to < 0 || to >= opsOfRank(plot, op.rank).length ? null : { op, to };
}
