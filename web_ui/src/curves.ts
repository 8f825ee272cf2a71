/** Memory below the lanes: a step curve per rank, the most relevant ones in colour, and the limit. */

import { scaleLinear } from "d3-scale";
import { memoryScale, memoryText, type Scale } from "./format.js";
import { type Frame, plotWidth, shows, spanOf, toPicture } from "./frame.js";
import { AXIS, MEMORY_HEADER, type MemoryPanel } from "./layout.js";
import type { Memory } from "./plot.js";
import type { Surface } from "./surface.js";

/** Maximum number of faint curves: of more lanes, only every second, third and so on has one. The pointer shows any lane's. */
const MOST_FAINT = 16;

interface Panel {
  frame: Frame;
  surface: Surface;
  memory: Memory;
  panel: MemoryPanel;
  scale: Scale;
  highest: number;
  y: (level: number) => number;
}

export function drawCurves(surface: Surface, frame: Frame): void {
  for (const panel of frame.content.memories) {
    if (!shows(frame, panel.top - MEMORY_HEADER, panel.height + MEMORY_HEADER)) continue;
    const own = panelOf(surface, frame, panel);
    if (own !== null) drawPanel(own);
  }
}

/** Return the highest value of a panel: of its peaks and limits. */
export function highestLevel(memory: Memory): number {
  return Math.max(...memory.peak, ...(memory.limit ?? []), 0);
}

/** Draw one lane's curve over the others. */
export function drawCurveOf(surface: Surface, frame: Frame, view: number, lane: number): void {
  const panel = frame.content.memories.find(({ plot }) => plot.index === view);
  const own = panel === undefined ? null : panelOf(surface, frame, panel);
  if (own === null || panel === undefined) return;
  const top = toPicture(frame, panel.top);
  const { page, text } = frame.theme.base;
  const visible = Math.max(top, AXIS);
  surface.clipped(frame.left, visible, plotWidth(frame), top + panel.height - visible + 2, () => {
    const points = stepsOf(own, lane);
    surface.line(points, page, 5);
    surface.line(points, text, 2.25);
  });
}

function panelOf(surface: Surface, frame: Frame, panel: MemoryPanel): Panel | null {
  const { memory } = panel.plot;
  if (memory === null) return null;
  const highest = highestLevel(memory);
  const bottom = toPicture(frame, panel.top + panel.height);
  const y = scaleLinear([0, 1.08 * highest || 1], [bottom, bottom - panel.height]);
  return { frame, surface, memory, panel, scale: memoryScale(memory.unit, highest), highest, y };
}

function drawPanel(context: Panel): void {
  const { frame, surface, panel } = context;
  const top = toPicture(frame, panel.top);
  drawLevels(context);
  surface.clipped(frame.left, top - 1, plotWidth(frame), panel.height + 2, () => drawAll(context));
  drawHeader(context);
}

function drawLevels({ frame, surface, scale, panel, highest, y }: Panel): void {
  const { grid, faint, lane } = frame.theme.base;
  surface.rect(frame.left, toPicture(frame, panel.top), plotWidth(frame), panel.height, lane, 0.35);
  const inUnits = scaleLinear([0, highest / scale.divisor], [0, 1]); // round numbers in the displayed unit
  for (const tick of inUnits.ticks(panel.height < 56 ? 2 : 3)) {
    const level = y(tick * scale.divisor);
    surface.rect(frame.left, Math.round(level), plotWidth(frame), 1, grid, 0.6);
    surface.text(String(tick), frame.left - 8, level, { fill: faint, size: 10, align: "right" });
  }
}

function drawAll(context: Panel): void {
  const { frame, surface, memory, y } = context;
  const { curves, grid, limit } = frame.theme.base;
  const highlighted = memory.lanesThatMatter();
  const step = Math.ceil(memory.peak.length / MOST_FAINT);
  for (let lane = 0; lane < memory.peak.length; lane += step) {
    if (!highlighted.includes(lane)) surface.line(stepsOf(context, lane), grid, 1);
  }
  highlighted.forEach((lane, at) => {
    surface.line(stepsOf(context, lane), curves[at % curves.length], 1.75);
    if (memory.parameters === null) return;
    surface.line(stepsOf(context, lane, memory.parameters), curves[at % curves.length], 1.25, [2, 3]);
  });
  for (const level of limitsOf(memory)) {
    surface.line([frame.left, y(level), frame.width, y(level)], limit, 1.5, [6, 3]);
  }
}

/** Return the distinct limits of the lanes, at most eight. */
function limitsOf(memory: Memory): number[] {
  return memory.limit === null ? [] : [...new Set(memory.limit)].slice(0, 8);
}

/** Return the corners of a lane's visible steps of memory, or of a part of it; of several in a pixel, the lowest and the highest. */
function stepsOf({ frame, memory, panel, y }: Panel, lane: number, levels = memory.level): number[] {
  const [from, to] = spanOf(frame);
  const stop = memory.offsets[lane + 1];
  let at = memory.stepAt(lane, from);
  const points = [frame.x(Math.max(from, 0)), y(levels[at])];
  for (at += 1; at < stop && memory.time[at] <= to; at++) {
    const x = frame.x(memory.time[at]);
    const before = levels[at - 1];
    let low = levels[at];
    let high = low;
    while (at + 1 < stop && frame.x(memory.time[at + 1]) < x + 1) {
      at += 1;
      low = Math.min(low, levels[at]);
      high = Math.max(high, levels[at]);
    }
    points.push(x, y(before));
    if (low < high) points.push(x, y(low), x, y(high));
    points.push(x, y(levels[at]));
  }
  const end = frame.x(Math.min(to, panel.plot.view.makespan));
  points.push(end, points[points.length - 1]);
  return points;
}

/** Draw the panel's name and the legend of its curves. */
function drawHeader({ frame, surface, memory, panel, scale }: Panel): void {
  const { text, faint, curves, limit } = frame.theme.base;
  const y = toPicture(frame, panel.top - MEMORY_HEADER / 2) + 1;
  let x = frame.left;
  const write = (words: string, fill: string) => {
    surface.text(words, x, y, { fill, size: 11 });
    x += surface.textWidth(words, 11) + 14;
  };
  write(`memory (${scale.unit})`, text);
  const highlighted = memory.lanesThatMatter();
  highlighted.forEach((lane, at) => {
    const words = `${panel.plot.view.lanes.label[lane]}: peak ${memoryText(memory.peak[lane], scale)}`;
    if (x + surface.textWidth(words, 11) + 20 > frame.width) return;
    surface.rect(x, y - 1.5, 14, 3, curves[at % curves.length]);
    x += 19;
    write(words, faint);
  });
  if (memory.parameters !== null && x + 140 < frame.width) {
    surface.line([x, y, x + 16, y], faint, 1.25, [2, 3]);
    x += 21;
    write("gathered parameters", faint);
  }
  const limits = limitsOf(memory);
  if (limits.length === 0 || x + 120 > frame.width) return;
  surface.line([x, y, x + 16, y], limit, 1.5, [6, 3]);
  x += 21;
  write(`limit ${limits.map((level) => memoryText(level, scale)).join(", ")}`, faint);
}
