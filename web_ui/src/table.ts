/** The timelines as tables with a row per rank, for screen readers in place of the picture. */

import { make } from "./dom.js";
import { memoryScale, memoryText, percent, Times } from "./format.js";
import type { Theme } from "./palette.js";
import { isBeside } from "./part.js";
import { figuresOf } from "./picture.js";
import type { Plot } from "./plot.js";

/** Texts of each lane, and of all lanes together. */
interface TableColumn {
  readonly name: string;
  readonly lanes: readonly string[];
  readonly all: string;
}

export function fillTables(element: HTMLElement, plots: readonly Plot[], theme: Theme): void {
  element.replaceChildren(...plots.map((plot) => tableOf(plot, theme)));
}

function tableOf(plot: Plot, theme: Theme): HTMLElement {
  const idle = Float64Array.from(plot.work, (work) => plot.view.makespan - work);
  const times = [...plot.firstStart, ...plot.lastEnd, ...plot.work, ...idle, sum(plot.work), sum(idle)];
  const form = Times.of(times, plot.view.unit);
  const columns = [...timeColumns(plot, idle, form), ...memoryColumns(plot), ...reasonColumns(plot, theme, form)];
  const head = ["rank", ...columns.map(({ name }) => name)].map((name) => make("th", { scope: "col" }, name));
  const body = plot.view.lanes.label.map((label, lane) =>
    rowOf(
      label,
      columns.map(({ lanes }) => lanes[lane]),
    ),
  );
  const foot = rowOf(
    "all",
    columns.map(({ all }) => all),
  );
  const caption = make("caption", {}, make("strong", {}, plot.view.title), ` (${figuresOf(plot)})`);
  const parts = [make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body), make("tfoot", {}, foot)];
  return make(
    "div",
    { class: "pp-table", tabindex: 0, role: "region", "aria-label": `table of ${plot.view.title}` },
    make("table", {}, caption, ...parts),
  );
}

function rowOf(name: string, cells: readonly string[]): HTMLElement {
  return make("tr", {}, make("th", { scope: "row" }, name), ...cells.map((text) => make("td", {}, text)));
}

function columnOf(name: string, values: ArrayLike<number>, all: number, text: (value: number) => string): TableColumn {
  return { name, lanes: Array.from(values, text), all: text(all) };
}

/** Return the parts of the idle time of each lane, rounded so that they add up to it, as busy and idle time do to the makespan. */
function idleColumns(
  plot: Plot,
  form: Times,
  parts: readonly { name: string; values: ArrayLike<number> }[],
): TableColumn[] {
  const written = (busy: number, times: readonly number[]) => form.parts([busy, ...times]).slice(1);
  const lanes = Array.from(plot.work, (busy, lane) =>
    written(
      busy,
      parts.map(({ values }) => values[lane]),
    ),
  );
  const all = written(
    sum(plot.work),
    parts.map(({ values }) => sum(values)),
  );
  return parts.map(({ name }, at) => ({ name, lanes: lanes.map((texts) => texts[at]), all: all[at] }));
}

function timeColumns(plot: Plot, idle: Float64Array, form: Times): TableColumn[] {
  const { makespan } = plot.view;
  const ops = new Int32Array(plot.lanes);
  for (let bar = 0; bar < plot.bars; bar++) if (!isBeside(plot.part[bar])) ops[plot.lane[bar]] += 1;
  const inUnit = (name: string) => (form.unit === "" ? name : `${name} (${form.unit})`);
  const time = (name: string, values: Float64Array, all: number) =>
    columnOf(inUnit(name), values, all, (value) => form.number(value));
  const share = (value: number) => (makespan > 0 ? value / makespan : 0);
  return [
    columnOf("ops", ops, sum(ops), (value) => value.toLocaleString("en")),
    time("first start", plot.firstStart, Math.min(...plot.firstStart)),
    time("last end", plot.lastEnd, Math.max(...plot.lastEnd)),
    time("busy", plot.work, sum(plot.work)),
    ...idleColumns(plot, form, [{ name: inUnit("idle"), values: idle }]),
    columnOf("idle share", idle.map(share), share(sum(idle)) / plot.lanes, percent),
  ];
}

function memoryColumns({ memory }: Plot): TableColumn[] {
  if (memory === null) return [];
  const scale = memoryScale(memory.unit, Math.max(...memory.peak));
  const text = (value: number) => memoryText(value, scale);
  const column = (name: string, values: Float64Array) => columnOf(name, values, Math.max(...values), text);
  const peak = column(`peak memory (${scale.unit})`, memory.peak);
  return memory.limit === null ? [peak] : [peak, column("limit", memory.limit)];
}

/** Return the reasons for which any rank idles; their times add up to its idle time. */
function reasonColumns(plot: Plot, theme: Theme, form: Times): TableColumn[] {
  const { gaps } = plot;
  const parts = (gaps?.totals ?? []).flatMap((values, reason) => {
    const key = gaps?.reasons[reason] ?? "";
    const name = `idle: ${theme.base.reasons[key]?.title ?? key}`;
    return sum(values) > 0 ? [{ name, values }] : [];
  });
  return idleColumns(plot, form, parts);
}

function sum(values: ArrayLike<number>): number {
  return Array.prototype.reduce.call(values, (total, value) => (total as number) + (value as number), 0) as number;
}
