/** Names of bars, where there is room for them. */

import { type Frame, spanOf, toPicture } from "./frame.js";
import type { Row } from "./layout.js";
import { Part } from "./part.js";
import { EDGES, type Plot, type Track } from "./plot.js";
import type { Label, Surface } from "./surface.js";

const LARGEST = 12;
const SMALLEST = 7.5;
const PADDING = 4;
/** The narrowest bar that can hold a digit. */
const NARROWEST = 8;

/** Where fewer of the bars than this have room for their numbers, none is labelled: a few would mean nothing. */
const LEAST_SHARE = 0.6;

interface Place {
  bar: number;
  x: number;
  width: number;
  y: number;
}

/**
 * Draw the labels of visible rows. The bars of a plot are named in full (`3F7`) where nine in ten of those that have room
 * for a number have room for that, and by their microbatch otherwise.
 */
export function drawLabels(surface: Surface, frame: Frame, rows: readonly Row[]): void {
  for (const plot of frame.shown) {
    const own = rows.filter((row) => row.plot === plot);
    if (own.length === 0) continue;
    for (const halves of [false, true]) drawSize(surface, frame, plot, own, halves);
  }
}

function drawSize(surface: Surface, frame: Frame, plot: Plot, rows: readonly Row[], halves: boolean): void {
  const [top, bottom] = EDGES[halves ? Part.UPPER : Part.FULL];
  const size = Math.min(LARGEST, Math.floor(1.4 * (bottom - top) * rows[0].height) / 2);
  if (size < SMALLEST) return;
  const places = rows.flatMap((row) => placesIn(frame, row, halves));
  const room = (text: string, place: Place) => surface.textWidth(text, size) + PADDING <= place.width;
  const numbered = places.filter((place) => room(plot.number(place.bar), place));
  const full = numbered.filter((place) => room(plot.name(place.bar), place));
  if (numbered.length < LEAST_SHARE * places.length) return;
  const named = full.length >= 0.9 * numbered.length;
  const ink = frame.theme.bars[plot.index].ink;
  const labels = (named ? full : numbered).map((place): Label => {
    const text = named ? plot.name(place.bar) : plot.number(place.bar);
    return { text, x: place.x, y: place.y, ink: ink[plot.code[place.bar]] };
  });
  surface.labels(
    labels.sort((one, other) => (one.ink < other.ink ? -1 : one.ink > other.ink ? 1 : 0)),
    size,
  );
}

/** The visible bars of a row that are wide enough for a digit: the middle and the width of what shows of each. */
function placesIn(frame: Frame, row: Row, halves: boolean): Place[] {
  return row.plot.tracks[row.lane].flatMap((track) => {
    const half = track.part === Part.UPPER || track.part === Part.LOWER;
    return track.part !== Part.STRIP && half === halves ? placesOn(frame, row, track) : [];
  });
}

function placesOn(frame: Frame, row: Row, track: Track): Place[] {
  const [from, to] = spanOf(frame);
  const [left, right] = frame.x.range();
  const scale = (right - left) / (to - from);
  const edges = EDGES[track.part];
  const y = toPicture(frame, row.top + ((edges[0] + edges[1]) / 2) * row.height) + 0.5;
  const [first, stop] = track.between(from, to);
  const places: Place[] = [];
  if ((stop - first) * NARROWEST > 4 * (right - left)) return places;
  for (let at = first; at < stop; at++) {
    const begin = Math.max(left, left + (track.start[at] - from) * scale);
    const width = Math.min(right, left + (track.end[at] - from) * scale) - begin;
    if (width >= NARROWEST) places.push({ bar: track.items[at], x: begin + width / 2, width, y });
  }
  return places;
}
