/** The panel that is open first: the fastest schedules as rows, or all of them as a table. */

import { button, make, rename } from "../dom.js";
import type { Comparison } from "./api.js";
import type { Panel } from "./panel.js";
import { ResultTable } from "./results.js";
import { type Choice, FIRST, Rows } from "./rows.js";

export class SchedulesPanel implements Panel {
  readonly name = "schedules";
  readonly title = "Schedules";
  readonly element = make("section", { class: "schedules-panel" });
  private readonly rows: Rows;
  private readonly table: ResultTable;
  private readonly all = button("", "show every schedule with its figures", () => this.toggle());
  private readonly columns = button("All columns", "show all columns", () => this.widen());
  private readonly notes = make("div");
  private comparison: Comparison | null = null;
  private view: "rows" | "table" | "columns" = "rows";

  constructor(choice: Choice) {
    this.rows = new Rows(choice);
    this.table = new ResultTable(choice);
    const buttons = make("div", { class: "more" }, this.all, this.columns);
    this.element.append(this.rows.element, this.table.element, buttons, this.notes);
  }

  answered(comparison: Comparison): void {
    this.comparison = comparison;
    this.draw();
  }

  /** Draw again, as after a change of the colours. */
  draw(): void {
    const comparison = this.comparison;
    if (comparison === null) return;
    const { view } = this;
    const count = comparison.results.length + comparison.refused.length;
    const all = count > FIRST ? `All ${count}` : "All figures";
    const focused = document.activeElement?.getAttribute("data-key") ?? "";
    this.element.dataset.view = view;
    this.rows.element.hidden = view !== "rows";
    this.table.element.hidden = view === "rows";
    this.columns.hidden = view === "rows";
    rename(this.all, view === "rows" ? all : "Fastest");
    this.all.setAttribute("aria-expanded", String(view !== "rows"));
    this.columns.setAttribute("aria-pressed", String(view === "columns"));
    if (view === "rows") this.rows.show(comparison);
    else this.table.show(comparison, view === "columns");
    this.notes.replaceChildren(...notesOf(comparison).map((text) => make("p", { class: "note" }, text)));
    // The rows are new elements: restore the keyboard's focus.
    if (focused !== "") this.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  private toggle(): void {
    this.view = this.view === "rows" ? "table" : "rows";
    this.draw();
  }

  private widen(): void {
    this.view = this.view === "columns" ? "table" : "columns";
    this.draw();
  }
}

/** Return the bound of all placements, and the warnings; each row shows its own excess over the memory limit. */
function notesOf({ least_bound: least, warnings }: Comparison): string[] {
  return [least.sentence, ...warnings.filter((text) => !text.includes(": over the memory limit: "))];
}
