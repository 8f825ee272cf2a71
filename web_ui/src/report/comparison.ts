/** The page of a comparison: what is compared, the memory limit, the table, and the timelines of what is ticked. */

import type { TimelineData } from "../data.js";
import { make } from "../dom.js";
import { fixed, memoryScale, Times } from "../format.js";
import type { ComparisonFacts } from "../records.js";
import { fromFragment, type Shown, toParts } from "./address.js";
import { ComparisonTable, MOST_DRAWN } from "./comparison_table.js";
import { Drawn, type Opener } from "./drawn.js";
import { LimitControl } from "./limit.js";
import { memoryForm } from "./memory_form.js";
import { firstDrawn, leastBound } from "./ranking.js";

export interface ComparisonSource {
  readonly comparison: ComparisonFacts;
  readonly open: Opener;
  readonly themes: TimelineData["themes"];
}

export class ComparisonView {
  readonly element = make("div", { class: "pr-comparison" });
  readonly drawn: Drawn;
  private shown: Shown;
  private source: ComparisonSource | null = null;
  private readonly costs = make("p", { class: "pr-costs" });
  private readonly table: ComparisonTable;
  private readonly limit: LimitControl;
  private readonly notes = make("div", { class: "pr-notes" });

  /** `fragment` is the state to begin with; `moved` is called with the new one whenever it has changed. What is `below` stands under the table. */
  constructor(
    fragment: string,
    private readonly moved: (fragment: string) => void,
    ...below: readonly HTMLElement[]
  ) {
    this.shown = fromFragment(fragment);
    this.drawn = new Drawn(fragment, () => this.tell());
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
    this.element.append(this.costs, above, ...below, this.notes, this.drawn.element);
  }

  /** Show a comparison; what was chosen stays as far as it applies. */
  show(source: ComparisonSource): void {
    this.source = source;
    this.costs.textContent = costsOf(source.comparison);
    this.fillNotes(source.comparison);
    this.refresh();
  }

  /** Take over the state of a link's fragment. */
  setFragment(fragment: string): void {
    this.shown = fromFragment(fragment);
    this.drawn.fragment = fragment;
    this.refresh();
  }

  get fragment(): string {
    const parts = toParts(this.shown);
    for (const [name, value] of new URLSearchParams(this.drawn.fragment)) if (!parts.has(name)) parts.set(name, value);
    return parts.toString().replaceAll("%2C", ",");
  }

  /** Forget a limit that was in another unit. */
  unlimit(): void {
    this.shown = { ...this.shown, limit: undefined };
  }

  /** The memory limit that applies now, in the unit of the comparison. */
  get limitNow(): number | null {
    const { limit } = this.shown;
    return limit === undefined ? (this.source?.comparison.limit ?? null) : limit;
  }

  /** The schedules that are drawn, from top to bottom. */
  names(): string[] {
    if (this.source === null) return [];
    const { comparison } = this.source;
    const { drawn } = this.shown;
    if (drawn === null) return firstDrawn(comparison, this.limitNow);
    return comparison.rows
      .map(({ schedule }) => schedule)
      .filter((name) => drawn.includes(name))
      .slice(0, MOST_DRAWN);
  }

  private flip(name: string, draw: boolean): void {
    const others = this.names().filter((each) => each !== name);
    if (draw && others.length >= MOST_DRAWN) return;
    this.set({ drawn: draw ? [...others, name] : others });
  }

  private set(change: Partial<Shown>): void {
    this.shown = { ...this.shown, ...change };
    this.refresh();
    this.tell();
  }

  private refresh(): void {
    if (this.source === null) return;
    const { comparison, open, themes } = this.source;
    const names = this.names();
    this.table.show(comparison, names, this.limitNow, this.shown.sort);
    this.limit.show(comparison, this.limitNow, names);
    void this.drawn.show(names, open, themes);
  }

  private tell(): void {
    this.moved(this.fragment);
  }

  private fillNotes(comparison: ComparisonFacts): void {
    const { bound, placement, bound_reason } = leastBound(comparison);
    const times = Times.of([bound], comparison.unit);
    const notes = [
      `No ${comparison.covers.replace(/^schedules/, "schedule")}, can be shorter than ${times.text(bound)} (placement ${placement}: ${bound_reason}).`,
      ...madeForLimit(comparison),
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

/** Schedules that depend on the limit: another limit may give other schedules. */
function madeForLimit(comparison: ComparisonFacts): string[] {
  const own = comparison.rows.filter(({ from_costs }) => from_costs).map(({ schedule }) => schedule);
  if (own.length === 0) return [];
  const made = comparison.limit === null ? "without one" : `for ${memoryForm(comparison).text(comparison.limit)}`;
  const [follow, were] = own.length > 1 ? ["follow", "were"] : ["follows", "was"];
  return [
    `Moving the limit only hides schedules that do not fit; ${own.join(" and ")}, which ${follow} it, ${were} made ${made}.`,
  ];
}

/** Costs that all schedules share, in a sentence. */
export function costsOf({ costs, unit }: ComparisonFacts): string {
  const { forward, backward, backward_input, backward_weight, transfer, activation, even } = costs;
  const times = Times.of([forward, backward, backward_input, backward_weight, transfer], unit);
  const parts = [
    `${times.text(forward)} forward and ${times.text(backward)} backward ` +
      `(${times.number(backward_input)} for inputs, ${times.number(backward_weight)} for weights)`,
  ];
  const held = activation === null ? "" : ` and holds ${sizeText(activation)}`;
  const sent = transfer > 0 ? `A transfer between ranks takes ${times.text(transfer)}.` : "Transfers take no time.";
  return `For one microbatch a rank takes ${even ? "" : "on average "}${parts[0]}${held}. ${sent}`;
}

function sizeText(bytes: number): string {
  const scale = memoryScale("bytes", bytes);
  return `${fixed(bytes / scale.divisor, 1)} ${scale.unit}`;
}
