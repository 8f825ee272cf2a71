/** Legend of the colours, on the page and below an exported picture. */

import { make } from "./dom.js";
import { percent, Times } from "./format.js";
import type { Shading, Theme } from "./palette.js";
import type { Plot } from "./plot.js";
import type { State } from "./state.js";
import type { Surface } from "./surface.js";

/** Note for ops that are narrower than a pixel. */
export const FINE_NOTE = "ops too small to draw: colours show shares of the time";

/** Note for the lanes of overlapped pairs. */
const LANES_NOTE = "below wide pairs: their computation, then their communication";

export interface Entry {
  /** Text before the colours of a scale. */
  readonly before?: string;
  readonly fills: readonly string[];
  readonly title: string;
}

const TWINS: Record<string, string> = { RECV_F: "SEND_F", RECV_B: "SEND_B" };
const TWIN_TITLES: Record<string, string> = { SEND_F: "messages forward", SEND_B: "messages backward" };
const SIZE = 12;
const SWATCH = 12;
const LINE = 22;

/** Return the entries of the plots: each swatch once, and the visible reasons for idle time. */
export function legendEntries(plots: readonly Plot[], theme: Theme, state: State): Entry[] {
  const { shading } = theme;
  const own = plots.filter((plot) => shading?.colours(plot.index) !== true);
  const scale = shading !== null && own.length < plots.length ? [scaleEntry(shading, theme)] : [];
  return [...scale, ...kindEntries(own, theme), ...(state.gaps ? reasonEntries(plots, theme) : [])];
}

/** Return the colour scale, with the meaning of its ends. */
function scaleEntry(shading: Shading, theme: Theme): Entry {
  const [low, high] = shading.ends;
  return {
    before: `${shading.title}: ${(1 / shading.reach).toFixed(2)} (${low})`,
    fills: shading.ramp(theme.name, 9),
    title: `${shading.reach.toFixed(2)} (${high})`,
  };
}

function kindEntries(plots: readonly Plot[], theme: Theme): Entry[] {
  if (plots.length === 0) return [];
  const themed = theme.withShades(Math.max(...plots.map((plot) => plot.shades)));
  const kinds = new Set(plots.flatMap((plot) => [...new Set(plot.kind)].map((kind) => plot.view.kinds[kind])));
  const visible = plots[0].view.kinds.filter((kind) => kinds.has(kind) && !kinds.has(TWINS[kind]));
  const entries: Entry[] = visible.map((kind) => {
    const { fill, title } = themed.kinds[kind];
    return { fills: [...new Set(fill)], title: TWIN_TITLES[kind] ?? title };
  });
  const shades = shadesMean(plots);
  if (shades !== null) entries.push({ fills: [], title: shades });
  if (plots.some(({ pairs }) => pairs !== null)) entries.push({ fills: [], title: LANES_NOTE });
  return entries;
}

function reasonEntries(plots: readonly Plot[], theme: Theme): Entry[] {
  const used = new Set(
    plots.flatMap(({ gaps }) => (gaps === null ? [] : [...new Set(gaps.reason)].map((at) => gaps.reasons[at]))),
  );
  return Object.entries(theme.base.reasons)
    .filter(([key]) => used.has(key))
    .map(([key, { fill, title }]) => ({ fills: [fill], title: `idle: ${title}${totalOf(plots, key)}` }));
}

/** Return ` 13.5 (8.2%)`: the idle time for a reason of a single timeline, and its share of the total time of the ranks. */
function totalOf(plots: readonly Plot[], key: string): string {
  const [plot] = plots;
  if (plots.length > 1 || plot.gaps === null) return "";
  const { makespan, unit } = plot.view;
  const totals = plot.gaps.totals.map((lanes) => lanes.reduce((sum, time) => sum + time, 0));
  const time = totals[plot.gaps.reasons.indexOf(key)];
  return ` ${Times.of(totals, unit).text(time)} (${percent(time / (plot.lanes * makespan))})`;
}

/** Return the meaning of light and dark shades in all plots. */
function shadesMean(plots: readonly Plot[]): string | null {
  const chunks = Math.max(...plots.map((plot) => plot.view.chunks));
  const meanings = chunks > 1 ? [`chunks 0 to ${chunks - 1}`] : [];
  if (plots.some((plot) => plot.view.copies > 1)) meanings.push("directions 0 and 1");
  return meanings.length > 0 ? `dark to light: ${meanings.join("; ")}` : null;
}

export function fillLegend(element: HTMLElement, entries: readonly Entry[]): void {
  element.replaceChildren(
    ...entries.map(({ before, fills, title }) => {
      const swatches = fills.map((fill) => {
        const swatch = make("span", { class: "pp-swatch" });
        swatch.style.background = fill;
        return swatch;
      });
      const colours = make("span", { class: "pp-swatches", "aria-hidden": "true" }, ...swatches);
      return before === undefined
        ? make("li", {}, colours, title)
        : make("li", { class: "pp-scale" }, `${before} `, colours, title);
    }),
    make("li", { class: "pp-fine-note" }, FINE_NOTE),
  );
}

/** Draw the entries below `top`, in rows of this width; return their height. */
export function drawLegend(
  surface: Surface,
  entries: readonly Entry[],
  theme: Theme,
  left: number,
  top: number,
  width: number,
): number {
  let x = left;
  let y = top + LINE / 2;
  for (const { before, fills, title } of entries) {
    const lead = before === undefined ? 0 : surface.textWidth(before, SIZE) + 6;
    const needed = lead + fills.length * SWATCH + 6 + surface.textWidth(title, SIZE) + 18;
    if (x > left && x + needed > left + width) [x, y] = [left, y + LINE];
    if (before !== undefined) surface.text(before, x, y, { fill: theme.base.text, size: SIZE });
    fills.forEach((fill, at) => {
      surface.rect(x + lead + at * SWATCH, y - SWATCH / 2, SWATCH, SWATCH, fill);
    });
    const at = x + lead + fills.length * SWATCH + (fills.length > 0 ? 6 : 0);
    surface.text(title, at, y, { fill: theme.base.text, size: SIZE });
    x += needed;
  }
  return y + LINE / 2 - top;
}
