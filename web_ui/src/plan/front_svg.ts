/** SVG elements of time-memory charts: selectable points, axes and grid. */

import type { Axis } from "./front_axes.js";

const SVG = "http://www.w3.org/2000/svg";

type Attributes = Readonly<Record<string, string | number>>;

/** Ends of the axes in a picture. */
export interface Frame {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export function svg(tag: string, attributes: Attributes, text = ""): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== "") element.textContent = text;
  return element;
}

/** A circle that is a button: what it is in words, whether it is chosen, its number among the points. */
export function choosable(
  said: string,
  pressed: boolean,
  at: number,
  attributes: Attributes,
  choose: () => void,
): SVGElement {
  const spoken = { tabindex: 0, role: "button", "aria-label": said, "aria-pressed": String(pressed) };
  const point = svg("circle", { ...attributes, ...spoken, "data-point": at });
  point.append(svg("title", {}, said));
  point.addEventListener("click", choose);
  point.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  });
  return point;
}

/** Lines at the ticks of time, values at both axes, and what they are. */
export function grid(frame: Frame, x: Axis, y: Axis, across: string, up: string): SVGElement[] {
  const { left, right, top, bottom } = frame;
  const lines = y.ticks.flatMap((value) => [
    svg("line", { class: "grid", x1: left, x2: right, y1: y.place(value), y2: y.place(value) }),
    svg("text", { x: left - 8, y: y.place(value) + 4, "text-anchor": "end" }, y.text(value)),
  ]);
  const columns = x.ticks.map((value) =>
    svg("text", { x: x.place(value), y: bottom + 18, "text-anchor": "middle" }, x.text(value)),
  );
  const upward = { transform: `translate(14 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" };
  return [
    ...lines,
    ...columns,
    svg("text", { class: "name", x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, across),
    svg("text", { class: "name", ...upward }, up),
  ];
}
