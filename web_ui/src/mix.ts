/**
 * Lanes whose bars are finer than pixels: columns a few pixels wide, each divided from top to bottom by the share of time
 * of each colour. Colours are never blended, so that the legend names every visible colour. The lanes and the overview
 * below them have the same columns. A column of a lane is narrower than a few ops, so its shares are the mean of the
 * columns around it; the mean ends at idle time, so that the ends of idle time are as sharp as the columns.
 */

import type { Palette } from "./palette.js";
import type { Track } from "./plot.js";

/** Mapping from times to pixels: `x = left + (time - from) * scale`, visible from `left` to `left + width`. */
export interface TimeWindow {
  readonly from: number;
  readonly scale: number;
  readonly left: number;
  readonly width: number;
}

export interface MixPart {
  readonly track: Track;
  readonly palette: Palette;
  /** Share of the height that its time occupies. */
  readonly weight: number;
  /** Idle time is at the bottom. */
  readonly below: boolean;
}

/** Tracks that are drawn as one strip of shares. */
export interface Mix {
  readonly parts: readonly MixPart[];
  readonly top: number;
  readonly height: number;
}

/** Maximum number of bars per pixel of the screen that are drawn individually. */
const FINE = 0.3;
/** Width of a column in CSS pixels. */
export const COLUMN = 3;
/** Approximate number of bars of a mean, so that equal work has equal columns; and the maximum width of a mean. */
const BARS = 30;
const WIDEST = 15;
/** Share of work below which a column is idle time. */
const IDLE = 0.02;

/** Return whether a track has more bars in a window than can be distinguished. */
export function tooFine(track: Track, window: TimeWindow, ratio: number): boolean {
  return barsAPixel(track, window) > FINE * ratio;
}

function barsAPixel(track: Track, window: TimeWindow): number {
  const [first, stop] = track.between(window.from, window.from + window.width / window.scale);
  return (stop - first) / Math.max(window.width, 1);
}

/** Return the number of columns on either side of a column that its shares are the mean of. */
function reachOf(mix: Mix, window: TimeWindow): number {
  const bars = mix.parts.reduce((sum, { track, below }) => sum + (below ? 0 : barsAPixel(track, window)), 0);
  return Math.round((Math.min(BARS / Math.max(bars, 1e-9), WIDEST) / COLUMN - 1) / 2);
}

/** Share of a colour in each column. */
export interface Share {
  readonly fill: string;
  readonly rgb: readonly [number, number, number];
  readonly below: boolean;
  readonly shares: Float32Array;
}

/** Return the shares of each colour of a mix in a window, in the order of their codes, idle time last. */
export function sharesOf(mix: Mix, window: TimeWindow): Share[] {
  const byColour = new Map<string, Share & { code: number }>();
  for (const part of mix.parts) addPart(byColour, part, window, COLUMN);
  average([...byColour.values()], reachOf(mix, window));
  return [...byColour.values()].sort((one, other) => Number(one.below) - Number(other.below) || one.code - other.code);
}

function addPart(
  byColour: Map<string, Share & { code: number }>,
  part: MixPart,
  window: TimeWindow,
  width: number,
): void {
  const columns = Math.max(1, Math.ceil(window.width / width));
  const { start, end, code } = part.track;
  const scale = window.scale / width;
  const [first, stop] = part.track.between(window.from, window.from + window.width / window.scale);
  const own: (Float32Array | undefined)[] = [];
  for (let at = first; at < stop; at++) {
    const shares = own[code[at]] ?? shareOf(byColour, part, code[at], columns).shares;
    own[code[at]] = shares;
    const from = Math.max((start[at] - window.from) * scale, 0);
    const to = Math.min((end[at] - window.from) * scale, columns);
    for (let column = Math.floor(from); column < to; column++) {
      shares[column] += part.weight * (Math.min(column + 1, to) - Math.max(column, from));
    }
  }
}

/** Replace each share by its mean over the columns within `reach` that belong to the same stretch of work. */
function average(shares: readonly Share[], reach: number): void {
  const columns = shares[0]?.shares.length ?? 0;
  if (reach < 1) return;
  const works = Array.from({ length: columns }, (_, column) => {
    return shares.reduce((sum, share) => sum + (share.below ? 0 : share.shares[column]), 0) > IDLE;
  });
  const sums = shares.map((share) => cumulated(share.shares));
  for (let first = 0; first < columns; first++) {
    if (!works[first]) continue;
    let stop = first;
    while (stop < columns && works[stop]) stop += 1;
    // The ends of a stretch are partly idle: they stay as they are, and belong to no mean.
    const [begin, end] = [first > 0 ? first + 1 : 0, stop < columns ? stop - 1 : stop];
    const size = Math.min(2 * reach + 1, end - begin);
    for (let column = begin; column < end; column++) {
      const from = Math.min(Math.max(column - reach, begin), end - size);
      shares.forEach((share, at) => {
        share.shares[column] = (sums[at][from + size] - sums[at][from]) / size;
      });
    }
    first = stop;
  }
}

function cumulated(values: Float32Array): Float64Array {
  const sums = new Float64Array(values.length + 1);
  for (let at = 0; at < values.length; at++) sums[at + 1] = sums[at] + values[at];
  return sums;
}

function shareOf(byColour: Map<string, Share & { code: number }>, part: MixPart, code: number, columns: number): Share {
  const fill = part.palette.fill[code];
  const key = `${part.below} ${fill}`;
  let share = byColour.get(key);
  if (share === undefined) {
    const { rgb } = part.palette;
    const colour = [rgb[3 * code], rgb[3 * code + 1], rgb[3 * code + 2]] as const;
    share = { fill, rgb: colour, below: part.below, shares: new Float32Array(columns), code };
    byColour.set(key, share);
  }
  return share;
}

/** Call `rect(share, column, top, bottom)` for each colour of a column from top to bottom, both ends between 0 and 1. */
export function eachBox(
  shares: readonly Share[],
  rect: (share: Share, column: number, top: number, bottom: number) => void,
) {
  const columns = shares[0]?.shares.length ?? 0;
  for (let column = 0; column < columns; column++) {
    let top = 0;
    for (const share of shares) {
      const size = share.shares[column];
      if (share.below || size <= 0) continue;
      rect(share, column, top, Math.min(top + size, 1));
      top += size;
    }
    let bottom = 1;
    for (let at = shares.length - 1; at >= 0 && shares[at].below; at--) {
      const size = shares[at].shares[column];
      if (size <= 0) continue;
      rect(shares[at], column, Math.max(bottom - size, Math.min(top, 1)), bottom);
      bottom -= size;
    }
  }
}
