/** Marks on the timeline of an edited schedule: the time of a deadlock, and the invalid ops. */

import { type Frame, plotWidth, toPicture, visibleRows } from "./frame.js";
import { Part } from "./part.js";
import { stripOf } from "./picture.js";
import { EDGES, type Plot } from "./plot.js";
import type { Surface } from "./surface.js";

/** Draw the marks over the picture; `outline` draws a frame around a bar, for an error or for the selection. */
export function drawEditMarks(
  surface: Surface,
  frame: Frame,
  outline: (plot: Plot, bar: number, wrong: boolean) => void,
): void {
  for (const plot of frame.visible) {
    const { judged } = plot.view;
    if (judged === undefined) continue;
    if (judged.until !== null) drawEnd(surface, frame, plot, judged.until);
    for (const bar of judged.wrong) outline(plot, bar, true);
    if (judged.lit >= 0) outline(plot, judged.lit, false);
  }
}

/** Draw a line at the end of the last op that runs, and dim the ops that never run. */
function drawEnd(surface: Surface, frame: Frame, plot: Plot, until: number): void {
  const rows = visibleRows(frame).filter((row) => row.plot === plot);
  const x = Math.max(frame.x(until), frame.left);
  const right = frame.left + plotWidth(frame);
  if (rows.length === 0 || x >= right) return;
  const { page, limit } = frame.theme.base;
  for (const row of rows) {
    const [top, height] = stripOf(frame, row, EDGES[Part.FULL]);
    surface.rect(x, top, right - x, height, page, 0.62);
  }
  const last = rows[rows.length - 1];
  const [top, bottom] = [toPicture(frame, rows[0].top), toPicture(frame, last.top + last.height)];
  surface.line([x, top, x, bottom], limit, 2);
}

/** Return whether an op never runs. */
export function neverRuns(plot: Plot, bar: number): boolean {
  const until = plot.view.judged?.until ?? null;
  return until !== null && plot.start[bar] >= until - 1e-9 * plot.view.makespan && plot.end[bar] > until;
}
