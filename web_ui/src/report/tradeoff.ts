/** Scatter plot of makespan against memory: a point per schedule, the line of the Pareto front, and the limit. */

import { make } from "../dom.js";
import { Times } from "../format.js";
import type { ComparisonFacts, ComparisonRow } from "../records.js";
import { type Scale, scaleOf } from "../scale.js";
import { type Axis, grid, staircase, svg } from "../scatter.js";
import { freeLabels, front, type Label } from "./front.js";
import { memoryForm } from "./memory_form.js";

const HEIGHT = 230;
const TOP = 12;
const BOTTOM = 22;
/** Approximate width of a character of a label. */
const LETTER = 6.3;

export interface Marked {
  readonly limit: number | null;
  readonly drawn: readonly string[];
}

export class Tradeoff {
  readonly element = make("div", { class: "pr-tradeoff", "aria-hidden": "true" });

  /** `pointed` receives the schedule that the user clicks. */
  constructor(private readonly pointed: (name: string) => void) {}

  /** Draw with the memory axis between two pixels of a width. */
  show(comparison: ComparisonFacts, memory: Scale, marked: Marked, width: number): void {
    const { rows } = comparison;
    const spans = rows.map(({ makespan }) => makespan);
    const [low, high] = [Math.min(...spans), Math.max(...spans)];
    const room = 0.1 * (high - low) || 0.1 * high;
    const up = scaleOf(Math.max(low - 1.6 * room, 0), high + room / 2, HEIGHT - BOTTOM, TOP);
    const picture = svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` });
    const [left, right] = [memory.place(memory.low), memory.place(memory.high)];
    const y = timeAxis(up, comparison.unit);
    const lines = grid({ left, right, top: TOP, bottom: HEIGHT - BOTTOM }, memoryAxis(memory, comparison), y);
    picture.append(...lines, ...limitOf(memory, marked.limit));
    const stair = front(rows);
    const points = rows.map((row) => ({ row, x: memory.place(row.peak), y: up.place(row.makespan) }));
    const corners = stair.map((row) => [memory.place(row.peak), up.place(row.makespan)] as const);
    picture.append(svg("path", { class: "stair", d: `${staircase(corners)}H${right.toFixed(1)}` }));
    const ticks = y.ticks.map((value) => tickOf(y.text(value), left - 8, up.place(value) + 4));
    // No point lies below and to the left of the front, so the names are there.
    const names = points
      .filter(({ row }) => stair.includes(row))
      .map(({ row, x, y }) => tickOf(row.schedule, x - 7, y + 13));
    const labels = freeLabels(names, ticks, 0, HEIGHT - BOTTOM + 2);
    picture.append(
      ...labels.map(({ text, x, y }) => svg("text", { class: "name", x, y, "text-anchor": "end" }, text)),
      ...points.map(({ row, x, y }) => this.point(comparison, row, x, y, marked)),
    );
    this.element.replaceChildren(picture);
  }

  private point(
    comparison: ComparisonFacts,
    row: ComparisonRow,
    x: number,
    y: number,
    { limit, drawn }: Marked,
  ): SVGElement {
    const memory = memoryForm(comparison);
    const over = limit !== null && row.peak > limit * (1 + 1e-9);
    const kind = ["point", over && "over", drawn.includes(row.schedule) && "drawn"].filter(Boolean).join(" ");
    const point = svg("circle", { class: kind, cx: x, cy: y, r: drawn.includes(row.schedule) ? 6 : 4.5 });
    const time = Times.of([row.makespan], comparison.unit).text(row.makespan);
    point.append(svg("title", {}, `${row.schedule}: ${time}, ${memory.text(row.peak)}`));
    point.addEventListener("click", () => this.pointed(row.schedule));
    return point;
  }
}

function tickOf(text: string, x: number, y: number): Label {
  return { text, x, y, width: LETTER * text.length };
}

function timeAxis(scale: Scale, unit: string): Axis {
  const ticks = scale.ticks(6);
  const times = Times.of(ticks, unit);
  return { place: scale.place, ticks, text: (value) => times.number(value) };
}

function memoryAxis({ low, high, place }: Scale, comparison: ComparisonFacts): Axis {
  const { divisor } = memoryForm(comparison);
  const [left, right] = [place(low), place(high)];
  const scaled = scaleOf(low / divisor, high / divisor, left, right);
  return { place: scaled.place, ticks: scaled.ticks((right - left) / 45), text: String };
}

function limitOf(across: Scale, limit: number | null): SVGElement[] {
  if (limit === null || limit >= across.high) return [];
  const x = across.place(Math.max(limit, across.low));
  const beyond = { class: "beyond", x, y: TOP, width: across.place(across.high) - x, height: HEIGHT - BOTTOM - TOP };
  return [svg("rect", beyond), svg("line", { class: "limit", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM })];
}
