/** Labels of bars that are wide enough. */

import { type Frame, spanOf, toPicture } from "./frame.js";
import type { Row } from "./layout.js";
import { edgesOf } from "./pairs.js";
import { isBeside, Part } from "./part.js";
import type { Plot, Track } from "./plot.js";
import type { Label, Surface } from "./surface.js";

const LARGEST = 12;
const SMALLEST = 7.5;
const PADDING = 4;
/** Minimum width of a bar with a digit. */
const NARROWEST = 8;

/** Font size down to which labels shrink to fit. */
const SMALLER = 9.5;

/** Minimum share of a kind's bars with room for their numbers: below it, no bar is labelled, because a few labels would mislead. */
const LEAST_SHARE = 0.9;

interface Place {
  bar: number;
  x: number;
  width: number;
  y: number;
}

/**
 * Draw the labels of visible rows. The bars of a plot have full names (`3F7`) if nearly all have room for them, and
 * their microbatches otherwise, in smaller characters if necessary; kinds whose bars are too narrow have no labels.
 */
export function drawLabels(surface: Surface, frame: Frame, rows: readonly Row[]): void {
  for (const plot of frame.visible) {
    const own = rows.filter((row) => row.plot === plot);
    if (own.length === 0) continue;
    for (const halves of [false, true]) drawSize(surface, frame, plot, own, halves);
  }
}

function drawSize(surface: Surface, frame: Frame, plot: Plot, rows: readonly Row[], halves: boolean): void {
  const [top, bottom] = edgesOf(frame, rows[0], halves ? Part.UPPER : Part.FULL);
  const size = Math.min(LARGEST, Math.floor(1.4 * (bottom - top) * rows[0].height) / 2);
  if (size < SMALLEST) return;
  const places = rows.flatMap((row) => placesIn(frame, row, halves));
  const choice = chooseLabels(surface, plot, places, size);
  const ink = frame.theme.bars[plot.index].ink;
  const labels = choice.places.map(
    (place): Label => ({ text: choice.text(place), x: place.x, y: place.y, ink: ink[plot.code[place.bar]] }),
  );
  surface.labels(
    labels.sort((one, other) => (one.ink < other.ink ? -1 : one.ink > other.ink ? 1 : 0)),
    choice.size,
  );
}

interface LabelChoice {
  readonly places: readonly Place[];
  readonly size: number;
  text(place: Place): string;
}

function chooseLabels(surface: Surface, plot: Plot, places: readonly Place[], size: number): LabelChoice {
  const number = (place: Place) => plot.number(place.bar);
  const name = (place: Place) => plot.name(place.bar);
  const fitting = (text: (place: Place) => string, at: number) =>
    places.filter((place) => surface.textWidth(text(place), at) + PADDING <= place.width);
  const enough = (some: readonly Place[]) => some.length >= LEAST_SHARE * places.length;
  const named = fitting(name, size);
  if (enough(named)) return { places: named, size, text: name };
  for (let at = size; at >= Math.min(SMALLER, size); at -= 0.5) {
    const numbered = fitting(number, at);
    if (enough(numbered)) return { places: numbered, size: at, text: number };
  }
  return { places: wholeKinds(plot, places, fitting(number, size)), size, text: number };
}

/** Return the labels that fit, of the kinds of which nearly all fit. */
function wholeKinds(plot: Plot, places: readonly Place[], fitting: readonly Place[]): readonly Place[] {
  const count = (some: readonly Place[]) => {
    const counts = new Map<number, number>();
    for (const { bar } of some) counts.set(plot.kind[bar], (counts.get(plot.kind[bar]) ?? 0) + 1);
    return counts;
  };
  const [all, fit] = [count(places), count(fitting)];
  const whole = (kind: number) => (fit.get(kind) ?? 0) >= LEAST_SHARE * (all.get(kind) ?? 0);
  return fitting.filter(({ bar }) => whole(plot.kind[bar]));
}

/** Return the visible bars of a row that are wide enough for a digit: the middle and the width of each visible part. */
function placesIn(frame: Frame, row: Row, halves: boolean): Place[] {
  return row.plot.tracks[row.lane].flatMap((track) => {
    const half = track.part === Part.UPPER || track.part === Part.LOWER;
    return !isBeside(track.part) && half === halves ? placesOn(frame, row, track) : [];
  });
}

function placesOn(frame: Frame, row: Row, track: Track): Place[] {
  const [from, to] = spanOf(frame);
  const [left, right] = frame.x.range();
  const scale = (right - left) / (to - from);
  const edges = edgesOf(frame, row, track.part);
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
