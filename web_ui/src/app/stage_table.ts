/** Table with a value for each stage; it returns them as one text, separated by commas. */

import { make } from "../dom.js";
import { partsOf } from "./values.js";

/** Maximum number of stages in the table; more are edited as text. */
const MOST = 256;

export class StageTable {
  readonly element = make("div", { class: "stages", hidden: true });
  private cells: HTMLInputElement[] = [];

  constructor(
    private readonly label: string,
    private readonly fallback: string,
    private readonly stages: () => number,
    private readonly changed: (text: string) => void,
  ) {
    this.element.addEventListener("input", () => this.changed(this.text()));
    this.element.addEventListener("paste", (event) => this.paste(event));
  }

  /** Show the values of a text; one number applies to all stages. */
  show(text: string): void {
    if (this.element.hidden) return;
    const count = this.stages();
    const nested = text.startsWith("[");
    if (count > MOST || nested) {
      this.cells = [];
      const why = nested ? "These values are a table of both stages" : `${count} stages exceed the table`;
      this.element.replaceChildren(`${why}: type or paste the values above.`);
      return;
    }
    if (this.cells.length !== count) this.fill(count);
    const parts = partsOf(text);
    this.cells.forEach((cell, stage) => {
      const value = (parts.length === 1 ? parts[0] : parts[stage]) ?? "";
      if (cell !== document.activeElement) cell.value = value;
    });
  }

  private fill(count: number): void {
    this.cells = Array.from({ length: count }, (_, stage) =>
      make("input", {
        type: "text",
        inputmode: "decimal",
        placeholder: this.fallback,
        "aria-label": `${this.label}, stage ${stage}`,
      }),
    );
    const labelled = this.cells.map((cell, stage) => make("label", {}, make("span", {}, String(stage)), cell));
    this.element.replaceChildren(...labelled);
  }

  /** Return the text of the cells; an empty cell repeats the one before it, and equal cells become one number. */
  private text(): string {
    let last = this.cells.find((cell) => cell.value.trim() !== "")?.value.trim() ?? "";
    const values = this.cells.map((cell) => {
      last = cell.value.trim() || last;
      return last;
    });
    return new Set(values).size === 1 ? last : values.join(", ");
  }

  /** Paste a row or column of a spreadsheet into the cells, starting at the focused one. */
  private paste(event: ClipboardEvent): void {
    const parts = partsOf(event.clipboardData?.getData("text") ?? "");
    const first = this.cells.indexOf(event.target as HTMLInputElement);
    if (first < 0 || parts.length < 2) return;
    event.preventDefault();
    parts.forEach((part, at) => {
      const cell = this.cells[first + at];
      if (cell !== undefined) cell.value = part;
    });
    this.changed(this.text());
  }
}
