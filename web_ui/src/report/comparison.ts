/** The page of a comparison: its sentence, its costs, the memory limit, the table, and the timelines of the selected schedules. */

import type { TimelineData } from "../data.js";
import { make } from "../dom.js";
import { fixed, memoryScale, Times } from "../format.js";
import type { ComparisonFacts } from "../records.js";
import { fromFragment, type ReportState, toParts } from "./address.js";
import { ComparisonTable, MOST_DRAWN } from "./comparison_table.js";
import { LimitControl } from "./limit.js";
import { memoryForm } from "./memory_form.js";
import { headlineWithin, initialSchedules, leastBound } from "./ranking.js";
import { type Opener, Timelines } from "./timelines.js";

export interface ComparisonSource {
  readonly comparison: ComparisonFacts;
  readonly open: Opener;
  readonly themes: TimelineData["themes"];
}

export class ComparisonView {
  readonly element = make("div", { class: "pr-comparison" });
  readonly timelines: Timelines;
  private state: ReportState;
  private source: ComparisonSource | null = null;
  private readonly headline = make("p", { class: "pr-headline", role: "status" });
  private readonly costs = make("p", { class: "pr-costs" });
  private readonly table: ComparisonTable;
  private readonly limit: LimitControl;
  private readonly notes = make("div", { class: "pr-notes" });

  /** `fragment` is the initial state; `moved` is called with the new one after each change. `below` are elements under the table. */
  constructor(
    fragment: string,
    private readonly moved: (fragment: string) => void,
    ...below: readonly HTMLElement[]
  ) {
    this.state = fromFragment(fragment);
    this.timelines = new Timelines(fragment, () => this.notify());
    this.limit = new LimitControl({
      limited: (limit) => this.set({ limit }),
      pointed: (name) => this.flip(name, !this.names().includes(name)),
    });
    this.table = new ComparisonTable({
      sorted: (sort) => this.set({ sort }),
      ticked: (name, drawn) => this.flip(name, drawn),
      only: (name) => this.set({ drawn: [name] }),
    });
    const above = make("div", { class: "pr-above" }, this.table.element, this.limit.element);
    this.element.append(this.headline, this.costs, above, ...below, this.notes, this.timelines.element);
  }

  /** Show a comparison; the state stays as far as it applies. */
  show(source: ComparisonSource): void {
    this.source = source;
    this.costs.textContent = costsOf(source.comparison);
    this.fillNotes(source.comparison);
    this.refresh();
  }

  /** Restore the state of a link's fragment. */
  setFragment(fragment: string): void {
    this.state = fromFragment(fragment);
    this.timelines.fragment = fragment;
    this.refresh();
  }

  get fragment(): string {
    const parts = toParts(this.state);
    for (const [name, value] of new URLSearchParams(this.timelines.fragment))
      if (!parts.has(name)) parts.set(name, value);
    return parts.toString().replaceAll("%2C", ",");
  }

  /** Reset the limit, for a comparison in another unit of memory. */
  unlimit(): void {
    this.state = { ...this.state, limit: undefined };
  }

  /** Current memory limit, in the unit of the comparison. */
  get limitNow(): number | null {
    const { limit } = this.state;
    return limit === undefined ? (this.source?.comparison.limit ?? null) : limit;
  }

  /** Return the schedules with a timeline, from top to bottom. */
  names(): string[] {
    if (this.source === null) return [];
    const { comparison } = this.source;
    const { drawn } = this.state;
    if (drawn === null) return initialSchedules(comparison, this.limitNow);
    return comparison.rows
      .map(({ schedule }) => schedule)
      .filter((name) => drawn.includes(name))
      .slice(0, MOST_DRAWN);
  }

  private flip(name: string, draw: boolean): void {
    const others = this.names().filter((other) => other !== name);
    if (draw && others.length >= MOST_DRAWN) return;
    this.set({ drawn: draw ? [...others, name] : others });
  }

  private set(change: Partial<ReportState>): void {
    this.state = { ...this.state, ...change };
    this.refresh();
    this.notify();
  }

  private refresh(): void {
    if (this.source === null) return;
    const { comparison, open, themes } = this.source;
    const names = this.names();
    const headline = headlineWithin(comparison, this.limitNow);
    // An unchanged sentence is not announced again.
    if (this.headline.textContent !== headline) this.headline.textContent = headline;
    this.table.show(comparison, names, this.limitNow, this.state.sort);
    this.limit.show(comparison, this.limitNow, names);
    void this.timelines.show(names, open, themes);
  }

  private notify(): void {
    this.moved(this.fragment);
  }

  private fillNotes(comparison: ComparisonFacts): void {
    const { bound, placement, bound_reason } = leastBound(comparison);
    const times = Times.of([bound], comparison.unit);
    const notes = [
      `No ${comparison.covers.replace(/^schedules/, "schedule")}, can be shorter than ${times.text(bound)} (placement ${placement}: ${bound_reason}).`,
      ...limitNotes(comparison),
      ...comparison.notes,
    ];
    const refused = comparison.refused.map(({ schedule, message }) =>
      make("li", {}, make("strong", {}, schedule), `: ${message}`),
    );
    this.notes.replaceChildren(
      make("ul", {}, ...notes.map((note) => make("li", {}, note))),
      ...(refused.length > 0
        ? [make("details", {}, make("summary", {}, `${refused.length} not available here`), make("ul", {}, ...refused))]
        : []),
    );
  }
}

/** Return a note on the schedules that depend on the limit: another limit may give other schedules. */
function limitNotes(comparison: ComparisonFacts): string[] {
  const own = comparison.rows.filter(({ from_costs }) => from_costs).map(({ schedule }) => schedule);
  if (own.length === 0) return [];
  const origin = comparison.limit === null ? "without one" : `for ${memoryForm(comparison).text(comparison.limit)}`;
  const [follow, were] = own.length > 1 ? ["follow", "were"] : ["follows", "was"];
  return [
    `Moving the limit only hides schedules that do not fit; ${own.join(" and ")}, which ${follow} it, ${were} made ${origin}.`,
  ];
}

/** Return the costs that all schedules share, as sentences. */
export function costsOf({ costs, unit }: ComparisonFacts): string {
  const { forward, backward, backward_input, backward_weight, transfer, activation, even } = costs;
  const times = Times.of([forward, backward, backward_input, backward_weight, transfer], unit);
  const parts = [
    `${times.text(forward)} forward and ${times.text(backward)} backward ` +
      `(${times.number(backward_input)} for inputs, ${times.number(backward_weight)} for weights)`,
  ];
  const memory = activation === null ? "" : ` and holds ${sizeText(activation)}`;
  const transfers =
    transfer > 0 ? `A transfer between ranks takes ${times.text(transfer)}.` : "Transfers take no time.";
  return `For one microbatch a rank takes ${even ? "" : "on average "}${parts[0]}${memory}. ${transfers}`;
}

function sizeText(bytes: number): string {
  const scale = memoryScale("bytes", bytes);
  return `${fixed(bytes / scale.divisor, 1)} ${scale.unit}`;
}
