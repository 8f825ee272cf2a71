/**
 * Lanes whose bars are finer than pixels: columns a few pixels wide, each divided from top to bottom by the share of time
 * of each colour. Colours are never blended, so that the legend names every visible colour.
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
  /** Width of its columns, if it does not follow from its bars. */
  readonly column?: number;
}

/** Maximum number of bars per pixel of the screen that are drawn individually. */
const FINE = 0.3;
/** Approximate number of bars of a column, so that equal work has equal columns; and the limits of its width. */
const BARS = 12;
const WIDTHS = [6, 14] as const;

/** Return whether a track has more bars in a window than can be distinguished. */
export function tooFine(track: Track, window: TimeWindow, ratio: number): boolean {
  return barsAPixel(track, window) > FINE * ratio;
}

function barsAPixel(track: Track, window: TimeWindow): number {
  const [first, stop] = track.between(window.from, window.from + window.width / window.scale);
  return (stop - first) / Math.max(window.width, 1);
}

/** Return the width of a mix's columns in CSS pixels. */
export function columnOf(mix: Mix, window: TimeWindow): number {
  if (mix.column !== undefined) return mix.column;
  const bars = mix.parts.reduce((sum, { track, below }) => sum + (below ? 0 : barsAPixel(track, window)), 0);
  return Math.min(Math.max(Math.round(BARS / Math.max(bars, 1e-9)), WIDTHS[0]), WIDTHS[1]);
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
  const column = columnOf(mix, window);
  const byColour = new Map<string, Share & { code: number }>();
  for (const part of mix.parts) addPart(byColour, part, window, column);
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
