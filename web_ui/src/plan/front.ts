/** Scatter plot of step time against peak memory with selectable points. */

import { figure } from "../format.js";
import { axisOf, type ScatterPicture, svg } from "../scatter.js";
import type { Row } from "./candidates.js";

const WIDTH = 460;
const HEIGHT = 300;
const FRAME = { left: 66, right: WIDTH - 16, top: 14, bottom: HEIGHT - 44 };

/** Relative difference of two step times up to which predictions do not confirm their order. */
const ALIKE = 0.03;

export function frontPicture(rows: readonly Row[], selected: number, limit: number): ScatterPicture {
  const { left, right, top, bottom } = FRAME;
  const x = axisOf(
    rows.map(({ candidate }) => candidate.peak_memory_gib),
    left,
    right,
  );
  const y = axisOf(
    rows.map(({ candidate }) => candidate.step_time_s),
    bottom,
    top,
  );
  const slowest = Math.max(...rows.map(({ candidate }) => candidate.step_time_s));
  const points = rows.map(({ candidate, role, onFront }, at) => ({
    at,
    x: x.place(candidate.peak_memory_gib),
    y: y.place(candidate.step_time_s),
    radius: role === "best" ? 8 : 6,
    filled: onFront || role === "best",
    selected: at === selected,
    description: `${role}: ${candidate.words}, ${figure(candidate.step_time_s)} s, ${candidate.peak_memory_gib.toFixed(1)} GiB`,
  }));
  // What predictions cannot tell from the fastest: the chosen one is the simplest of these.
  const fitting = rows.filter(({ candidate }) => candidate.peak_memory_gib <= limit);
  const fastest = Math.min(...fitting.map(({ candidate }) => candidate.step_time_s));
  const band = [y.place(Math.min((1 + ALIKE) * fastest, slowest)), y.place(fastest)] as const;
  const named = fitting.flatMap(({ candidate, role }) => {
    const names = [role === "best" ? "chosen" : "", candidate.step_time_s === fastest ? "fastest" : ""].filter(Boolean);
    // The chosen one is no faster than the fastest, so that its name stands above.
    const y1 = y.place(candidate.step_time_s) + (role === "best" ? -14 : 24);
    const place = { x: x.place(candidate.peak_memory_gib), y: y1 };
    return names.length === 0
      ? []
      : [svg("text", { ...place, class: "of-point", "text-anchor": "middle" }, names.join(", "))];
  });
  const across = x.place(limit);
  const limited = across >= left && across <= right;
  const caption =
    "Filled: Pareto front. Ringed: shown below. Shaded: within 3% of the fastest, which predictions cannot tell apart.";
  return {
    width: WIDTH,
    height: HEIGHT,
    frame: FRAME,
    x,
    y,
    across: "peak memory, GiB",
    up: "step, s",
    name: "step time against memory",
    caption: limited ? `${caption} Line: the memory limit, ${limit.toFixed(1)} GiB.` : caption,
    stair: points.filter(({ filled }) => filled).map((point) => [point.x, point.y] as const),
    // The selected point is drawn last, so that no other point hides it.
    points: points.sort((one, other) => Number(one.selected) - Number(other.selected)),
    beside: [
      ...(named.length === 0
        ? []
        : [svg("rect", { class: "alike", x: left, y: band[0], width: right - left, height: band[1] - band[0] })]),
      ...(limited ? [svg("line", { class: "limit", x1: across, x2: across, y1: top, y2: bottom })] : []),
      ...named,
    ],
  };
}
