/** Mapping between bars of a timeline and words of the text: both have the ops of a rank in the same order. */

import { integers, type ViewJson } from "../data.js";
import { opsOf, type Place, wordsOf } from "./words.js";

export class BarPlaces {
  private readonly placeOfBar = new Map<number, Place>();
  private readonly barOfPlace = new Map<string, number>();
  private readonly barsOfLane: number[][];
  private readonly names: string[];

  /** `rowLines`: the line of the text that each rank has. */
  constructor(view: ViewJson, lines: readonly string[], rowLines: readonly number[]) {
    const { bars } = view;
    const lane = integers(bars.lane);
    this.names = namesOf(view);
    this.barsOfLane = view.lanes.label.map(() => []);
    lane.forEach((rank, bar) => {
      this.barsOfLane[rank].push(bar);
    });
    this.barsOfLane.forEach((own, rank) => {
      const line = rowLines[rank];
      if (line !== undefined && lines[line] !== undefined) this.match(own, line, lines[line]);
    });
  }

  /** The word of a bar; null for one that the text does not hold, such as a message that was put in. */
  placeOf(bar: number): Place | null {
    return this.placeOfBar.get(bar) ?? null;
  }

  /** The bar of the first op that a word names, -1 where it has none. */
  barOf(place: Place): number {
    return this.barOfPlace.get(keyOf(place)) ?? -1;
  }

  /** The word of the first op of this name. */
  placeOfName(name: string): Place | null {
    const bar = this.names.findIndex((other, at) => other === name && this.placeOfBar.has(at));
    return bar < 0 ? null : this.placeOf(bar);
  }

  /** The bars of some words. */
  barsOf(places: readonly Place[]): number[] {
    return places.map((place) => this.barOf(place)).filter((bar) => bar >= 0);
  }

  /**
   * The number among the words of its line that a word would have if its bar stood at the `to`-th place of its rank; null
   * if the bar is not a word.
   */
  wordFor(bar: number, rank: number, to: number): number | null {
    const own = this.placeOf(bar);
    if (own === null) return null;
    const before = this.barsOfLane[rank].filter((other) => other !== bar).slice(0, to);
    const words = before.map((other) => this.placeOf(other)?.word).filter((word) => word !== undefined);
    return new Set(words.filter((word) => word !== own.word)).size;
  }

  private match(bars: readonly number[], line: number, text: string): void {
    const names = wordsOf(text).flatMap((span, word) => opsOf(span.text).map((name) => ({ name, word })));
    let at = 0;
    for (const bar of bars) {
      if (at < names.length && names[at].name === this.names[bar]) {
        const place = { line, word: names[at].word };
        this.placeOfBar.set(bar, place);
        const key = keyOf(place);
        if (!this.barOfPlace.has(key)) this.barOfPlace.set(key, bar);
        at += 1;
      }
    }
  }
}

function keyOf({ line, word }: Place): string {
  return `${line}:${word}`;
}

/** The ops of a view by their names: `3F7`, `3F7.1`. */
function namesOf(view: ViewJson): string[] {
  const { kind, stage, microbatch, slice } = view.bars;
  const [kinds, stages, microbatches, slices] = [kind, stage, microbatch, slice].map(integers);
  return [...stages].map((number, bar) => {
    const part = slices[bar] > 0 ? `.${slices[bar]}` : "";
    return `${number}${view.kinds[kinds[bar]]}${microbatches[bar] < 0 ? "" : microbatches[bar]}${part}`;
  });
}
