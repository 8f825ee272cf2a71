/** The configurations as a table: the chosen one, why the others lost, and the rest of the front. */

import { button, make } from "../dom.js";
import { figure, percent } from "../format.js";
import type { Row } from "./candidates.js";

const HEADINGS = [
  ["configuration", ""],
  ["step, s", "time of the whole step, with the optimizer"],
  ["peak, GiB", "peak memory of a GPU"],
  ["tokens/s", "tokens per second of the whole cluster"],
  ["MFU", "share of the dense peak; counts causal attention half, and no recomputation"],
] as const;

/** Number of rows that are shown at first. */
const FIRST = 10;

export class CandidateTable {
  readonly element = make("div", { class: "results candidates" });
  private whole = false;

  constructor(private readonly choose: (at: number) => void) {}

  /** Show only the first rows of another plan. */
  restart(): void {
    this.whole = false;
  }

  show(rows: readonly Row[], selected: number, limit: number): void {
    const focused = document.activeElement?.getAttribute("data-key") ?? "";
    // A point of the picture can select any row.
    this.whole ||= selected >= FIRST;
    const visible = this.whole ? rows : rows.slice(0, FIRST);
    const head = make("tr", {}, ...HEADINGS.map(([text, title]) => make("th", { scope: "col", title }, text)));
    const body = visible.map((row, at) => this.row(row, at, at === selected, limit));
    const table = make(
      "table",
      { "aria-label": "configurations" },
      make("thead", {}, head),
      make("tbody", {}, ...body),
    );
    const more = button(`All ${rows.length} configurations`, "show the other configurations, too", () => {
      this.whole = true;
      this.show(rows, selected, limit);
      this.element.querySelector<HTMLElement>(`[data-key="row ${FIRST}"]`)?.focus();
    });
    this.element.replaceChildren(table, ...(visible.length < rows.length ? [make("p", {}, more)] : []));
    if (focused !== "") this.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  private row(row: Row, at: number, shows: boolean, limit: number): HTMLElement {
    const { candidate } = row;
    const name = make(
      "button",
      {
        type: "button",
        class: "link",
        "data-key": `row ${at}`,
        "aria-pressed": String(shows),
        title: "show this configuration below",
      },
      candidate.words,
    );
    const cells = [
      figure(candidate.step_time_s),
      candidate.peak_memory_gib.toFixed(1),
      Math.round(candidate.tokens_per_s).toLocaleString("en"),
      percent(candidate.mfu),
    ].map((text) => make("td", {}, text));
    const head = make("th", { scope: "row" }, name, make("span", { class: "why" }, standing(row)));
    const element = make("tr", { class: shows ? "shows" : "" }, head, ...cells);
    if (candidate.peak_memory_gib > limit)
      name.after(" ", make("span", { class: "over", title: "exceeds the memory limit" }, "over"));
    element.addEventListener("click", () => this.choose(at));
    return element;
  }
}

/** Return what a row is, and why it lost. */
export function standing({ candidate, role, onFront }: Row): string {
  const words = { best: "chosen", closest: "closest to the limit" }[role] ?? candidate.lost_because ?? "";
  return [words, onFront ? "on the Pareto front" : ""].filter(Boolean).join("; ");
}
