/** Panel with the measured times as a table that can be copied. */

import { button, make } from "./dom.js";
import { percent, Times } from "./format.js";
import type { Measured } from "./measure.js";
import type { Theme } from "./palette.js";

export interface MeasureActions {
  fit(): void;
  clear(): void;
  /** Announce a completed action in the status line. */
  announce(text: string): void;
}

export class MeasurePanel {
  readonly element = make("section", { class: "pp-measure", "aria-label": "measured interval", hidden: true });
  private readonly heading = make("h2", { "aria-live": "polite" });
  private text = "";

  constructor(private readonly actions: MeasureActions) {}

  hide(): void {
    this.element.hidden = true;
  }

  show(measurement: Measured, from: number, to: number, theme: Theme): void {
    const unit = commonUnit(measurement);
    const form = Times.of([from, to, ...measurement.rows.flatMap(({ times }) => times), ...measurement.totals], unit);
    const title = titleOf(measurement, from, to);
    if (this.heading.textContent !== title) this.heading.textContent = title;
    const table = tableOf(measurement, form, theme);
    this.text = [title, ...[...table.rows].map(lineOf)].join("\n");
    const copy = button("Copy", "copy the table", () => void this.copy());
    const fit = button("Zoom to interval", "zoom to the interval (f)", () => this.actions.fit());
    const clear = button("Clear", "clear the interval (escape)", () => this.actions.clear());
    const scroll = make(
      "div",
      { class: "pp-table", tabindex: 0, role: "region", "aria-label": "measured times" },
      table,
    );
    this.element.replaceChildren(
      make("div", { class: "pp-measure-head" }, this.heading, make("div", { class: "pp-group" }, copy, fit, clear)),
      scroll,
    );
    this.element.hidden = false;
  }

  private async copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.text);
    } catch {
      copyBySelection(this.text); // pages from files may have no clipboard
    }
    this.actions.announce("copied the measured times");
  }
}

/** Return the title of an interval: `2.5 ms, from 3.0 to 5.5 ms, on 4 ranks`. */
export function titleOf({ rows, length }: Measured, from: number, to: number): string {
  const unit = rows[0]?.plot.view.unit ?? "";
  const form = Times.fine([from, to], length, unit);
  const whole = rows[0]?.plot.view.makespan ?? 0;
  const ranks = rows.length === 1 ? rows[0].plot.view.lanes.label[rows[0].lane] : `${rows.length} ranks`;
  const share =
    new Set(rows.map(({ plot }) => plot)).size === 1 && whole > 0 ? ` (${percent(length / whole)} of the step)` : "";
  return `${Times.of([length], unit).text(length)}${share}, from ${form.number(from)} to ${form.text(to)}, ${ranks}`;
}

/** Return the largest uses of an interval, for the tooltip. */
export function summaryOf({ uses, totals, rows, length }: Measured): (readonly [string, string])[] {
  const all = rows.length * length;
  const unit = rows[0]?.plot.view.unit ?? "";
  const form = Times.of(totals, unit);
  return uses.map(({ title }, at) => [title, `${form.text(totals[at])} (${percent(all > 0 ? totals[at] / all : 0)})`]);
}

function tableOf(measurement: Measured, form: Times, theme: Theme): HTMLTableElement {
  const { uses, rows, totals } = measurement;
  const heading = (text: string) => make("th", { scope: "col" }, text);
  const unit = form.unit === "" ? "" : ` (${form.unit})`;
  const head = make(
    "tr",
    {},
    heading(`rank${unit}`),
    ...uses.map((use) => headingOf(use.key, use.title, theme)),
    heading("sum"),
  );
  const several = new Set(rows.map(({ plot }) => plot)).size > 1;
  const body = rows.map(({ plot, lane, times }) => {
    const label = plot.view.lanes.label[lane];
    return rowOf(several ? `${plot.view.title}: ${label}` : label, addingUp(times, form));
  });
  const whole = sum(totals);
  const all = rowOf("all", addingUp(totals, form));
  const shares = rowOf(
    "share",
    [...totals, whole].map((time) => percent(whole > 0 ? time / whole : 0)),
  );
  const parts = rows.length > 1 ? [all, shares, ...body] : [...body, shares];
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...parts));
}

function headingOf(key: string, title: string, theme: Theme): HTMLElement {
  const [what, name] = key.split(" ");
  const fill =
    what === "kind" ? theme.base.kinds[name].fill[0] : what === "idle" ? theme.base.reasons[name]?.fill : null;
  const cell = make("th", { scope: "col" });
  if (fill != null) {
    const swatch = make("span", { class: "pp-swatch", "aria-hidden": "true" });
    swatch.style.background = fill;
    cell.append(swatch, " ");
  }
  cell.append(title);
  return cell;
}

/** Return parts and their sum, rounded so that the displayed numbers add up. */
function addingUp(times: readonly number[], form: Times): string[] {
  return [...form.parts(times), form.number(sum(times))];
}

function rowOf(name: string, cells: readonly string[]): HTMLElement {
  return make("tr", {}, make("th", { scope: "row" }, name), ...cells.map((text) => make("td", {}, text)));
}

function lineOf(row: HTMLTableRowElement): string {
  return [...row.cells].map((cell) => (cell.textContent ?? "").trim()).join("\t");
}

function sum(times: readonly number[]): number {
  return times.reduce((whole, time) => whole + time, 0);
}

function commonUnit({ rows }: Measured): string {
  const units = new Set(rows.map(({ plot }) => plot.view.unit));
  return units.size === 1 ? [...units][0] : "";
}

function copyBySelection(text: string): void {
  const area = make("textarea", { "aria-hidden": "true" });
  area.value = text;
  area.style.position = "fixed";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
