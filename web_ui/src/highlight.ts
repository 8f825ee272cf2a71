/** Highlights over the picture: the hovered and the focused op, chains, the critical path, matches of a search. */

import { boxOfBand } from "./band.js";
import { drawCurveOf } from "./curves.js";
import { drawEditMarks } from "./edit_marks.js";
import { type Ghost, markAt } from "./editing.js";
import { Times } from "./format.js";
import { type Frame, plotWidth, spanOf, toPicture, visibleRows } from "./frame.js";
import { AXIS, type Row } from "./layout.js";
import { edgesOf } from "./pairs.js";
import { Part } from "./part.js";
import { stripOf } from "./picture.js";
import { EDGES, type Plot } from "./plot.js";
import type { BarRef } from "./search.js";
import type { Band } from "./state.js";
import type { Surface } from "./surface.js";

export interface Lit {
  /** The lane under the pointer. */
  readonly lane: { readonly view: number; readonly lane: number } | null;
  readonly hovered: BarRef | null;
  readonly focused: BarRef | null;
  readonly selected: BarRef | null;
  /** Chains in the order of time. */
  readonly chain: readonly BarRef[];
  /** The selected op in the run of a plan, or in the plan of a run, with the chain that delayed it there. */
  readonly twins: readonly { readonly op: BarRef; readonly chain: readonly BarRef[] }[];
  readonly critical: readonly (readonly BarRef[])[];
  readonly matches: readonly BarRef[];
  readonly current: BarRef | null;
  /** The measured interval. */
  readonly band: Band | null;
  /** The op that the user moves. */
  readonly ghost: Ghost | null;
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function drawHighlights(surface: Surface, frame: Frame, lit: Lit): void {
  if (lit.lane !== null) drawCurveOf(surface, frame, lit.lane.view, lit.lane.lane);
  if (lit.band !== null) drawBandLabel(surface, frame, lit.band);
  surface.clipped(frame.left, AXIS, plotWidth(frame), frame.height - AXIS, () => {
    const { text, limit } = frame.theme.base;
    if (lit.band !== null) drawBand(surface, frame, lit.band);
    drawEditMarks(surface, frame, (plot, bar, wrong) => {
      ring(surface, frame, { view: plot.index, bar }, wrong ? limit : text, 2.5);
    });
    const paths = lit.critical.map((path) => ({ path, colour: limit }));
    for (const chain of [lit.chain, ...lit.twins.map((twin) => twin.chain)]) {
      if (chain.length > 0) paths.push({ path: chain, colour: text });
    }
    if (paths.length > 0) dim(surface, frame);
    for (const { path } of paths) for (const ref of path) refill(surface, frame, ref);
    for (const { path, colour } of paths) drawPath(surface, frame, path, colour);
    for (const ref of lit.matches) ring(surface, frame, ref, limit, 1.5);
    if (lit.current !== null) ring(surface, frame, lit.current, limit, 3);
    for (const op of [lit.selected, ...lit.twins.map((twin) => twin.op)]) {
      if (op !== null) ring(surface, frame, op, text, 2.5);
    }
    if (lit.hovered !== null) drawHovered(surface, frame, lit.hovered);
    if (lit.focused !== null) focusRing(surface, frame, lit.focused);
    if (lit.ghost !== null) drawGhost(surface, frame, lit.ghost);
  });
}

/** Position of a bar; null outside the picture. */
export function boxOf(frame: Frame, ref: BarRef): Box | null {
  const plot = frame.plots[ref.view];
  const row = rowOf(frame, plot, plot.lane[ref.bar]);
  if (row === undefined) return null;
  const [y, height] = stripOf(frame, row, edgesOf(frame, row, plot.part[ref.bar]));
  const x = frame.x(plot.start[ref.bar]);
  const width = frame.x(plot.end[ref.bar]) - x;
  const outside = x + width < frame.left || x > frame.width || y + height < 0 || y > frame.height;
  return outside ? null : { x, y, width, height };
}

/** Return the part of a box between the left and right edges. */
function clipped(frame: Frame, box: Box): Box {
  const x = Math.max(box.x, frame.left);
  return { ...box, x, width: Math.min(box.x + box.width, frame.left + plotWidth(frame)) - x };
}

function rowOf(frame: Frame, plot: Plot, lane: number): Row | undefined {
  return frame.content.rowOf.get(plot)?.[lane];
}

function dim(surface: Surface, frame: Frame): void {
  for (const row of visibleRows(frame)) {
    const [y, height] = stripOf(frame, row, EDGES[Part.FULL]);
    surface.rect(frame.left, y, plotWidth(frame), height, frame.theme.base.page, 0.72);
  }
}

function refill(surface: Surface, frame: Frame, { view, bar }: BarRef): void {
  const whole = boxOf(frame, { view, bar });
  if (whole === null) return;
  const box = clipped(frame, whole);
  const { fill, ink } = frame.theme.bars[view];
  const plot = frame.plots[view];
  const code = plot.code[bar];
  surface.rect(box.x, box.y, Math.max(box.width - (box.width > 4 ? 1 : 0), 0.75), box.height, fill[code]);
  const size = Math.min(12, Math.floor(1.4 * box.height) / 2);
  const text = [plot.name(bar), plot.number(bar)].find((name) => surface.textWidth(name, size) + 4 <= box.width);
  if (size >= 7.5 && text !== undefined) {
    surface.text(text, box.x + box.width / 2, box.y + box.height / 2 + 0.5, { fill: ink[code], size, align: "center" });
  }
}

/** Draw lines from each op to the next, and outlines around wide ops. */
function drawPath(surface: Surface, frame: Frame, path: readonly BarRef[], colour: string): void {
  const [from, to] = spanOf(frame);
  let before: BarRef | null = null;
  for (const ref of path) {
    const plot = frame.plots[ref.view];
    const visible = plot.end[ref.bar] >= from && plot.start[ref.bar] <= to;
    if (visible) ring(surface, frame, ref, colour, 1.5, 5);
    if (before !== null && plot.start[ref.bar] >= from && plot.end[before.bar] <= to) {
      connect(surface, frame, before, ref, colour);
    }
    before = ref;
  }
}

function connect(surface: Surface, frame: Frame, one: BarRef, other: BarRef, colour: string): void {
  const plot = frame.plots[one.view];
  if (plot.lane[one.bar] === plot.lane[other.bar] || rowOf(frame, plot, 0) === undefined) return;
  const places = [middleOf(frame, one), middleOf(frame, other)];
  const [begin, end] = [frame.x(plot.end[one.bar]), frame.x(plot.start[other.bar])];
  surface.line([begin - 0.5, places[0], end + 0.5, places[1]], colour, 1.5);
}

function middleOf(frame: Frame, { view, bar }: BarRef): number {
  const plot = frame.plots[view];
  const row = rowOf(frame, plot, plot.lane[bar]);
  if (row === undefined) return 0;
  const [low, high] = edgesOf(frame, row, plot.part[bar]);
  return toPicture(frame, row.top + ((low + high) / 2) * row.height);
}

function ring(surface: Surface, frame: Frame, ref: BarRef, colour: string, thickness: number, least = 0): void {
  const box = boxOf(frame, ref);
  if (box === null || box.width < least) return;
  const grown = Math.max(box.width, 3);
  surface.outline(box.x - 1, box.y - 1, grown + 1, box.height + 2, colour, thickness);
}

/** Draw the op under the pointer, with lines to its dependencies and its dependents. */
function drawHovered(surface: Surface, frame: Frame, ref: BarRef): void {
  const { text, faint } = frame.theme.base;
  const links = frame.plots[ref.view].links;
  const other = (bar: number): BarRef => ({ view: ref.view, bar });
  for (const source of links.waitedFor(ref.bar)) {
    connect(surface, frame, other(source), ref, faint);
    ring(surface, frame, other(source), faint, 1.5);
  }
  for (const target of links.waiting(ref.bar)) {
    connect(surface, frame, ref, other(target), faint);
    ring(surface, frame, other(target), faint, 1.5);
  }
  ring(surface, frame, ref, text, 2);
}

function focusRing(surface: Surface, frame: Frame, ref: BarRef): void {
  const box = boxOf(frame, ref);
  if (box === null) return;
  const { page, text } = frame.theme.base;
  const width = Math.max(box.width, 4);
  surface.outline(box.x - 4, box.y - 4, width + 7, box.height + 8, page, 4);
  surface.outline(box.x - 3, box.y - 3, width + 5, box.height + 6, text, 2);
}

/** Draw the dragged op at the pointer, its old position, and a mark at its new position. */
function drawGhost(surface: Surface, frame: Frame, ghost: Ghost): void {
  const { view, bar } = ghost.op;
  const plot = frame.plots[view];
  const row = rowOf(frame, plot, ghost.op.rank);
  if (row === undefined) return;
  const { page, text, limit } = frame.theme.base;
  const colour = ghost.refused === null ? text : limit;
  const [y, height] = stripOf(frame, row, edgesOf(frame, row, plot.part[bar]));
  const [x, end] = [frame.x(plot.start[bar]), frame.x(plot.end[bar])];
  const hangs = frame.x(plot.start[bar] + ghost.shift);
  surface.rect(x, y, end - x, height, page, 0.7);
  surface.rect(hangs, y - 3, end - x, height, frame.theme.bars[view].fill[plot.code[bar]], 0.9);
  surface.outline(hangs, y - 3, Math.max(end - x, 3), height, colour, 2);
  const name = plot.name(bar);
  if (surface.textWidth(name, 11) + 4 <= end - x) {
    const ink = frame.theme.bars[view].ink[plot.code[bar]];
    surface.text(name, hangs + (end - x) / 2, y - 3 + height / 2, { fill: ink, size: 11, align: "center" });
  }
  if (ghost.refused !== null) drawCross(surface, hangs + (end - x) / 2, y - 3 + height / 2, frame);
  else if (ghost.to !== ghost.op.index) drawMark(surface, frame.x(markAt(plot, ghost)), row, frame);
}

function drawMark(surface: Surface, x: number, row: Row, frame: Frame): void {
  const { page, text } = frame.theme.base;
  const top = Math.round(toPicture(frame, row.top)) - 3;
  surface.rect(x - 3, top, 6, row.height + 6, page);
  surface.rect(x - 1.5, top, 3, row.height + 6, text);
  surface.rect(x - 5, top, 10, 3, text);
  surface.rect(x - 5, top + row.height + 3, 10, 3, text);
}

function drawCross(surface: Surface, x: number, y: number, frame: Frame): void {
  const { page, limit } = frame.theme.base;
  for (const [colour, thickness] of [
    [page, 6],
    [limit, 3],
  ] as const) {
    surface.line([x - 6, y - 6, x + 6, y + 6], colour, thickness);
    surface.line([x - 6, y + 6, x + 6, y - 6], colour, thickness);
  }
}

/** Draw an outline around the rows of an interval, with its edges down through the picture. */
function drawBand(surface: Surface, frame: Frame, band: Band): void {
  const box = boxOfBand(frame, band);
  if (box === null) return;
  const { text } = frame.theme.base;
  for (const x of [box.x, box.x + box.width]) surface.rect(x - 0.5, AXIS, 1, frame.height - AXIS, text, 0.55);
  surface.rect(box.x, box.y, box.width, box.height, text, 0.1);
  surface.outline(box.x - 1, box.y - 1, Math.max(box.width, 1) + 2, box.height + 2, text, 1.5);
}

/** Draw the length of an interval on the axis. */
function drawBandLabel(surface: Surface, frame: Frame, band: Band): void {
  const { page, text } = frame.theme.base;
  const length = band.to - band.from;
  const unit = frame.plots[band.first.view]?.view.unit ?? "";
  const words = Times.of([length], unit).text(length);
  const width = surface.textWidth(words, 11, true) + 12;
  const [from, to] = [frame.x(band.from), frame.x(band.to)];
  if (to < frame.left || from > frame.left + plotWidth(frame)) return;
  const middle = (Math.max(from, frame.left) + Math.min(to, frame.left + plotWidth(frame))) / 2;
  const x = Math.min(Math.max(middle - width / 2, frame.left), frame.left + plotWidth(frame) - width);
  surface.rect(x, AXIS - 20, width, 17, text);
  surface.text(words, x + width / 2, AXIS - 11, { fill: page, size: 11, bold: true, align: "center" });
}
