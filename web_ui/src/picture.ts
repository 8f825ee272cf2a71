/** Draws a frame: lanes, gaps, bars, labels, memory, names and the axis. */

import { drawAxis, drawGrid } from "./axis.js";
import { drawCurves } from "./curves.js";
import { percent, timeText } from "./format.js";
import { type Frame, plotWidth, shows, spanOf, toPicture, visibleRows } from "./frame.js";
import { drawLabels } from "./labels.js";
import { AXIS, type Block, HEADER, type Row } from "./layout.js";
import type { TimeWindow } from "./mix.js";
import { type Mix, type MixPart, tooFine } from "./mix.js";
import { edgesOf, laneTracks } from "./pairs.js";
import type { Theme } from "./palette.js";
import { isBeside, Part } from "./part.js";
import { EDGES, GAP_EDGES, type Plot } from "./plot.js";
import { fitted, type Strip, type Surface } from "./surface.js";

/** Return whether any visible lane is too fine to draw its ops individually. */
export function anyTooFine(frame: Frame, ratio: number): boolean {
  const window = timeWindow(frame);
  return visibleRows(frame).some((row) => row.plot.tracks[row.lane].some((track) => tooFine(track, window, ratio)));
}

export function drawPicture(surface: Surface, frame: Frame): void {
  const rows = visibleRows(frame);
  surface.rect(0, 0, frame.width, frame.height, frame.theme.base.page);
  surface.clipped(frame.left, AXIS, plotWidth(frame), frame.height - AXIS, () => drawLanes(surface, frame, rows));
  surface.clipped(0, AXIS, frame.width, frame.height - AXIS, () => {
    drawCurves(surface, frame);
    for (const block of frame.content.blocks) drawBlock(surface, frame, block);
  });
  drawAxis(surface, frame);
}

/** Return the visible range of time of strips. */
export function timeWindow(frame: Frame): TimeWindow {
  const [from, to] = spanOf(frame);
  const width = plotWidth(frame);
  return { from, scale: width / (to - from), left: frame.left, width };
}

/** Return top and height of a share of a row, in whole pixels. */
export function stripOf(frame: Frame, row: Row, [low, high]: readonly [number, number]): [number, number] {
  const top = Math.round(toPicture(frame, row.top + low * row.height));
  const bottom = Math.round(toPicture(frame, row.top + high * row.height));
  return [top, Math.max(1, bottom - top)];
}

function drawLanes(surface: Surface, frame: Frame, rows: readonly Row[]): void {
  for (const row of rows) {
    const [top, height] = stripOf(frame, row, EDGES[Part.FULL]);
    const end = Math.min(frame.x(row.plot.view.makespan), frame.width);
    if (end > frame.left) surface.rect(frame.left, top, end - frame.left, height, frame.theme.base.lane);
  }
  drawGrid(surface, frame);
  const window = timeWindow(frame);
  const { ratio } = surface;
  const fine = rows.filter((row) => row.plot.tracks[row.lane].some((track) => tooFine(track, window, ratio)));
  const coarse = fine.length === 0 ? rows : rows.filter((row) => !fine.includes(row));
  const gaps = frame.state.gaps ? coarse.flatMap((row) => gapStrips(frame, row)) : [];
  surface.mixes(
    fine.map((row) => mixOf(frame, row)),
    window,
  );
  const beside = fine.flatMap((row) => barStrips(frame, row).filter(({ track }) => isBeside(track.part)));
  const lanes = coarse.flatMap((row) => laneStrips(frame, row));
  surface.strips([...gaps, ...coarse.flatMap((row) => barStrips(frame, row)), ...lanes, ...beside], window);
  drawLabels(surface, frame, rows);
  if (frame.state.gaps) for (const row of rows) drawWindows(surface, frame, row);
}

/** Draw outlines around the windows of time in which a memory limit makes a rank idle. */
function drawWindows(surface: Surface, frame: Frame, row: Row): void {
  const [top, height] = stripOf(frame, row, EDGES[Part.FULL]);
  for (const { lane, start, end } of row.plot.windows) {
    if (lane !== row.lane) continue;
    const left = frame.x(start);
    surface.outline(left, top, frame.x(end) - left, height, frame.theme.base.limit, 1.5);
  }
}

/** Return a lane as shares of time, with its idle time by reason if gaps are enabled. */
function mixOf(frame: Frame, row: Row): Mix {
  const { plot, lane } = row;
  const [top, height] = stripOf(frame, row, EDGES[Part.FULL]);
  const idle =
    frame.state.gaps && plot.gaps !== null
      ? [{ track: plot.gaps.tracks[lane], palette: frame.theme.gaps[plot.index], weight: 1, below: true }]
      : [];
  return { parts: [...mixParts(frame.theme, plot, lane, 1), ...idle], top, height };
}

/** Return the strips of the compute ops of a lane; each op of a pair has half of the height. */
export function mixParts(theme: Theme, plot: Plot, lane: number, weight: number): MixPart[] {
  return plot.tracks[lane]
    .filter(({ part }) => !isBeside(part))
    .map((track) => ({
      track,
      palette: theme.bars[plot.index],
      weight: track.part === Part.FULL ? weight : weight / 2,
      below: false,
    }));
}

function gapStrips(frame: Frame, row: Row): Strip[] {
  const track = row.plot.gaps?.tracks[row.lane];
  if (track === undefined) return [];
  const [top, height] = stripOf(frame, row, GAP_EDGES);
  return [{ track, palette: frame.theme.gaps[row.plot.index], top, height }];
}

function barStrips(frame: Frame, row: Row): Strip[] {
  const palette = frame.theme.bars[row.plot.index];
  return row.plot.tracks[row.lane].map((track) => {
    const [top, height] = stripOf(frame, row, edgesOf(frame, row, track.part));
    return { track, palette, top, height };
  });
}

/** Return the compute and the communication lane of the pairs of a row, if they are wide enough. */
function laneStrips(frame: Frame, row: Row): Strip[] {
  const palette = frame.theme.bars[row.plot.index];
  return laneTracks(frame, row).map(({ track, edges }) => {
    const [top, height] = stripOf(frame, row, edges);
    return { track, palette, top, height };
  });
}

/** Draw a block's title with its figures, and the names of its lanes. */
function drawBlock(surface: Surface, frame: Frame, block: Block): void {
  if (shows(frame, block.top, HEADER)) drawTitle(surface, frame, block);
  const { text } = frame.theme.base;
  const height = block.lanes[0]?.height ?? 0;
  let step = 1;
  while (step * height < 13 && step < block.lanes.length) step *= 2;
  block.lanes.forEach((lane, at) => {
    if (at % step !== 0 || !shows(frame, lane.top, lane.height)) return;
    const y = toPicture(frame, lane.top + lane.height / 2) + 0.5;
    surface.text(shortLabel(lane.label), frame.left - 8, y, { fill: text, size: 11, align: "right" });
  });
}

export function shortLabel(label: string): string {
  return label.length > 14 ? `${label.slice(0, 13)}\u2026` : label;
}

function drawTitle(surface: Surface, frame: Frame, block: Block): void {
  const { text, faint } = frame.theme.base;
  const y = toPicture(frame, block.top + HEADER / 2) + 1;
  const overlaid = block.plots.length > 1;
  let x = frame.left;
  const room = plotWidth(frame) / block.plots.length;
  block.plots.forEach((plot, at) => {
    const style = { fill: text, size: 13, bold: true } as const;
    const words = overlaid ? `${placeName(at, block.plots.length)}: ${plot.view.title}` : plot.view.title;
    const figures = figuresThatFit(surface, plot, room - 28 - surface.textWidth(words, 13, true));
    const title = fitted(surface, words, room - surface.textWidth(figures, 12) - 28, style);
    surface.text(title, x, y, style);
    if (overlaid) surface.text(figures, x + surface.textWidth(title, 13, true) + 10, y, { fill: faint, size: 12 });
    else surface.text(figures, frame.left + plotWidth(frame), y, { fill: faint, size: 12, align: "right" });
    x += room;
  });
}

function placeName(at: number, count: number): string {
  if (at === 0) return "upper";
  return at === count - 1 ? "lower" : "middle";
}

/** Return the longest form of a view's figures that leaves room for its name, or the shortest. */
function figuresThatFit(surface: Surface, plot: Plot, room: number): string {
  const { view } = plot;
  if (view.source === "order") return surface.textWidth(figuresOf(plot), 12) <= room ? figuresOf(plot) : "order only";
  const [time, bubble] = [timeText(view.makespan, view.unit), percent(view.idle_over_total)];
  const figures = figuresOf(plot);
  const forms = [view.bound ? `${figures}; ${view.bound}` : figures, figures, `${time}, bubble ${bubble}`, time];
  return forms.find((form) => surface.textWidth(form, 12) <= room) ?? time;
}

export function figuresOf({ view }: Plot): string {
  if (view.source === "order") return "order only, no times";
  const until = view.judged?.until ?? null;
  if (until !== null) return `deadlocks at ${timeText(until, view.unit)}`;
  const measured = view.source === "measured" ? "measured, " : "";
  return `${measured}makespan ${timeText(view.makespan, view.unit)}, bubble ${percent(view.idle_over_total)}`;
}
