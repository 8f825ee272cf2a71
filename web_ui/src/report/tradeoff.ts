/** Makespan against memory: every schedule a point, the line of those that none beats in both, and the limit. */

import { make } from "../dom.js";
import { Times } from "../format.js";
import type { ComparisonFacts, ComparisonRow } from "../records.js";
import { freeLabels, front, type Label } from "./front.js";
import { memoryForm } from "./memory_form.js";
import { type Scale, scaleOf } from "./scale.js";

const HEIGHT = 230;
const TOP = 12;
const BOTTOM = 22;
const SVG = "http://www.w3.org/2000/svg";
/** Approximate width of a character of a label. */
const LETTER = 6.3;

export interface Marked {
  readonly limit: number | null;
  readonly drawn: readonly string[];
}

export class Tradeoff {
  readonly element = make("div", { class: "pr-tradeoff", "aria-hidden": "true" });

  /** `pointed` gets the schedule under the pointer that was clicked. */
  constructor(private readonly pointed: (name: string) => void) {}

  /** Draw with the memory axis between two pixels of a width. */
  show(comparison: ComparisonFacts, memory: Scale, marked: Marked, width: number): void {
    const { rows } = comparison;
    const spans = rows.map(({ makespan }) => makespan);
    const [low, high] = [Math.min(...spans), Math.max(...spans)];
    const room = 0.1 * (high - low) || 0.1 * high;
    const up = scaleOf(Math.max(low - 1.6 * room, 0), high + room / 2, HEIGHT - BOTTOM, TOP);
    const picture = svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` });
    const names = up.ticks(6).map((value) => ({ value, y: up.place(value) + 4 }));
    const times = Times.of(
      names.map(({ value }) => value),
      comparison.unit,
    );
    const ticks = names.map(({ value, y }) => tickOf(times.number(value), memory.place(memory.low) - 8, y));
    picture.append(...axes(comparison, memory, up, ticks), ...limitOf(memory, marked.limit));
    const stair = front(rows);
    picture.append(svg("path", { class: "stair", d: stairOf(stair, memory, up) }));
    const points = rows.map((row) => ({ row, x: memory.place(row.peak), y: up.place(row.makespan) }));
    // Points below and to the left of the line would be better than it, so only names are there.
    const wanted = points
      .filter(({ row }) => stair.includes(row))
      .map(({ row, x, y }) => tickOf(row.schedule, x - 7, y + 13));
    const labels = freeLabels(wanted, ticks, 0, HEIGHT - BOTTOM + 2);
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

function axes(comparison: ComparisonFacts, across: Scale, up: Scale, ticks: readonly Label[]): SVGElement[] {
  const [left, right] = [across.place(across.low), across.place(across.high)];
  const memory = memoryForm(comparison);
  const lines = up
    .ticks(6)
    .map((value) => svg("line", { class: "grid", x1: left, x2: right, y1: up.place(value), y2: up.place(value) }));
  const rows = ticks.map(({ text, x, y }) => svg("text", { x, y, "text-anchor": "end" }, text));
  const scaled = scaleOf(across.low / memory.divisor, across.high / memory.divisor, left, right);
  const columns = scaled
    .ticks((right - left) / 45)
    .map((value) => svg("text", { x: scaled.place(value), y: HEIGHT - 5, "text-anchor": "middle" }, String(value)));
  return [...lines, ...rows, ...columns];
}

function limitOf(across: Scale, limit: number | null): SVGElement[] {
  if (limit === null || limit >= across.high) return [];
  const x = across.place(Math.max(limit, across.low));
  const beyond = { class: "beyond", x, y: TOP, width: across.place(across.high) - x, height: HEIGHT - BOTTOM - TOP };
  return [svg("rect", beyond), svg("line", { class: "limit", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM })];
}

/** From the left along each makespan to where a shorter one fits. */
function stairOf(rows: readonly ComparisonRow[], across: Scale, up: Scale): string {
  const steps = rows.map((row, at) => {
    const [x, y] = [across.place(row.peak).toFixed(1), up.place(row.makespan).toFixed(1)];
    return at === 0 ? `M${x} ${y}` : `H${x}V${y}`;
  });
  return `${steps.join("")}H${across.place(across.high).toFixed(1)}`;
}

function svg(tag: string, attributes: Readonly<Record<string, string | number>>, text = ""): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== "") element.textContent = text;
  return element;
}
