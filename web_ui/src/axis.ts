/** The time axis above the lanes, with lines down through them. */

import { type Frame, plotWidth } from "./frame.js";
import { AXIS } from "./layout.js";
import type { Surface } from "./surface.js";

const APART = 84;

export function axisTicks(frame: Frame): number[] {
  return frame.x.ticks(Math.max(2, Math.floor(plotWidth(frame) / APART)));
}

export function drawGrid(surface: Surface, frame: Frame): void {
  const { grid } = frame.theme.base;
  for (const tick of axisTicks(frame))
    surface.rect(Math.round(frame.x(tick)), AXIS, 1, frame.height - AXIS, grid, 0.45);
}

/** Draw the axis over whatever is scrolled beneath it. */
export function drawAxis(surface: Surface, frame: Frame): void {
  const { page, grid, text, faint } = frame.theme.base;
  const count = Math.max(2, Math.floor(plotWidth(frame) / APART));
  const format = frame.x.tickFormat(count);
  surface.rect(0, 0, frame.width, AXIS, page);
  surface.rect(frame.left, AXIS - 1, plotWidth(frame), 1, grid);
  for (const tick of frame.x.ticks(count)) {
    const x = frame.x(tick);
    surface.rect(Math.round(x), AXIS - 6, 1, 5, faint);
    const half = surface.textWidth(format(tick), 11) / 2;
    const inside = Math.min(Math.max(x, frame.left + Math.min(half, 4)), frame.width - half - 1);
    surface.text(format(tick), inside, AXIS - 14, { fill: text, size: 11, align: "center" });
  }
  surface.text(axisName(frame), frame.left - 16, AXIS - 14, { fill: faint, size: 11, align: "right" });
}

function axisName(frame: Frame): string {
  const views = frame.plots.map((plot) => plot.view);
  if (views.every((view) => view.source === "order")) return "place";
  const units = [...new Set(views.map((view) => view.unit))].filter((unit) => unit !== "");
  return units.length > 0 ? `time (${units.join(", ").slice(0, 12)})` : "time";
}
