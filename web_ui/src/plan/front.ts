/** Step time against peak memory, as a picture whose points choose. */

import { make } from "../dom.js";
import { figure } from "../format.js";
import type { Row } from "./candidates.js";
import { type Axis, axisOf, staircase } from "./front_axes.js";

const WIDTH = 460;
const HEIGHT = 300;
const LEFT = 66;
const RIGHT = 16;
const TOP = 14;
const BOTTOM = 44;
const SVG = "http://www.w3.org/2000/svg";

export class FrontPicture {
  readonly element = make("figure", { class: "front" });

  constructor(private readonly choose: (at: number) => void) {}

  show(rows: readonly Row[], selected: number, limit: number): void {
    const focused = document.activeElement?.getAttribute("data-point") ?? "";
    const across = axisOf(
      rows.map(({ candidate }) => candidate.peak_memory_gib),
      LEFT,
      WIDTH - RIGHT,
    );
    const up = axisOf(
      rows.map(({ candidate }) => candidate.step_time_s),
      HEIGHT - BOTTOM,
      TOP,
    );
    const picture = svg("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "group",
      "aria-label": "step time against memory",
    });
    const line = this.limit(across, limit);
    picture.append(...grid(across, up), ...line, this.line(rows, across, up));
    // The chosen one is drawn last, so that no other hides it.
    const order = rows.map((_, at) => at).sort((one, other) => Number(one === selected) - Number(other === selected));
    picture.append(...order.map((at) => this.point(rows[at], at, at === selected, across, up)));
    const limited = line.length > 0 ? ` Line: the memory limit, ${limit.toFixed(1)} GiB.` : "";
    const legend = make(
      "figcaption",
      {},
      `Step time against peak memory. Filled: no other is better in both. Ringed: shown here and below.${limited}`,
    );
    this.element.replaceChildren(picture, legend);
    if (focused !== "") this.element.querySelector<SVGElement>(`[data-point="${focused}"]`)?.focus();
  }

  private limit(across: Axis, limit: number): SVGElement[] {
    const place = across.place(limit);
    if (place < LEFT || place > WIDTH - RIGHT) return [];
    return [svg("line", { class: "limit", x1: place, x2: place, y1: TOP, y2: HEIGHT - BOTTOM })];
  }

  private line(rows: readonly Row[], across: Axis, up: Axis): SVGElement {
    const points = rows
      .filter(({ onFront, role }) => onFront || role === "best")
      .map(({ candidate }) => [across.place(candidate.peak_memory_gib), up.place(candidate.step_time_s)] as const);
    return svg("path", { class: "stair", d: staircase(points) });
  }

  private point(row: Row, at: number, selected: boolean, across: Axis, up: Axis): SVGElement {
    const { candidate, role, onFront } = row;
    const said = `${role}: ${candidate.words}, ${figure(candidate.step_time_s)} s, ${candidate.peak_memory_gib.toFixed(1)} GiB`;
    const kind = `${role === "best" || onFront ? "point filled" : "point"}${selected ? " selected" : ""}`;
    const point = svg("circle", {
      class: kind,
      cx: across.place(candidate.peak_memory_gib),
      cy: up.place(candidate.step_time_s),
      r: role === "best" ? 8 : 6,
      tabindex: 0,
      role: "button",
      "aria-label": said,
      "aria-pressed": String(selected),
      "data-point": at,
    });
    point.append(svg("title", {}, said));
    point.addEventListener("click", () => this.choose(at));
    point.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.choose(at);
    });
    return point;
  }
}

function grid(across: Axis, up: Axis): SVGElement[] {
  const lines = up.ticks.flatMap((value) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: up.place(value), y2: up.place(value) }),
    svg("text", { x: LEFT - 8, y: up.place(value) + 4, "text-anchor": "end" }, up.text(value)),
  ]);
  const columns = across.ticks.map((value) =>
    svg("text", { x: across.place(value), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, across.text(value)),
  );
  const names = [
    svg(
      "text",
      { class: "name", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" },
      "peak memory, GiB",
    ),
    svg(
      "text",
      { class: "name", transform: `translate(14 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" },
      "step, s",
    ),
  ];
  return [...lines, ...columns, ...names];
}

function svg(tag: string, attributes: Readonly<Record<string, string | number>>, text = ""): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== "") element.textContent = text;
  return element;
}
