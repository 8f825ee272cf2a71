/** The comparison as a table: a row per schedule, the best first, then the schedules that are not possible and why. */

import { button, make } from "../dom.js";
import { memoryScale, memoryText, peakName, percent, type Scale, Times } from "../format.js";
import { missingOf, needsText } from "../needs.js";
import { scroller } from "../scroller.js";
import type { Comparison, Result } from "./api.js";
import { type Bar, barsOf } from "./bars.js";

export interface Choice {
  /** Show only the timeline of this schedule. */
  only(name: string): void;
  /** Show or hide the timeline of this schedule next to the others. */
  beside(name: string, shows: boolean): void;
}

/** A column; `key` is its CSS class, by which narrow pages hide it. Columns that are not `usual` show on request. */
interface Column {
  readonly key: string;
  readonly usual: boolean;
  readonly heading: string;
  readonly title: string;
  cell(result: Result): string | Node;
}

export class ResultTable {
  readonly element = make("div", { class: "results" });
  private readonly more = button("All columns", "show all columns", () => this.toggle());
  private all = false;
  private comparison: Comparison | null = null;

  constructor(private readonly choice: Choice) {
    this.more.classList.add("quiet");
    this.more.setAttribute("aria-pressed", "false");
  }

  show(comparison: Comparison): void {
    this.comparison = comparison;
    const { results } = comparison;
    const visible = columns(results).filter(({ usual }) => usual || this.all);
    const scale = scaleOf(results);
    const rows = results.flatMap((result, at) => [
      ...groupRow(comparison, at, visible.length),
      this.row(result, visible, scale, comparison.drawn.includes(result.schedule)),
    ]);
    const refused = comparison.refused.map((refusal) => refusedRow(refusal.schedule, refusal.message, visible.length));
    const head = make(
      "tr",
      {},
      make("th", { scope: "col", class: "box", title: "select the timelines to show below" }, "show"),
      make("th", { scope: "col" }, "schedule"),
      ...visible.map(({ key, heading, title }) => make("th", { scope: "col", class: key, title }, heading)),
    );
    const focused = document.activeElement?.getAttribute("data-key") ?? "";
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows, ...refused));
    this.element.replaceChildren(scroller("comparison", table), this.more, ...notes(comparison));
    // The rows are new elements: restore the keyboard's focus.
    if (focused !== "") this.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  private toggle(): void {
    this.all = !this.all;
    this.more.setAttribute("aria-pressed", String(this.all));
    this.element.classList.toggle("all", this.all);
    if (this.comparison !== null) this.show(this.comparison);
  }

  private row(result: Result, visible: readonly Column[], scale: Scale, shows: boolean): HTMLElement {
    const name = result.schedule;
    const cells = visible.map(({ key, cell }) => make("td", { class: key }, cell(result)));
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

function columns(results: readonly Result[]): readonly Column[] {
  const unit = results[0]?.time_unit ?? "";
  const values = [...results.map((result) => result.makespan), ...results.map(boundOf), ...results.map(longestOf)];
  const times = Times.of(values, unit);
  const spans = results.map((result) => result.makespan);
  const bars = new Map(barsOf(spans, times).map((bar, at) => [results[at], bar]));
  const scale = scaleOf(results);
  const inUnit = times.unit === "" ? "" : `, ${times.unit}`;
  // Names and order are those of the shell's table (api/comparing/columns.py).
  return [
    {
      key: "chunks",
      usual: true,
      heading: "chunks",
      title: "model chunks per rank",
      cell: (result) => String(result.chunks),
    },
    {
      key: "makespan",
      usual: true,
      heading: `makespan${inUnit}`,
      title: "time from 0 to the end of the last op",
      cell: (result) => withBar(bars.get(result)),
    },
    {
      key: "longest",
      usual: false,
      heading: `longest span${inUnit}`,
      title: "longest time from the first start to the last end of a rank",
      cell: (result) => times.number(longestOf(result)),
    },
    {
      key: "bubble",
      usual: true,
      heading: "bubble",
      title: "idle time / total time",
      cell: (result) => percent(result.bubble.idle_over_total),
    },
    {
      key: "ideal",
      usual: false,
      heading: "over ideal",
      title: "idle time / busy time",
      cell: (result) => percent(result.bubble.over_ideal),
    },
    {
      key: "span",
      usual: false,
      heading: "of span",
      title: "idle time within the longest span",
      cell: (result) => percent(result.bubble.span),
    },
    {
      key: "peak",
      usual: true,
      heading: peakName(scale.unit),
      title:
        scale.unit === "activations"
          ? "peak memory of the fullest rank, in activations: 1 is one microbatch on all chunks of a rank"
          : "peak memory of the fullest rank",
      cell: (result) => memoryText(peakOf(result), scale),
    },
    {
      key: "bound",
      usual: false,
      heading: "lower bound",
      title: "no schedule of this placement and these costs is faster",
      cell: (result) => make("span", { title: result.bound_reason }, times.number(boundOf(result))),
    },
    {
      key: "gap",
      usual: true,
      heading: "gap",
      title: "optimality gap: makespan above the lower bound of its placement",
      cell: ({ gap }) => gapText(gap),
    },
    {
      key: "any",
      usual: false,
      heading: "gap (any)",
      title:
        "makespan above the best lower bound of any placement and number of chunks here, of schedules that need no more than this one",
      cell: ({ least_gap: gap }) => gapText(gap),
    },
  ];
}

function scaleOf(results: readonly Result[]): Scale {
  const inBytes = results.some((result) => result.peak_bytes !== null);
  return memoryScale(inBytes ? "bytes" : "activations", Math.max(...results.map(peakOf)));
}

function peakOf(result: Result): number {
  return Math.max(...(result.peak_bytes ?? result.peak_activation));
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

/** Return a number next to its bar; numbers of one column have equal widths, so that their bars have the same scale. */
function withBar(bar: Bar | undefined): string | HTMLElement {
  if (bar === undefined) return "";
  const fill = make("span", { class: "bar" });
  fill.style.width = `${100 * bar.share}%`;
  const number = make("span", { class: "number" }, bar.text);
  number.style.minWidth = `${bar.characters}ch`;
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

function notes(comparison: Comparison): Node[] {
  const undrawn = comparison.undrawn.map((name) => `${name} is too large to draw here; download its page or picture.`);
  // Each row shows its own excess over the memory limit.
  const warnings = comparison.warnings.filter((text) => !text.includes(": over the memory limit: "));
  const { headline, least_bound: least } = comparison;
  return [headline, least.sentence, ...warnings, ...undrawn].map((text) => make("p", { class: "note" }, text));
}
