/** The timelines as tables with a row per rank: what a screen reader reads instead of the picture. */

import { make } from "./dom.js";
import { memoryScale, memoryText, percent, Times } from "./format.js";
import type { Theme } from "./palette.js";
import { Part } from "./part.js";
import { figuresOf } from "./picture.js";
import type { Plot } from "./plot.js";

/** A value of each lane, and of all of them together. */
interface TableColumn {
  readonly name: string;
  readonly values: ArrayLike<number>;
  readonly all: number;
  text(value: number): string;
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
      columns.map(({ values, text }) => text(values[lane])),
    ),
  );
  const foot = rowOf(
    "all",
    columns.map(({ all, text }) => text(all)),
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

function timeColumns(plot: Plot, idle: Float64Array, form: Times): TableColumn[] {
  const { makespan } = plot.view;
  const ops = new Int32Array(plot.lanes);
  for (let bar = 0; bar < plot.bars; bar++) if (plot.part[bar] !== Part.STRIP) ops[plot.lane[bar]] += 1;
  const time = (name: string, values: Float64Array, all: number): TableColumn => ({
    name: form.unit === "" ? name : `${name} (${form.unit})`,
    values,
    all,
    text: (value) => form.number(value),
  });
  const share = (value: number) => (makespan > 0 ? value / makespan : 0);
  return [
    { name: "ops", values: ops, all: sum(ops), text: (value) => value.toLocaleString("en") },
    time("first start", plot.firstStart, Math.min(...plot.firstStart)),
    time("last end", plot.lastEnd, Math.max(...plot.lastEnd)),
    time("busy", plot.work, sum(plot.work)),
    time("idle", idle, sum(idle)),
    { name: "idle share", values: idle.map(share), all: share(sum(idle)) / plot.lanes, text: percent },
  ];
}

function memoryColumns({ memory }: Plot): TableColumn[] {
  if (memory === null) return [];
  const scale = memoryScale(memory.unit, Math.max(...memory.peak));
  const text = (value: number) => memoryText(value, scale);
  const column = (name: string, values: Float64Array) => ({ name, values, all: Math.max(...values), text });
  const peak = column(`peak memory (${scale.unit})`, memory.peak);
  return memory.limit === null ? [peak] : [peak, column("limit", memory.limit)];
}

/** The reasons for which any rank idles: together, they are its idle time. */
function reasonColumns({ gaps }: Plot, theme: Theme, form: Times): TableColumn[] {
  return (gaps?.totals ?? []).flatMap((values, reason) => {
    const key = gaps?.reasons[reason] ?? "";
    const all = sum(values);
    const name = `idle: ${theme.base.reasons[key]?.title ?? key}`;
    return all > 0 ? [{ name, values, all, text: (value: number) => form.number(value) }] : [];
  });
}

function sum(values: ArrayLike<number>): number {
  return Array.prototype.reduce.call(values, (total, value) => (total as number) + (value as number), 0) as number;
}
