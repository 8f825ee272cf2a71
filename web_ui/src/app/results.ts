/** The comparison as a table: a row per schedule, the best first, then the schedules that are not possible and why. */

import { make } from "../dom.js";
import { memoryScale, memoryText, peakName, percent, type Scale, Times } from "../format.js";
import { missingOf, needsText } from "../needs.js";
import { scroller } from "../scroller.js";
import type { Comparison, Result } from "./api.js";
import { barScale, barShare } from "./bars.js";
import { type Choice, memoryFor, peakOf } from "./rows.js";

/** A column; those that are not `usual` show on request. */
interface Column {
  readonly usual: boolean;
  readonly heading: string;
  readonly title: string;
  cell(result: Result): string | Node;
}

export class ResultTable {
  readonly element = make("div", { class: "results" });

  constructor(private readonly choice: Choice) {}

  show(comparison: Comparison, all: boolean): void {
    const { results } = comparison;
    const visible = columns(comparison).filter(({ usual }) => usual || all);
    const scale = memoryFor(results);
    const rows = results.flatMap((result, at) => [
      ...groupRow(comparison, at, visible.length),
      this.row(result, visible, scale, comparison.drawn.includes(result.schedule)),
    ]);
    const refused = comparison.refused.map((refusal) => refusedRow(refusal.schedule, refusal.message, visible.length));
    const head = make(
      "tr",
      {},
      make("th", { scope: "col", class: "box", title: "select the timelines to show" }, "show"),
      make("th", { scope: "col" }, "schedule"),
      ...visible.map(({ heading, title }) => make("th", { scope: "col", title }, heading)),
    );
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows, ...refused));
    this.element.classList.toggle("all", all);
    this.element.replaceChildren(scroller("comparison", table, all ? "" : "tall"));
  }

  private row(result: Result, visible: readonly Column[], scale: Scale, shows: boolean): HTMLElement {
    const name = result.schedule;
    const cells = visible.map(({ cell }) => make("td", {}, cell(result)));
    const kind = `${shows ? "shows" : ""}${result.over === null ? "" : " excluded"}`;
    const row = make("tr", { class: kind }, this.box(name, shows), this.name(result, scale), ...cells);
    row.addEventListener("click", (event) => {
      if (event.target instanceof HTMLTableCellElement) this.choice.only(name);
    });
    return row;
  }

  private box(name: string, shows: boolean): HTMLElement {
    const box = make("input", {
      type: "checkbox",
      "aria-label": `show the timeline of ${name}`,
      "data-key": `box ${name}`,
    });
    box.checked = shows;
    box.addEventListener("change", () => this.choice.beside(name, box.checked));
    return make("td", { class: "box" }, box);
  }

  private name(result: Result, scale: Scale): HTMLElement {
    const name = result.schedule;
    const link = make(
      "button",
      { type: "button", class: "link", title: `show ${name} alone`, "data-key": `name ${name}` },
      name,
    );
    link.addEventListener("click", () => this.choice.only(name));
    const cell = make("th", { scope: "row" }, link);
    if (result.over !== null) cell.append(" ", make("span", { class: "over under" }, ...overText(result.over, scale)));
    return cell;
  }
}

function columns(comparison: Comparison): readonly Column[] {
  const { results } = comparison;
  const unit = results[0]?.time_unit ?? "";
  const values = [...results.map((result) => result.makespan), ...results.map(boundOf), ...results.map(longestOf)];
  const times = Times.of(values, unit);
  const bars = barScale(comparison);
  const scale = memoryFor(results);
  const inUnit = times.unit === "" ? "" : `, ${times.unit}`;
  // Names and order are those of the shell's table (api/comparing/columns.py).
  return [
    {
      usual: false,
      heading: "chunks",
      title: "model chunks per rank",
      cell: (result) => String(result.chunks),
    },
    {
      usual: true,
      heading: `makespan${inUnit}`,
      title: "time from 0 to the end of the last op; bars begin at the bound",
      cell: (result) =>
        withBar(times.number(result.makespan), result.over === null ? barShare(result.makespan, bars) : null),
    },
    {
      usual: false,
      heading: `longest span${inUnit}`,
      title: "longest time from the first start to the last end of a rank",
      cell: (result) => times.number(longestOf(result)),
    },
    {
      usual: true,
      heading: "bubble",
      title: "idle time / total time",
      cell: (result) => percent(result.bubble.idle_over_total),
    },
    {
      usual: false,
      heading: "over ideal",
      title: "idle time / busy time",
      cell: (result) => percent(result.bubble.over_ideal),
    },
    {
      usual: false,
      heading: "of span",
      title: "idle time within the longest span",
      cell: (result) => percent(result.bubble.span),
    },
    {
      usual: true,
      heading: peakName(scale.unit),
      title:
        scale.unit === "activations"
          ? "peak memory of the fullest rank, in activations: 1 is one microbatch on all chunks of a rank"
          : "peak memory of the fullest rank",
      cell: (result) => memoryText(peakOf(result), scale),
    },
    {
      usual: false,
      heading: "lower bound",
      title: "no schedule of this placement and these costs is faster",
      cell: (result) => make("span", { title: result.bound_reason }, times.number(boundOf(result))),
    },
    {
      usual: true,
      heading: "gap",
      title: "optimality gap: makespan above the lower bound of its placement",
      cell: ({ gap }) => gapText(gap),
    },
    {
      usual: false,
      heading: "gap (any)",
      title:
        "makespan above the best lower bound of any placement and number of chunks here, of schedules that need no more than this one",
      cell: ({ least_gap: gap }) => gapText(gap),
    },
  ];
}

function longestOf(result: Result): number {
  return Math.max(...result.spans);
}

function boundOf(result: Result): number {
  return result.lower_bound;
}

/** A schedule over its memory limit has no optimality gap: the bound holds for schedules within the limit. */
function gapText(gap: number | null | undefined): string {
  return gap == null ? "\u2013" : percent(Math.max(gap, 0));
}

/** Return the rank that exceeds its limit, and by how much; a limit in activations keeps its unit next to memory in bytes. */
function overText({ rank, peak, limit, unit }: NonNullable<Result["over"]>, scale: Scale): (Node | string)[] {
  const same = (unit === "bytes") === (scale.unit !== "activations");
  const form = same ? scale : memoryScale(unit, peak);
  const name = form.unit === "activations" ? "act." : form.unit;
  return [
    "over: ",
    make("span", {}, `rank ${rank} holds `),
    `${memoryText(peak, form)} of ${memoryText(limit, form)} ${name}`,
  ];
}

function withBar(text: string, share: number | null): HTMLElement {
  const number = make("span", { class: "number" }, text);
  if (share === null) return make("span", { class: "with-bar" }, number);
  const fill = make("span", { class: "bar" });
  fill.style.width = `${100 * share}%`;
  return make("span", { class: "with-bar" }, make("span", { class: "track", "aria-hidden": "true" }, fill), number);
}

/** Return the heading of a group of schedules: what they need beyond what is allowed. Empty within a group. */
function groupRow({ allowed, results }: Comparison, at: number, columns: number): HTMLElement[] {
  const more = (place: number) => missingOf(results[place]?.needs ?? [], allowed);
  const needs = more(at);
  if (needs.length === 0 || (at > 0 && more(at - 1).join() === needs.join())) return [];
  const text = `with ${needsText(needs)}`;
  return [make("tr", { class: "group" }, make("td", { class: "box" }), make("th", { colspan: columns + 1 }, text))];
}

function refusedRow(name: string, message: string, columns: number): HTMLElement {
  return make(
    "tr",
    { class: "refused" },
    make("td", { class: "box" }),
    make("th", { scope: "row" }, name),
    make("td", { colspan: columns }, message),
  );
}
