/** Time against memory as a picture: points that choose, joined by a staircase, and published schedules next to them. */

import { make } from "../dom.js";
import { type Axis, axisOf, staircase } from "../plan/front_axes.js";
import { choosable, grid, svg } from "../plan/front_svg.js";
import { type Box, placeLabels } from "./label_places.js";

const WIDEST = 560;
const NARROWEST = 300;
const HEIGHT = 340;
const LEFT = 62;
const RIGHT = 24;
const TOP = 44;
const BOTTOM = 46;
/** Times beyond this multiple of the shortest one are cut if others are nearer. */
const FAR = 1.5;

export interface ChartPoint {
  readonly x: number;
  readonly y: number;
  readonly name: string;
}

export interface ChosenPoint extends ChartPoint {
  /** Description for screen readers. */
  readonly said: string;
  readonly chosen: boolean;
}

export interface FrontPicture {
  readonly across: string;
  readonly up: string;
  readonly points: readonly ChosenPoint[];
  readonly marks: readonly ChartPoint[];
}

export class FrontChart {
  readonly element = make("figure", { class: "front", hidden: true });

  constructor(private readonly choose: (at: number) => void) {}

  show({ across, up, points, marks }: FrontPicture): void {
    this.element.hidden = points.length === 0;
    if (points.length === 0) return;
    const focused = document.activeElement?.getAttribute("data-point") ?? "";
    const top = reach(points);
    const all = [...points, ...marks.filter((mark) => shows(mark, points, top))];
    const wide = Math.min(WIDEST, Math.max(NARROWEST, this.element.parentElement?.clientWidth ?? WIDEST));
    const [x, y] = axes(
      wide,
      all.map((point) => ({ ...point, y: Math.min(point.y, top) })),
    );
    const places = all.map((point) => ({
      x: x.place(point.x),
      y: point.y > top ? TOP - 8 : y.place(point.y),
      name: point.y > top ? `${point.name} \u2191` : point.name,
    }));
    const stair = places.slice(0, points.length).map((place) => [place.x, place.y] as const);
    const within: Box = { left: LEFT + 2, right: wide - 2, top: 2, bottom: HEIGHT - BOTTOM - 2 };
    const labels = placeLabels(places, stair, within);
    const picture = svg("svg", {
      viewBox: `0 0 ${wide} ${HEIGHT}`,
      role: "group",
      "aria-label": `${up} against ${across}`,
    });
    const frame = { left: LEFT, right: wide - RIGHT, top: TOP, bottom: HEIGHT - BOTTOM };
    picture.append(...grid(frame, x, y, across, up), svg("path", { class: "stair", d: staircase(stair) }));
    for (const place of places.slice(points.length)) {
      picture.append(svg("path", { class: "mark", d: `M${place.x - 4} ${place.y - 4}l8 8m0 -8l-8 8` }));
    }
    picture.append(
      ...labels.map((label, at) =>
        svg("text", { class: at < points.length ? "of-point" : "of-mark", x: label.x, y: label.y }, places[at].name),
      ),
      ...points.map((point, at) => this.point(point, at, places[at])),
    );
    const cut = points.some((point) => point.y > top) ? " Arrows: slower than the axis shows." : "";
    const crosses = marks.length > 0 ? " Crosses: Pareto front of published schedules." : "";
    const text = `Dots: found by this search.${crosses}${cut}`;
    this.element.replaceChildren(picture, make("figcaption", {}, text));
    if (focused !== "") this.element.querySelector<SVGElement>(`[data-point="${focused}"]`)?.focus();
  }

  private point({ said, chosen }: ChosenPoint, at: number, { x, y }: { x: number; y: number }): SVGElement {
    const look = { class: `point filled${chosen ? " selected" : ""}`, cx: x, cy: y, r: 7 };
    return choosable(said, chosen, at, look, () => this.choose(at));
  }
}

/** Test whether a published schedule is near enough to be drawn: a far slower one would press all others together. */
function shows(mark: ChartPoint, points: readonly ChartPoint[], top: number): boolean {
  return mark.y <= top && mark.x <= 2 * Math.max(...points.map((point) => point.x));
}

/** Up to where times are drawn to scale: the schedules of the smallest limits take many times longer than the others. */
function reach(points: readonly ChartPoint[]): number {
  const times = points.map((point) => point.y).sort((one, other) => one - other);
  const top = FAR * times[0];
  return times.filter((time) => time <= top).length >= 2 ? top : times[times.length - 1];
}

function axes(wide: number, points: readonly ChartPoint[]): readonly [Axis, Axis] {
  const across = axisOf(
    points.map((point) => point.x),
    LEFT,
    wide - RIGHT,
  );
  const up = axisOf(
    points.map((point) => point.y),
    HEIGHT - BOTTOM,
    TOP,
  );
  return [across, up];
}
