/** Highlighted ops: the op under the pointer, the focused one, the selected one, and the matches of a search. */

import type { Ghost } from "./editing.js";
import type { Lit } from "./highlight.js";
import type { Hit } from "./hit.js";
import type { Plot } from "./plot.js";
import { type BarRef, findBars, parseQuery, sameBar } from "./search.js";
import type { Band, State } from "./state.js";

/** Maximum number of highlighted matches; of more, only the current one is highlighted. */
const MOST_RINGS = 500;

export class Picks {
  private lane: Lit["lane"] = null;
  private hovered: BarRef | null = null;
  focused: BarRef | null = null;
  selected: BarRef | null = null;
  matches: readonly BarRef[] = [];
  private current = -1;
  private chain: readonly BarRef[] = [];
  private twins: Lit["twins"] = [];
  ghost: Ghost | null = null;
  band: Band | null = null;
  private critical: readonly (readonly BarRef[])[] = [];

  /** Set the element under the pointer; return true if it has changed. */
  hover(hit: Hit | null): boolean {
    const [lane, bar] = [this.lane, this.hovered];
    this.lane = hit === null ? null : { view: hit.plot.index, lane: hit.lane };
    this.hovered = hit === null || hit.bar < 0 ? null : { view: hit.plot.index, bar: hit.bar };
    const same = bar?.bar === this.hovered?.bar && lane?.lane === this.lane?.lane && lane?.view === this.lane?.view;
    return !same;
  }

  get lit(): Lit {
    const { lane, hovered, focused, selected, chain, twins, critical, ghost, band } = this;
    const matches = this.matches.length <= MOST_RINGS ? this.matches : [];
    return {
      lane,
      hovered,
      focused,
      selected,
      chain,
      twins,
      critical,
      matches,
      ghost,
      band,
      current: this.matches[this.current] ?? null,
    };
  }

  /** Look everything up again in new data; the focus stays on the op with the same name. */
  renew(before: readonly Plot[], plots: readonly Plot[], state: State): void {
    this.hovered = null;
    this.lane = null;
    this.ghost = null;
    this.focused = sameRef(this.focused, before, plots);
    this.follow(plots, null, state);
  }

  /** Update the picks after a change of the state. */
  follow(plots: readonly Plot[], before: State | null, state: State): void {
    if (before?.op !== state.op) this.select(plots, state.op);
    if (before?.critical !== state.critical) {
      this.critical = state.critical ? plots.map((plot) => refs(plot, plot.links.critical())) : [];
    }
    if (before?.query !== state.query) this.search(plots, state.query);
  }

  /** Return the next match, or the one before; null without matches. */
  step(by: number): BarRef | null {
    const count = this.matches.length;
    if (count === 0) return null;
    this.current = (((this.current + by) % count) + count) % count;
    return this.matches[this.current];
  }

  /** Return the position among the matches: `2 of 8`. */
  matchText(query: string): string {
    if (query.trim() === "") return "";
    if (this.matches.length === 0)
      return parseQuery(query) === null ? "type an op, such as 3F7" : "not in the schedule";
    return `${Math.max(this.current, 0) + 1} of ${this.matches.length}`;
  }

  private select(plots: readonly Plot[], op: State["op"]): void {
    const query = op === null ? null : parseQuery(op.name);
    const plot = plots[op?.view ?? 0];
    const candidates = query === null || plot === undefined ? [] : findBars([plot], query);
    this.selected = candidates.find(({ bar }) => plot.name(bar) === op?.name) ?? null;
    this.chain = this.selected === null ? [] : refs(plot, plot.links.chain(this.selected.bar));
    this.twins = this.selected === null ? [] : twinsOf(plot, this.selected.bar, plots);
  }

  private search(plots: readonly Plot[], text: string): void {
    const query = parseQuery(text);
    this.matches = query === null ? [] : findBars(plots, query);
    this.current = -1;
  }
}

function refs(plot: Plot, bars: readonly number[]): BarRef[] {
  return bars.map((bar) => ({ view: plot.index, bar }));
}

/** Return the same op in the plan of a run, or in the run of a plan, each with its own chain. */
function twinsOf(plot: Plot, bar: number, plots: readonly Plot[]): Lit["twins"] {
  const times = (source: string) => source === "simulated" || source === "measured";
  return plots
    .filter(({ view: { source } }) => source !== plot.view.source && times(source) && times(plot.view.source))
    .flatMap((other) => {
      const same = sameBar(plot, bar, other);
      if (same < 0) return [];
      return [{ op: { view: other.index, bar: same }, chain: refs(other, other.links.chain(same)) }];
    });
}

function sameRef(ref: BarRef | null, before: readonly Plot[], plots: readonly Plot[]): BarRef | null {
  const [own, other] = ref === null ? [] : [before[ref.view], plots[ref.view]];
  if (ref === null || own === undefined || other === undefined) return null;
  const bar = sameBar(own, ref.bar, other);
  return bar < 0 ? null : { view: ref.view, bar };
}
