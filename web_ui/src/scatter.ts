/** Scatter plots of time against memory: axes, a staircase of selectable points, a limit, and other points with names. */

import { make } from "./dom.js";
import { scaleOf } from "./scale.js";

const SVG = "http://www.w3.org/2000/svg";

type Attributes = Readonly<Record<string, string | number>>;

export function svg(tag: string, attributes: Attributes, text = ""): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== "") element.textContent = text;
  return element;
}

export interface Axis {
  place(value: number): number;
  readonly ticks: readonly number[];
  text(value: number): string;
}

/** Approximate number of values written at an axis. */
const TICKS = 5;

/** Return an axis that contains all values with a margin around them. */
export function axisOf(values: readonly number[], from: number, to: number): Axis {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = high > low ? 0.08 * (high - low) : 0.1 * Math.max(high, 1e-9);
  const scale = scaleOf(Math.max(0, low - room), high + room, from, to);
  const ticks = scale.ticks(TICKS);
  const digits = Math.max(0, -Math.floor(Math.log10(ticks[1] - ticks[0]) + 1e-9));
  return { place: scale.place, ticks, text: (value) => value.toFixed(digits) };
}

type Place = readonly [x: number, y: number];

/** Return a path along points from left to right that goes down at each next point. */
export function staircase(points: readonly Place[]): string {
  const sorted = [...points].sort((one, other) => one[0] - other[0]);
  return sorted
    .map(([x, y], at) => (at === 0 ? `M${x.toFixed(1)} ${y.toFixed(1)}` : `H${x.toFixed(1)}V${y.toFixed(1)}`))
    .join("");
}

/** Ends of the axes in a picture. */
export interface Frame {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Return lines at the ticks of time, and values at both axes. */
export function grid({ left, right, bottom }: Frame, x: Axis, y: Axis): SVGElement[] {
  const lines = y.ticks.flatMap((value) => [
    svg("line", { class: "grid", x1: left, x2: right, y1: y.place(value), y2: y.place(value) }),
    svg("text", { x: left - 8, y: y.place(value) + 4, "text-anchor": "end" }, y.text(value)),
  ]);
  const columns = x.ticks.map((value) =>
    svg("text", { x: x.place(value), y: bottom + 18, "text-anchor": "middle" }, x.text(value)),
  );
  return [...lines, ...columns];
}

export interface ScatterPoint {
  /** Number of the point, which `choose` receives. */
  readonly at: number;
  readonly x: number;
  readonly y: number;
  readonly radius: number;
  readonly filled: boolean;
  readonly selected: boolean;
  /** Description for screen readers. */
  readonly description: string;
}

export interface ScatterPicture {
  readonly width: number;
  readonly height: number;
  readonly frame: Frame;
  readonly x: Axis;
  readonly y: Axis;
  /** Titles of the axes. */
  readonly across: string;
  readonly up: string;
  /** Name for screen readers. */
  readonly name: string;
  readonly caption: string;
  readonly stair: readonly Place[];
  /** Points in drawing order: later ones cover earlier ones. */
  readonly points: readonly ScatterPoint[];
  /** Elements that are drawn between the staircase and the points. */
  readonly beside: readonly SVGElement[];
}

export class Scatter {
  readonly element = make("figure", { class: "front" });

  constructor(private readonly choose: (at: number) => void) {}

  show(picture: ScatterPicture): void {
    const { width, height, frame, x, y, beside, points } = picture;
    const focused = document.activeElement?.getAttribute("data-point") ?? "";
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": picture.name });
    root.append(
      ...grid(frame, x, y),
      ...titles(frame, picture.across, picture.up),
      svg("path", { class: "stair", d: staircase(picture.stair) }),
      ...beside,
      ...points.map((point) => this.point(point)),
    );
    this.element.replaceChildren(root, make("figcaption", {}, picture.caption));
    if (focused !== "") this.element.querySelector<SVGElement>(`[data-point="${focused}"]`)?.focus();
  }

  /** Return a circle that acts as a button. */
  private point({ at, x, y, radius, filled, selected, description }: ScatterPoint): SVGElement {
    const look = { class: `point${filled ? " filled" : ""}${selected ? " selected" : ""}`, cx: x, cy: y, r: radius };
    const spoken = { tabindex: 0, role: "button", "aria-label": description, "aria-pressed": String(selected) };
    const point = svg("circle", { ...look, ...spoken, "data-point": at });
    point.append(svg("title", {}, description));
    point.addEventListener("click", () => this.choose(at));
    point.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.choose(at);
    });
    return point;
  }
}

function titles({ left, right, top, bottom }: Frame, across: string, up: string): SVGElement[] {
  const upward = { transform: `translate(14 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" };
  return [
    svg("text", { class: "name", x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, across),
    svg("text", { class: "name", ...upward }, up),
  ];
}
