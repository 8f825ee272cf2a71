/** Dependencies between ops, the op that delayed each op, and the resulting chains. */

import { integers, type ViewJson } from "./data.js";
import { isBeside, Part } from "./part.js";

/** Input of links: the bars of a plot by lane and start. */
export interface Bars {
  readonly view: ViewJson;
  readonly bars: number;
  readonly lane: Int32Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly part: Int32Array;
  readonly group: Int32Array;
}

/** Links sorted by one of their ends: those of bar b are `other[offsets[b]]` to `other[offsets[b + 1] - 1]`. */
interface Index {
  offsets: Int32Array;
  other: Int32Array;
}

export class Links {
  private readonly sources: Index;
  private readonly targets: Index;
  private readonly tolerance: number;
  private holders: Int32Array | null = null;
  private next: Int32Array | null = null;

  constructor(private readonly plot: Bars) {
    const source = integers(plot.view.links.source);
    const target = integers(plot.view.links.target);
    this.sources = indexOf(target, source, plot.bars);
    this.targets = indexOf(source, target, plot.bars);
    this.tolerance = 1e-9 * plot.view.makespan;
  }

  /** Return the bars that a bar waits for, besides the one before it on its rank. */
  waitedFor(bar: number): Int32Array {
    return rowOf(this.sources, bar);
  }

  /** Return the bars that wait for a bar, besides the next one on its rank. */
  waiting(bar: number): Int32Array {
    return rowOf(this.targets, bar);
  }

  /** Return the compute op before a bar, or before its pair, on its rank; -1 for none. */
  before(bar: number): number {
    const { lane, part } = this.plot;
    let at = this.first(bar) - 1;
    while (at >= 0 && lane[at] === lane[bar] && isBeside(part[at])) at--;
    return at >= 0 && lane[at] === lane[bar] ? at : -1;
  }

  /**
   * Return the bar that delayed this one, -1 for none: of the op before it on its rank and the ops whose results had
   * to arrive, the last to end. As in pipeplan.simulation.critical, an arrival wins a tie with an op of the same rank.
   */
  holder(bar: number): number {
    this.holders ??= Int32Array.from({ length: this.plot.bars }, (_, at) => this.findHolder(at));
    return this.holders[bar];
  }

  /** Return the chain through a bar, in the order of time: the ops that delayed it, back to the start, and the longest chain that waits for it. */
  chain(bar: number): number[] {
    return [...this.chainBehind(bar), ...this.chainAhead(bar)];
  }

  /** Return the chain that leads to the op that ends last. */
  critical(): number[] {
    const { end, bars } = this.plot;
    let last = -1;
    for (let bar = 0; bar < bars; bar++) if (last < 0 || end[bar] > end[last]) last = bar;
    return last < 0 ? [] : this.chainBehind(last);
  }

  private chainBehind(bar: number): number[] {
    const chain: number[] = [];
    for (let at = bar; at >= 0 && chain.length <= this.plot.bars; at = this.holder(at)) chain.push(at);
    return chain.reverse();
  }

  private chainAhead(bar: number): number[] {
    const next = this.nextDelayed();
    const chain: number[] = [];
    for (let at = next[bar]; at >= 0 && chain.length <= this.plot.bars; at = next[at]) chain.push(at);
    return chain;
  }

  /** Return for each bar the bar that it delays whose own chain reaches furthest; -1 for none. */
  private nextDelayed(): Int32Array {
    if (this.next !== null) return this.next;
    const { start, end, bars } = this.plot;
    const order = Uint32Array.from({ length: bars }, (_, bar) => bar).sort((one, other) => start[other] - start[one]);
    const reach = Float64Array.from(end);
    const next = new Int32Array(bars).fill(-1);
    for (const bar of order) {
      const holder = this.holder(bar);
      if (holder < 0 || (next[holder] >= 0 && reach[bar] <= reach[next[holder]])) continue;
      next[holder] = bar;
      reach[holder] = Math.max(reach[holder], reach[bar]);
    }
    this.next = next;
    return next;
  }

  /** Return the op, or the copy to the host, that freed the rank before a bar or before its pair; -1 for none. */
  private freedBy(bar: number): number {
    const { lane, part, end } = this.plot;
    let last = this.before(bar);
    for (let at = this.first(bar) - 1; at >= 0 && lane[at] === lane[bar] && isBeside(part[at]); at--) {
      if (part[at] === Part.TO_HOST && (last < 0 || end[at] > end[last])) last = at;
    }
    return last;
  }

  /** Return the copy or collective before this one on its rank's link to the host, or back, or on its stream; -1 for none. */
  private onLink(bar: number): number {
    const { lane, part } = this.plot;
    let at = bar - 1;
    while (at >= 0 && lane[at] === lane[bar] && part[at] !== part[bar]) at--;
    return at >= 0 && lane[at] === lane[bar] ? at : -1;
  }

  private findHolder(bar: number): number {
    const { start, end, part } = this.plot;
    if (part[bar] === Part.FROM_HOST || part[bar] === Part.COLLECTIVE)
      return this.later(this.freedBy(bar), this.onLink(bar));
    const source = this.lastArrival(bar);
    if (part[bar] === Part.TO_HOST) return this.later(source, this.onLink(bar));
    if (part[bar] === Part.STRIP && source >= 0) return source;
    const before = this.freedBy(bar);
    if (source < 0 || before < 0) return Math.max(source, before);
    const idle = start[bar] > end[before] + this.tolerance;
    return idle || end[source] >= end[before] - this.tolerance ? source : before;
  }

  private later(one: number, other: number): number {
    const { end } = this.plot;
    return one < 0 || (other >= 0 && end[other] > end[one]) ? other : one;
  }

  /** Return the last message, copy or op of another rank that a bar or its pair needs; -1 for none. */
  private lastArrival(bar: number): number {
    const { lane, part, end } = this.plot;
    let last = -1;
    for (let member = this.first(bar); this.paired(bar, member); member++) {
      for (const source of this.waitedFor(member)) {
        const arrives = lane[source] !== lane[bar] || isBeside(part[source]) || isBeside(part[bar]);
        if (arrives && (last < 0 || end[source] > end[last])) last = source;
      }
    }
    return last;
  }

  private first(bar: number): number {
    let at = bar;
    while (at > 0 && this.paired(bar, at - 1)) at--;
    return at;
  }

  private paired(bar: number, other: number): boolean {
    const { lane, group } = this.plot;
    return other === bar || (group[bar] >= 0 && lane[other] === lane[bar] && group[other] === group[bar]);
  }
}

function rowOf(index: Index, bar: number): Int32Array {
  return index.other.subarray(index.offsets[bar], index.offsets[bar + 1]);
}

function indexOf(key: Int32Array, value: Int32Array, count: number): Index {
  const offsets = new Int32Array(count + 1);
  for (const bar of key) offsets[bar + 1] += 1;
  for (let bar = 0; bar < count; bar++) offsets[bar + 1] += offsets[bar];
  const other = new Int32Array(key.length);
  const cursor = offsets.slice(0, count);
  for (let link = 0; link < key.length; link++) other[cursor[key[link]]++] = value[link];
  return { offsets, other };
}
