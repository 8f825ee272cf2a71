/** The comparison as a table: a row per schedule, the best first, and below them why others are not possible. */

import { make } from "../dom.js";
import { memoryScale, memoryText, percent, timeText } from "../format.js";
import type { Comparison, Result } from "./api.js";
import { type Bar, barsOf } from "./bars.js";

export interface Choice {
  /** Show the timeline of this one alone. */
  only(name: string): void;
  /** Show or hide it beside the others. */
  beside(name: string, shows: boolean): void;
}

type Column = readonly [heading: string, title: string, cell: (result: Result) => string | Node];

export class ResultTable {
  readonly element = make("div", { class: "results" });

  constructor(private readonly choice: Choice) {}

  show(comparison: Comparison): void {
    const rows = comparison.results.map((result) => this.row(result, comparison));
    const refused = comparison.refused.map((each) => refusedRow(each.schedule, each.message));
    const head = make(
      "tr",
      {},
      ...columns(comparison).map(([text, title]) => make("th", { scope: "col", title }, text)),
    );
    const focused = document.activeElement?.getAttribute("data-key") ?? "";
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows, ...refused));
    this.element.replaceChildren(make("div", { class: "scroll" }, table), ...notes(comparison));
    // The rows are new; the keyboard's focus stays where it was.
    if (focused !== "") this.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  private row(result: Result, comparison: Comparison): HTMLElement {
    const name = result.schedule;
    const shows = comparison.drawn.includes(name);
    const cells = columns(comparison)
      .slice(2)
      .map(([, , cell]) => make("td", {}, cell(result)));
    const row = make("tr", { class: shows ? "shows" : "" }, this.box(name, shows), this.name(result), ...cells);
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

  private name(result: Result): HTMLElement {
    const name = result.schedule;
    const link = make(
      "button",
      { type: "button", class: "link", title: `show ${name} alone`, "data-key": `name ${name}` },
      name,
    );
    link.addEventListener("click", () => this.choice.only(name));
    const cell = make("th", { scope: "row" }, link);
    if (!result.fits) cell.append(" ", make("span", { class: "over", title: "over the memory limit" }, "over"));
    return cell;
  }
}

function columns({ results }: Comparison): readonly Column[] {
  const bars = new Map(barsOf(results.map((result) => result.makespan)).map((bar, at) => [results[at], bar]));
  const unit = results[0]?.time_unit ?? "";
  const peaks = results.map(peakOf);
  const inBytes = results.some((result) => result.peak_bytes !== null);
  const scale = memoryScale(inBytes ? "bytes" : "activations", Math.max(...peaks));
  return [
    ["show", "which timelines are shown below", () => ""],
    ["schedule", "", () => ""],
    ["chunks", "chunks a rank", (result) => String(result.chunks)],
    [`makespan${unit === "" ? "" : `, ${unit}`}`, "from 0 to the last op's end", (result) => withBar(bars.get(result))],
    ["bubble", "idle time as a share of all time", (result) => percent(result.bubble.idle_over_total)],
    ["over ideal", "idle time relative to busy time", (result) => percent(result.bubble.over_ideal)],
    ["of span", "idle share of the longest span of a rank", (result) => percent(result.bubble.span)],
    [
      `peak, ${scale.unit === "activations" ? "act." : scale.unit}`,
      inBytes
        ? "the most that a rank holds"
        : "the most that a rank holds, in activations: 1 is what all its chunks hold for one microbatch",
      (result) => memoryText(peakOf(result), scale),
    ],
    ["bound", "no schedule of this placement and these costs is faster", (result) => bound(result)],
    ["gap", "optimality gap: how far the makespan is above the bound", gap],
  ];
}

function peakOf(result: Result): number {
  return Math.max(...(result.peak_bytes ?? result.peak_activation));
}

function bound(result: Result): HTMLElement {
  return make("span", { title: result.bound_reason }, timeText(result.lower_bound));
}

/** A schedule over its memory limit has no optimality gap: the bound holds for schedules within the limit. */
function gap(result: Result): string {
  return result.gap === null ? "\u2013" : percent(Math.max(result.gap, 0));
}

/** A number beside its bar; numbers of one column are equally wide, so that their bars have the same scale. */
function withBar(bar: Bar | undefined): string | HTMLElement {
  if (bar === undefined) return "";
  const fill = make("span", { class: "bar" });
  fill.style.width = `${100 * bar.share}%`;
  const number = make("span", { class: "number" }, bar.text);
  number.style.minWidth = `${bar.characters}ch`;
  return make("span", { class: "with-bar" }, make("span", { class: "track", "aria-hidden": "true" }, fill), number);
}

function refusedRow(name: string, message: string): HTMLElement {
  return make(
    "tr",
    { class: "refused" },
    make("td"),
    make("th", { scope: "row" }, name),
    make("td", { colspan: 8 }, message),
  );
}

function notes(comparison: Comparison): Node[] {
  const undrawn = comparison.undrawn.map((name) => `${name} is too large to draw here; download its page or picture.`);
  return [...comparison.warnings, ...undrawn].map((text) => make("p", { class: "note" }, text));
}
