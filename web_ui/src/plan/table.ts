/** The configurations as a table: the best, why the others lost, and the rest of the front. */

import { make } from "../dom.js";
import { figure, percent } from "../format.js";
import { scroller } from "../scroller.js";
import type { Row } from "./candidates.js";

const HEADINGS = [
  ["configuration", ""],
  ["", "configuration"],
  ["step, s", "time of the whole step, with the optimizer"],
  ["peak, GiB", "peak memory of a GPU"],
  ["tokens/s", "tokens per second of the whole cluster"],
  ["MFU", "share of the dense peak; counts causal attention half, and no recomputation"],
  ["lost because", ""],
] as const;

export class CandidateTable {
  readonly element = make("div", { class: "results candidates" });

  constructor(private readonly choose: (at: number) => void) {}

  show(rows: readonly Row[], selected: number, limit: number): void {
    const focused = document.activeElement?.getAttribute("data-key") ?? "";
    const head = make("tr", {}, ...HEADINGS.map(([text, title]) => make("th", { scope: "col", title }, text)));
    const body = rows.map((row, at) => this.row(row, at, at === selected, limit));
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
    this.element.replaceChildren(scroller("configurations", table, "tall"));
    if (focused !== "") this.element.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  private row({ candidate, role, onFront }: Row, at: number, shows: boolean, limit: number): HTMLElement {
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
    const marks = onFront && role !== "front" ? `${role}, front` : role;
    const cells = [
      marks,
      figure(candidate.step_time_s),
      candidate.peak_memory_gib.toFixed(1),
      Math.round(candidate.tokens_per_s).toLocaleString("en"),
      percent(candidate.mfu),
    ].map((text, column) => make("td", { class: column === 0 ? "role" : "" }, text));
    const why = make("td", { class: "why" }, candidate.lost_because ?? "");
    const element = make("tr", { class: shows ? "shows" : "" }, make("th", { scope: "row" }, name), ...cells, why);
    if (candidate.peak_memory_gib > limit)
      name.after(" ", make("span", { class: "over", title: "exceeds the memory limit" }, "over"));
    element.addEventListener("click", () => this.choose(at));
    return element;
  }
}
