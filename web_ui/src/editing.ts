/**
 * Moving ops by hand: the interface between a timeline and a page that edits its schedule.
 *
 * While a timeline has an `Editing`, a drag that begins on an op (by touch: on the selected op) moves a ghost of it, with a
 * mark at its new position; alt with left or right moves the focused op by one position. The timeline itself changes nothing:
 * the page receives a `Move`, and updates the data or ignores it.
 */

import type { Plot } from "./plot.js";

/** An op of a timeline, identified by its position in its rank's order. */
export interface PlacedOp {
  readonly view: number;
  /** The op in the notation: `3F7`. */
  readonly name: string;
  readonly rank: number;
  /** Its position among all ops of the rank, messages included, from 0. */
  readonly index: number;
  /** Its position among the ops of the whole view. */
  readonly bar: number;
}

export interface Move {
  readonly op: PlacedOp;
  /** Its new position among the rank's ops, after removal and insertion; never the old one. */
  readonly to: number;
}

export interface Editing {
  /** Return whether an op can be moved; by default every op can. */
  canGrab?(op: PlacedOp): boolean;
  /** Return why a move is not allowed, or null; called during a drag. */
  refuses?(move: Move): string | null;
  /** Called after an op is dropped at another position, or moved there by keys. */
  moved(move: Move): void;
}

/** The dragged op, its target, and why it cannot go there. */
export interface Ghost {
  readonly op: PlacedOp;
  /** Distance from the op's start to the ghost's start, in time. */
  readonly shift: number;
  readonly to: number;
  readonly refused: string | null;
}

/** Return the ops of a rank in its order: bars are in the order of the schedule. */
export function opsOfRank(plot: Plot, rank: number): number[] {
  const ops: number[] = [];
  for (let bar = 0; bar < plot.bars; bar++) if (plot.lane[bar] === rank) ops.push(bar);
  return ops;
}

export function placedOp(plot: Plot, bar: number): PlacedOp {
  const rank = plot.lane[bar];
  return { view: plot.index, name: plot.name(bar), rank, index: opsOfRank(plot, rank).indexOf(bar), bar };
}

/** Return the position of an op that is dropped at a time: after every other op whose middle lies before it. */
export function placeAt(plot: Plot, { bar, rank }: PlacedOp, time: number): number {
  const others = opsOfRank(plot, rank).filter((op) => op !== bar);
  return others.filter((op) => (plot.start[op] + plot.end[op]) / 2 < time).length;
}

/** Return the time of the insertion mark: the start of the op that would follow. */
export function markAt(plot: Plot, { op, to }: Pick<Ghost, "op" | "to">): number {
  const others = opsOfRank(plot, op.rank).filter((other) => other !== op.bar);
  if (others.length === 0) return plot.start[op.bar];
  return to < others.length ? plot.start[others[to]] : plot.end[others[others.length - 1]];
}

/** Return the move by a number of positions, or null at the ends. */
export function step(plot: Plot, bar: number, by: number): Move | null {
  const op = placedOp(plot, bar);
  const to = op.index + by;
  return to < 0 || to >= opsOfRank(plot, op.rank).length ? null : { op, to };
}
