/** The time axis above the lanes, with lines down through them. */

import { Times } from "./format.js";
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

/** Draw the axis over the content that scrolls beneath it. */
export function drawAxis(surface: Surface, frame: Frame): void {
  const { page, grid, text, faint } = frame.theme.base;
  const count = Math.max(2, Math.floor(plotWidth(frame) / APART));
  const form = axisForm(frame);
  const written = frame.x.copy().domain(frame.x.domain().map((time) => time * form.scale));
  const own = written.tickFormat(count);
  const format = (time: number) => own(time * form.scale);
  surface.rect(0, 0, frame.width, AXIS, page);
  surface.rect(frame.left, AXIS - 1, plotWidth(frame), 1, grid);
  for (const tick of frame.x.ticks(count)) {
    const x = frame.x(tick);
    surface.rect(Math.round(x), AXIS - 6, 1, 5, faint);
    const half = surface.textWidth(format(tick), 11) / 2;
    const inside = Math.min(Math.max(x, frame.left + Math.min(half, 4)), frame.width - half - 1);
    surface.text(format(tick), inside, AXIS - 14, { fill: text, size: 11, align: "center" });
  }
  surface.text(axisName(frame, form), frame.left - 16, AXIS - 14, { fill: faint, size: 11, align: "right" });
}

/** Return the unit of the axis: that of the latest visible time, if all timelines have the same unit. */
function axisForm(frame: Frame): Times {
  const units = new Set(frame.visible.map((plot) => plot.view.unit));
  return Times.of([frame.x.domain()[1]], units.size === 1 ? [...units][0] : "");
}

function axisName(frame: Frame, { unit }: Times): string {
  const views = frame.visible.map((plot) => plot.view);
  if (views.every((view) => view.source === "order")) return "place";
  const units = unit === "" ? [...new Set(views.map((view) => view.unit))].filter((own) => own !== "") : [unit];
  return units.length > 0 ? `time (${units.join(", ").slice(0, 12)})` : "time";
}
