/** Scatter plot of time against memory: selectable points joined by a staircase, and the published schedules. */

import { axisOf, type ScatterPicture, svg } from "../scatter.js";
import { placeLabels } from "./label_places.js";

const WIDEST = 560;
const NARROWEST = 300;
const HEIGHT = 340;
const LEFT = 62;
const TOP = 44;
const BOTTOM = HEIGHT - 46;
/** Multiple of the shortest time above which times are clipped, if at least two are below it. */
const FAR = 1.5;

export interface ChartPoint {
  readonly x: number;
  readonly y: number;
  readonly name: string;
}

export interface SelectablePoint extends ChartPoint {
  /** Description for screen readers. */
  readonly description: string;
  readonly selected: boolean;
}

/** Return the picture of one or more points and of the published schedules, for a width in pixels. */
export function frontPicture(
  across: string,
  up: string,
  points: readonly SelectablePoint[],
  marks: readonly ChartPoint[],
  room: number,
): ScatterPicture {
  const top = reach(points);
  const all = [...points, ...marks.filter((mark) => shows(mark, points, top))];
  const width = Math.min(WIDEST, Math.max(NARROWEST, room));
  const frame = { left: LEFT, right: width - 24, top: TOP, bottom: BOTTOM };
  const x = axisOf(
    all.map((point) => point.x),
    LEFT,
    frame.right,
  );
  const y = axisOf(
    all.map((point) => Math.min(point.y, top)),
    BOTTOM,
    TOP,
  );
  const places = all.map((point) => ({
    x: x.place(point.x),
    y: point.y > top ? TOP - 8 : y.place(point.y),
    name: point.y > top ? `${point.name} \u2191` : point.name,
  }));
  const stair = places.slice(0, points.length).map((place) => [place.x, place.y] as const);
  const labels = placeLabels(places, stair, { left: LEFT + 2, right: width - 2, top: 2, bottom: BOTTOM - 2 });
  const crosses = places
    .slice(points.length)
    .map((place) => svg("path", { class: "mark", d: `M${place.x - 4} ${place.y - 4}l8 8m0 -8l-8 8` }));
  const names = labels.map((label, at) =>
    svg("text", { class: at < points.length ? "of-point" : "of-mark", x: label.x, y: label.y }, places[at].name),
  );
  const published = marks.length > 0 ? " Crosses: Pareto front of published schedules." : "";
  const cut = points.some((point) => point.y > top) ? " Arrows: slower than the axis shows." : "";
  return {
    width,
    height: HEIGHT,
    frame,
    x,
    y,
    across,
    up,
    name: `${up} against ${across}`,
    caption: `Dots: found by this search.${published}${cut}`,
    stair,
    points: points.map(({ description, selected }, at) => ({
      ...{ at, description, selected, x: places[at].x, y: places[at].y },
      radius: 7,
      filled: true,
    })),
    beside: [...crosses, ...names],
  };
}

/** Return whether a published schedule is drawn: a much slower one would compress the scale of all others. */
function shows(mark: ChartPoint, points: readonly ChartPoint[], top: number): boolean {
  return mark.y <= top && mark.x <= 2 * Math.max(...points.map((point) => point.x));
}

/** Return the longest time that is drawn to scale: schedules under the smallest limits take many times longer than the others. */
function reach(points: readonly ChartPoint[]): number {
  const times = points.map((point) => point.y).sort((one, other) => one - other);
  const top = FAR * times[0];
  return times.filter((time) => time <= top).length >= 2 ? top : times[times.length - 1];
}
