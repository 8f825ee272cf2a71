/** Input of one picture: plots, layout, size and visible part. */

import type { ScaleLinear } from "d3-scale";
import { AXIS, type Content, type Row } from "./layout.js";
import type { Theme } from "./palette.js";
import type { Plot } from "./plot.js";
import type { State } from "./state.js";

export const FONT = 'system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';
export const RIGHT = 14;

export interface Frame {
  /** All plots, by the numbers of their views. */
  readonly plots: readonly Plot[];
  /** Visible plots. */
  readonly visible: readonly Plot[];
  readonly theme: Theme;
  readonly state: State;
  readonly content: Content;
  /** Size of the whole picture, in CSS pixels. */
  readonly width: number;
  readonly height: number;
  /** Left edge of the lanes, right of their names. */
  readonly left: number;
  /** Vertical scroll offset of the content. */
  readonly scroll: number;
  /** Scale from times to pixels of the picture. */
  readonly x: ScaleLinear<number, number>;
}

/** Return the times at both edges of the picture. */
export function spanOf(frame: Frame): [number, number] {
  const [from, to] = frame.x.domain();
  return [from, to];
}

export function plotWidth(frame: Frame): number {
  return frame.width - frame.left - RIGHT;
}

/** Convert the content's y to the picture's y. */
export function toPicture(frame: Frame, y: number): number {
  return y - frame.scroll + AXIS;
}

/** Return whether a stretch of the content is visible. */
export function shows(frame: Frame, top: number, height: number): boolean {
  const y = toPicture(frame, top);
  return y + height > AXIS && y < frame.height;
}

export function visibleRows(frame: Frame): Row[] {
  return frame.content.rows.filter((row) => shows(frame, row.top, row.height));
}
