/** The timelines as tables with a row per rank: what a screen reader reads instead of the picture. */

import { make } from "./dom.js";
import { memoryScale, memoryText, percent, Times } from "./format.js";
import type { Theme } from "./palette.js";
import { Part } from "./part.js";
import { figuresOf } from "./picture.js";
import type { Plot } from "./plot.js";

export function fillTables(element: HTMLElement, plots: readonly Plot[], theme: Theme): void {
  element.replaceChildren(...plots.map((plot) => tableOf(plot, theme)));
}

function tableOf(plot: Plot, theme: Theme): HTMLElement {
  const idle = Float64Array.from(plot.work, (work) => plot.view.makespan - work);
  const form = Times.of([...plot.firstStart, ...plot.lastEnd, ...plot.work, ...idle], plot.view.unit);
  const columns = [...timeColumns(plot, idle, form), ...memoryColumns(plot), ...reasonColumns(plot, theme, form)];
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "rank"),
    ...columns.map(([name]) => make("th", { scope: "col" }, name)),
  );
  const body = plot.view.lanes.label.map((label, lane) =>
    make("tr", {}, make("th", { scope: "row" }, label), ...columns.map(([, value]) => make("td", {}, value(lane)))),
  );
  const caption = make("caption", {}, make("strong", {}, plot.view.title), ` (${figuresOf(plot)})`);
  const table = make("table", {}, caption, make("thead", {}, head), make("tbody", {}, ...body));
  return make(
    "div",
    { class: "pp-table", tabindex: 0, role: "region", "aria-label": `table of ${plot.view.title}` },
    table,
  );
}

type TableColumn = readonly [string, (lane: number) => string];

function timeColumns(plot: Plot, idle: Float64Array, form: Times): TableColumn[] {
  const { makespan } = plot.view;
  const time = (name: string) => (form.unit === "" ? name : `${name} (${form.unit})`);
  const ops = new Int32Array(plot.lanes);
  for (let bar = 0; bar < plot.bars; bar++) if (plot.part[bar] !== Part.STRIP) ops[plot.lane[bar]] += 1;
  return [
    ["ops", (lane) => String(ops[lane])],
    [time("first start"), (lane) => form.number(plot.firstStart[lane])],
    [time("last end"), (lane) => form.number(plot.lastEnd[lane])],
    [time("busy"), (lane) => form.number(plot.work[lane])],
    [time("idle"), (lane) => form.number(idle[lane])],
    ["idle share", (lane) => percent(makespan > 0 ? idle[lane] / makespan : 0)],
  ];
}

function memoryColumns({ memory }: Plot): TableColumn[] {
  if (memory === null) return [];
  const scale = memoryScale(memory.unit, Math.max(...memory.peak));
  const { limit, peak } = memory;
  const columns: TableColumn[] = [[`peak memory (${scale.unit})`, (lane) => memoryText(peak[lane], scale)]];
  if (limit !== null) columns.push(["limit", (lane) => memoryText(limit[lane], scale)]);
  return columns;
}

function reasonColumns({ gaps, lanes }: Plot, theme: Theme, form: Times): TableColumn[] {
  if (gaps === null) return [];
  const totals = new Float64Array(gaps.reasons.length * lanes);
  for (let gap = 0; gap < gaps.lane.length; gap++) {
    totals[gaps.reason[gap] * lanes + gaps.lane[gap]] += gaps.end[gap] - gaps.start[gap];
  }
  const used = gaps.reasons
    .map((key, reason) => ({ key, reason }))
    .filter(({ reason }) => gaps.reason.includes(reason));
  return used.map(({ key, reason }) => [
    `idle: ${theme.base.reasons[key]?.title ?? key}`,
    (lane) => form.number(totals[reason * lanes + lane]),
  ]);
}
