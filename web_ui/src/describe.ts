/** The description of an op or an idle time, for the tooltip and the status line. */

import { neverRuns } from "./edit_marks.js";
import { memoryScale, memoryText, percent, Times, timeText } from "./format.js";
import { pairOf } from "./pairs.js";
import type { Theme } from "./palette.js";
import { isBeside, Part } from "./part.js";
import type { IdleWindow, Plot } from "./plot.js";
import { type BarRef, sameBar } from "./search.js";

export interface Description {
  readonly title: string;
  readonly kind: string;
  /** The colour of a swatch. */
  readonly fill: string;
  readonly facts: readonly (readonly [string, string])[];
}

const MOST_NAMES = 4;

/** Describe a bar. With `overlaid`, compare it with every other view; otherwise only a plan with a measured run. */
export function describeBar(
  plots: readonly Plot[],
  theme: Theme,
  { view, bar }: BarRef,
  overlaid: boolean,
): Description {
  const plot = plots[view];
  const { source } = plot.view;
  return {
    title: plot.name(bar),
    kind: theme.base.kinds[plot.kindName(bar)].title,
    fill: theme.bars[view].fill[plot.code[bar]],
    facts: [
      ["where", whereOf(plot, bar)],
      neverRuns(plot, bar)
        ? ["time", "never runs"]
        : [source === "order" ? "place" : source === "measured" ? "measured" : "time", spanText(plot, bar)],
      ...communicationOf(plot, bar),
      ...shadeOf(theme, { view, bar }),
      ...othersOf(plots, plot, bar, overlaid),
      ...waitsOf(plot, bar),
      ...memoryOf(plot, bar),
    ],
  };
}

export function describeGap(plot: Plot, theme: Theme, gap: number): Description | null {
  if (plot.gaps === null) return null;
  const { start, end, reason, reasons, cause, lane } = plot.gaps;
  const key = reasons[reason[gap]];
  const facts: [string, string][] = [
    ["where", plot.view.lanes.label[lane[gap]]],
    ["time", intervalText(start[gap], end[gap], plot.view.unit)],
  ];
  if (cause[gap] >= 0) facts.push(["because of", `${plot.name(cause[gap])} on ${laneName(plot, cause[gap])}`]);
  const here = plot.windows.find((window) => {
    return window.lane === lane[gap] && window.start < end[gap] && window.end > start[gap];
  });
  if (here !== undefined) facts.push(["window", windowText(here, plot.view.unit)]);
  return {
    title: "idle",
    kind: theme.base.reasons[key]?.title ?? key,
    fill: theme.gaps[plot.index].fill[reason[gap]],
    facts,
  };
}

const WINDOWS: Readonly<Record<string, string>> = {
  first: "to the first backward",
  trip: "of a round trip",
  last: "from the last forward on",
  owed: "after the last input backward",
};

/** Return the idle time that a memory limit costs in a window: `of a round trip, 9.1 to 13.2: idle 0.6, under the limit 0.5 or more`. */
export function windowText({ kind, start, end, idle, least }: IdleWindow, unit: string): string {
  const form = Times.fine([start, end], end - start, unit);
  const about = `${WINDOWS[kind] ?? kind}, ${form.number(start)} to ${form.text(end)}`;
  return `${about}: idle ${timeText(idle, unit)}, under the memory limit ${timeText(least, unit)} or more`;
}

/** Return an interval with both ends precise enough for its length: `4.25 to 5.5 ms (1.25 ms)`. */
export function intervalText(start: number, end: number, unit: string): string {
  const form = Times.fine([start, end], end - start, unit);
  return `${form.number(start)} to ${form.text(end)} (${timeText(end - start, unit)})`;
}

function spanText(plot: Plot, bar: number): string {
  return intervalText(plot.start[bar], plot.end[bar], plot.view.unit);
}

/** Return the description as one sentence. */
export function sentence({ title, kind, facts }: Description): string {
  return `${title}, ${kind}: ${facts.map(([name, value]) => `${name} ${value}`).join("; ")}`;
}

function whereOf(plot: Plot, bar: number): string {
  const parts = [laneName(plot, bar), `stage ${plot.stage[bar]}`];
  if (plot.view.chunks > 1) parts.push(`chunk ${plot.chunk[bar]}`);
  if (plot.view.copies > 1) parts.push(`direction ${plot.copy[bar]}`);
  if (plot.microbatch[bar] >= 0) parts.push(`microbatch ${plot.microbatch[bar]}`);
  if (plot.slice[bar] > 0) parts.push(`slice ${plot.slice[bar]}`);
  if (plot.part[bar] === Part.UPPER || plot.part[bar] === Part.LOWER) parts.push("overlapped");
  return parts.join(", ");
}

function laneName(plot: Plot, bar: number): string {
  return plot.view.lanes.label[plot.lane[bar]];
}

/** Return the exposed and the hidden communication of the pair of an op, in the time that the pair takes. */
function communicationOf(plot: Plot, bar: number): [string, string][] {
  const ops = pairOf(plot, bar);
  const pair = ops === null ? -1 : (plot.pairs?.of(plot, ops) ?? -1);
  if (plot.pairs === null || pair < 0) return [];
  const scale = (plot.end[bar] - plot.start[bar]) / plot.pairs.time[pair];
  const [exposed, hidden] = [scale * plot.pairs.exposed[pair], scale * plot.pairs.hidden[pair]];
  const form = Times.of([exposed, hidden], plot.view.unit);
  return [[plot.pairs.communication, `exposed ${form.text(exposed)}, hidden ${form.text(hidden)}`]];
}

function shadeOf({ shading }: Theme, { view, bar }: BarRef): [string, string][] {
  const value = shading?.valueOf(view, bar) ?? null;
  return shading === null || value === null ? [] : [[shading.title, shading.text(value)]];
}

/** Return facts about the same op in the other views, compared with this one. */
function othersOf(plots: readonly Plot[], plot: Plot, bar: number, overlaid: boolean): [string, string][] {
  const own = plot.view.source;
  const compared = ({ view: { source } }: Plot) =>
    source !== "order" && own !== "order" && (overlaid || source !== own);
  return plots
    .filter((other) => other !== plot && compared(other))
    .flatMap((other): [string, string][] => {
      const same = sameBar(plot, bar, other);
      if (same < 0) return [];
      const later = other.start[same] - plot.start[bar];
      const longer = other.end[same] - other.start[same] - (plot.end[bar] - plot.start[bar]);
      const form = Times.of([later, longer], other.view.unit);
      const compared = `starts ${form.signed(later)}, lasts ${form.signed(longer)}`;
      return [[other.view.title.slice(0, 24), `${spanText(other, same)}: ${compared} ${form.unit}`.trimEnd()]];
    });
}

function waitsOf(plot: Plot, bar: number): [string, string][] {
  const { links } = plot;
  const holder = links.holder(bar);
  const before = links.before(bar);
  const sources = [...new Set([...links.waitedFor(bar), ...(before >= 0 ? [before] : [])])];
  sources.sort((one, other) => plot.end[other] - plot.end[one]);
  const ends = sources.map((source) => plot.end[source]);
  const form = Times.fine(ends, plot.end[bar] - plot.start[bar], plot.view.unit);
  const texts = sources.map((source) => {
    const rank = plot.lane[source] === plot.lane[bar] ? "" : ` on ${laneName(plot, source)}`;
    return `${plot.name(source)}${rank} until ${form.text(plot.end[source])}${source === holder ? " (held it)" : ""}`;
  });
  const waiting = [...links.waiting(bar)].map((target) => plot.name(target));
  const facts: [string, string][] = [["waited for", texts.length > 0 ? listed(texts) : "nothing"]];
  facts.push(["waits for it", waiting.length > 0 ? listed(waiting) : "nothing"]);
  const idle = plot.start[bar] - (before >= 0 ? plot.end[before] : 0);
  const total = plot.view.makespan;
  if (!isBeside(plot.part[bar]) && idle > 1e-9 * total) {
    facts.push(["idle before", `${timeText(idle, plot.view.unit)} (${percent(idle / total)} of the makespan)`]);
  }
  return facts;
}

function listed(names: readonly string[]): string {
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : "";
  return names.slice(0, MOST_NAMES).join(", ") + more;
}

/** Return the memory of the rank while the op runs. */
function memoryOf(plot: Plot, bar: number): [string, string][] {
  const { memory } = plot;
  if (memory === null) return [];
  const lane = plot.lane[bar];
  const level = memory.level[memory.stepAt(lane, plot.start[bar])];
  const scale = memoryScale(memory.unit, memory.peak[lane]);
  const parameters = memory.parameters?.[memory.stepAt(lane, plot.start[bar])];
  const part = parameters === undefined ? "" : ` (parameters ${memoryText(parameters, scale)})`;
  const peak = memoryText(memory.peak[lane], scale);
  return [["memory", `${memoryText(level, scale)} ${scale.unit}${part}, peak ${peak}`]];
}
