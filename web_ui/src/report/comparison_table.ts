/** A comparison as a table: a row per schedule, ticked if its timeline is drawn, grey if it exceeds the limit. */

import { make } from "../dom.js";
import { peakName, percent, Times } from "../format.js";
import type { ComparisonFacts } from "../records.js";
import { type MemoryForm, memoryForm } from "./memory_form.js";
import { type Ranked, ranked, type Sort, type SortKey } from "./ranking.js";
import { type Column, headings, refilled } from "./sortable.js";

/** Maximum number of timelines: more are too small to compare. */
export const MOST_DRAWN = 4;

export interface TableHandlers {
  sorted(sort: Sort): void;
  /** Draw or remove the timeline of this schedule. */
  ticked(name: string, drawn: boolean): void;
  /** Draw only the timeline of this schedule. */
  only(name: string): void;
}

interface Forms {
  readonly times: Times;
  readonly memory: MemoryForm;
  readonly longest: number;
  readonly limit: number | null;
}

export class ComparisonTable {
  readonly element = make("div", { class: "pr-table", tabindex: 0, role: "region", "aria-label": "schedules" });

  constructor(private readonly handlers: TableHandlers) {}

  show(comparison: ComparisonFacts, drawn: readonly string[], limit: number | null, sort: Sort): void {
    const times = comparison.rows.flatMap(({ makespan, bound }) => [makespan, bound]);
    const forms: Forms = {
      times: Times.of(times, comparison.unit),
      memory: memoryForm(comparison),
      longest: Math.max(...comparison.rows.map(({ makespan }) => makespan)),
      limit,
    };
    const tick = make("th", { scope: "col", class: "tick" }, make("span", { class: "pr-unseen" }, "drawn below"));
    const head = headings(columns(forms), sort, (next) => this.handlers.sorted(next));
    const rows = ranked(comparison, limit, sort).map((entry) => this.row(entry, drawn, forms));
    refilled(
      this.element,
      make("table", {}, make("thead", {}, make("tr", {}, tick, ...head)), make("tbody", {}, ...rows)),
    );
  }

  private row({ row, over, gap }: Ranked, drawn: readonly string[], forms: Forms): HTMLElement {
    const { times, memory, longest } = forms;
    const shows = drawn.includes(row.schedule);
    return make(
      "tr",
      { class: [over && "over", shows && "drawn"].filter(Boolean).join(" ") },
      this.tick(row.schedule, shows, drawn.length),
      this.name(row.schedule, row.placement),
      cell(String(row.chunks), "minor"),
      make("td", { class: "makespan" }, bar(times.number(row.makespan), row.makespan / longest, row.bound / longest)),
      cell(percent(row.bubble), "bubble"),
      cell(memory.number(row.peak)),
      make("td", { class: "minor", title: row.bound_reason }, times.number(row.bound)),
      over ? cell(reasonOf(row, forms), "reason") : cell(percent(gap ?? 0)),
    );
  }

  private tick(name: string, shows: boolean, count: number): HTMLElement {
    const full = !shows && count >= MOST_DRAWN;
    const box = make("input", { type: "checkbox", "aria-label": `draw ${name}`, "data-focus": `tick ${name}` });
    box.checked = shows;
    box.disabled = full;
    if (full) box.title = `${MOST_DRAWN} timelines at most: deselect one first`;
    box.addEventListener("change", () => this.handlers.ticked(name, box.checked));
    return make("td", { class: "tick" }, box);
  }

  private name(name: string, placement: string): HTMLElement {
    const link = make("button", { type: "button", title: `draw ${name} alone`, "data-focus": `only ${name}` }, name);
    link.addEventListener("click", () => this.handlers.only(name));
    return make("th", { scope: "row" }, link, make("small", {}, placement));
  }
}

function columns({ times, memory }: Forms): readonly Column<SortKey>[] {
  const unit = times.unit === "" ? "" : `, ${times.unit}`;
  return [
    {
      key: "schedule",
      name: "schedule",
      help: "schedule with its placement, the assignment of stages to ranks",
      kind: "name",
    },
    { key: "chunks", name: "chunks", help: "model chunks per rank", kind: "minor" },
    {
      key: "makespan",
      name: `makespan${unit}`,
      help: "time from 0 to the end of the last op; the line on the bar is the lower bound of its placement",
      kind: "makespan",
    },
    { key: "bubble", name: "bubble", help: "idle time / total time", kind: "bubble" },
    { key: "peak", name: peakName(memory.unit), help: `peak memory of the fullest rank, in ${memory.unit}` },
    {
      key: "bound",
      name: `lower bound${unit}`,
      help: "no schedule of this placement and these costs is faster",
      kind: "minor",
    },
    { key: "gap", name: "gap", help: "makespan above the lower bound of its placement" },
  ];
}

function reasonOf({ peak, fits }: Ranked["row"], { memory, limit }: Forms): string {
  const more = peak - (limit ?? peak);
  return more > 0 || fits ? `${memory.number(more)} ${memory.short} over` : "exceeds the limit of a rank";
}

function cell(text: string, kind = ""): HTMLElement {
  return make("td", { class: kind }, text);
}

/** Return a number next to its bar: all bars have the same track, as long as the longest makespan, and a line at the bound. */
function bar(text: string, share: number, bound: number): HTMLElement {
  const fill = make("span", { class: "fill" });
  fill.style.width = `${100 * share}%`;
  const line = make("span", { class: "bound" });
  line.style.left = `${100 * Math.min(bound, 1)}%`;
  const track = make("span", { class: "track", "aria-hidden": "true" }, fill, line);
  return make("span", { class: "bar" }, make("span", { class: "number" }, text), track);
}
