/** Drawing surface: a canvas for the screen and for PNG, or SVG. */

import type { Mix, TimeWindow } from "./mix.js";
import type { Palette } from "./palette.js";
import type { Track } from "./plot.js";

export interface TextStyle {
  readonly fill: string;
  readonly size: number;
  readonly bold?: boolean;
  readonly align?: "left" | "center" | "right";
}

/** Intervals of a track in one strip of the picture. */
export interface Strip {
  readonly track: Track;
  readonly palette: Palette;
  readonly top: number;
  readonly height: number;
}

export interface Label {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly ink: string;
}

export interface Surface {
  /** Device pixels per CSS pixel. */
  readonly ratio: number;
  rect(x: number, y: number, width: number, height: number, fill: string, opacity?: number): void;
  /** An outline whose outer edge is the rectangle. */
  outline(x: number, y: number, width: number, height: number, stroke: string, thickness: number): void;
  /** A line through `x0, y0, x1, y1, ...`. */
  line(points: readonly number[], stroke: string, thickness: number, dash?: readonly number[]): void;
  /** A text whose middle is at `y`. */
  text(text: string, x: number, y: number, style: TextStyle): void;
  /** Many texts of one size around their points. */
  labels(labels: readonly Label[], size: number): void;
  strips(strips: readonly Strip[], window: TimeWindow): void;
  mixes(mixes: readonly Mix[], window: TimeWindow): void;
  /** Clip everything that `draw` draws to the rectangle. */
  clipped(x: number, y: number, width: number, height: number, draw: () => void): void;
  textWidth(text: string, size: number, bold?: boolean): number;
}

/** Return a text shortened to a width, with an ellipsis if something is missing. */
export function fitted(surface: Surface, text: string, width: number, style: TextStyle): string {
  const fits = (length: number) => surface.textWidth(`${text.slice(0, length)}\u2026`, style.size, style.bold) <= width;
  const short = text.slice(0, 400);
  if (short === text && surface.textWidth(text, style.size, style.bold) <= width) return text;
  let length = short.length;
  while (length > 0 && !fits(length)) length = Math.floor(length * 0.9);
  return length > 0 ? `${text.slice(0, length)}\u2026` : "";
}
