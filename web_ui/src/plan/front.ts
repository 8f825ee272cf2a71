/** Step time against peak memory, as a picture whose points choose. */

import { make } from "../dom.js";
import { figure } from "../format.js";
import type { Row } from "./candidates.js";
import { type Axis, axisOf, staircase } from "./front_axes.js";
import { choosable, grid, svg } from "./front_svg.js";

const WIDTH = 460;
const HEIGHT = 300;
const LEFT = 66;
const RIGHT = 16;
const TOP = 14;
const BOTTOM = 44;
const FRAME = { left: LEFT, right: WIDTH - RIGHT, top: TOP, bottom: HEIGHT - BOTTOM };

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
    picture.append(...grid(FRAME, across, up, "peak memory, GiB", "step, s"), ...line, this.line(rows, across, up));
    // The chosen one is drawn last, so that no other hides it.
    const order = rows.map((_, at) => at).sort((one, other) => Number(one === selected) - Number(other === selected));
    picture.append(...order.map((at) => this.point(rows[at], at, at === selected, across, up)));
    const limited = line.length > 0 ? ` Line: the memory limit, ${limit.toFixed(1)} GiB.` : "";
    const legend = make(
      "figcaption",
      {},
      `Step time against peak memory. Filled: Pareto front. Ringed: shown here and below.${limited}`,
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
    const look = {
      class: kind,
      cx: across.place(candidate.peak_memory_gib),
      cy: up.place(candidate.step_time_s),
      r: role === "best" ? 8 : 6,
    };
    return choosable(said, selected, at, look, () => this.choose(at));
  }
}
