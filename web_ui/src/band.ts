/** An interval of time on some ranks, to be measured: dragged with shift, or set from an op. */

import type { Frame } from "./frame.js";
import { spanOf, toPicture } from "./frame.js";
import type { Drag, Point } from "./grabs.js";
import { AXIS, type Content, type Row } from "./layout.js";
import type { Band, LaneRef } from "./state.js";

/** Distance in pixels within which an edge snaps to the start or the end of an op. */
const SNAP = 6;
/** Distance in pixels within which an edge can be grabbed again. */
const GRIP = 5;

/** Return the rows of a band from top to bottom; none if they are not visible. */
export function rowsOf({ rows }: Content, { first, last }: Band): readonly Row[] {
  const [one, other] = [indexOf(rows, first), indexOf(rows, last)];
  return one < 0 || other < 0 ? [] : rows.slice(Math.min(one, other), Math.max(one, other) + 1);
}

function indexOf(rows: readonly Row[], { view, lane }: LaneRef): number {
  return rows.findIndex((row) => row.plot.index === view && row.lane === lane);
}

/** Position of a band in the picture; null if its rows are not visible. */
export function boxOfBand(frame: Frame, band: Band): { x: number; y: number; width: number; height: number } | null {
  const rows = rowsOf(frame.content, band);
  if (rows.length === 0) return null;
  const tops = rows.map((row) => toPicture(frame, row.top));
  const y = Math.min(...tops);
  const bottom = Math.max(...rows.map((row, at) => tops[at] + row.height));
  return { x: frame.x(band.from), y, width: frame.x(band.to) - frame.x(band.from), height: bottom - y };
}

export interface BandHandlers {
  frame(): Frame;
  /** Called during the drag; null if it is cancelled. */
  show(band: Band | null): void;
  done(band: Band): void;
}

/** Drags one edge and one row of a band; the other edge and row stay in place. */
export class BandDrag implements Drag {
  private band: Band | null = null;

  /** If `lane` is null, the rows are those of `original`. */
  constructor(
    private readonly anchor: number,
    private readonly lane: LaneRef | null,
    private readonly handlers: BandHandlers,
    private readonly original: Band | null = null,
  ) {}

  move(point: Point): void {
    const frame = this.handlers.frame();
    const row = nearestRow(frame, point.y);
    if (row === null) return;
    const time = snapped(frame, row, point.x);
    const [from, to] = [Math.min(this.anchor, time), Math.max(this.anchor, time)];
    const here = { view: row.plot.index, lane: row.lane };
    const rows =
      this.lane === null && this.original !== null ? this.original : { first: this.lane ?? here, last: here };
    this.band = { from, to, first: rows.first, last: rows.last };
    this.handlers.show(this.band);
  }

  drop(): void {
    const { band } = this;
    this.handlers.show(null);
    if (band !== null && band.to > band.from) this.handlers.done(band);
  }

  cancel(): void {
    this.handlers.show(null);
  }
}

/** Return a drag that begins a band at a point. */
export function newBand(frame: Frame, point: Point, handlers: BandHandlers): Drag | null {
  const row = nearestRow(frame, point.y);
  if (row === null || point.x < frame.left) return null;
  return new BandDrag(snapped(frame, row, point.x), { view: row.plot.index, lane: row.lane }, handlers);
}

/** Return a drag of the edge of a band under a point, or null. */
export function edgeOf(frame: Frame, band: Band | null, point: Point, handlers: BandHandlers): Drag | null {
  if (band === null || !nearEdge(frame, band, point)) return null;
  const left = Math.abs(point.x - frame.x(band.from)) < Math.abs(point.x - frame.x(band.to));
  return new BandDrag(left ? band.to : band.from, null, handlers, band);
}

export function nearEdge(frame: Frame, band: Band | null, { x, y }: Point): boolean {
  const box = band === null ? null : boxOfBand(frame, band);
  if (box === null || y < Math.max(box.y, AXIS) || y > box.y + box.height) return false;
  return Math.min(Math.abs(x - box.x), Math.abs(x - box.x - box.width)) <= GRIP;
}

/** Return the row at a height, or the nearest one. */
function nearestRow(frame: Frame, y: number): Row | null {
  let best: Row | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const row of frame.content.rows) {
    const top = toPicture(frame, row.top);
    const away = Math.max(top - y, y - top - row.height, 0);
    if (away < least) [best, least] = [row, away];
  }
  return best;
}

/** Return the time at a pixel, snapped to the start or the end of a near op of the row. */
function snapped(frame: Frame, { plot, lane }: Row, x: number): number {
  const [from, to] = spanOf(frame);
  const time = Math.min(Math.max(frame.x.invert(x), from), to);
  const reach = frame.x.invert(x + SNAP) - frame.x.invert(x);
  let [best, least] = [time, reach];
  for (const track of plot.tracks[lane]) {
    const [first, stop] = track.between(time - reach, time + reach);
    if (stop - first > 50) continue; // too fine to aim at
    for (let at = first; at < stop; at++) {
      for (const edge of [track.start[at], track.end[at]]) {
        if (Math.abs(edge - time) < least) [best, least] = [edge, Math.abs(edge - time)];
      }
    }
  }
  return best;
}
