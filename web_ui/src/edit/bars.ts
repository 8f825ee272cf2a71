/** Mapping between bars of a timeline and words of the text: both have the ops of a rank in the same order. */

import { integers, type ViewJson } from "../data.js";
import { opsOf, type Place, wordsOf } from "./words.js";

export class BarPlaces {
  private readonly placeOfBar = new Map<number, Place>();
  private readonly barOfPlace = new Map<string, number>();
  private readonly barsOfLane: number[][];
  private readonly names: string[];

  /** `rowLines` has the line of the text of each rank. */
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

  /** Return the word of a bar; null if it is not in the text, such as a generated message. */
  placeOf(bar: number): Place | null {
    return this.placeOfBar.get(bar) ?? null;
  }

  /** Return the bar of the first op that a word names, -1 for none. */
  barOf(place: Place): number {
    return this.barOfPlace.get(keyOf(place)) ?? -1;
  }

  /** Return the word of the first op with a name. */
  placeOfName(name: string): Place | null {
    const bar = this.names.findIndex((other, at) => other === name && this.placeOfBar.has(at));
    return bar < 0 ? null : this.placeOf(bar);
  }

  /** Return the bars of some words. */
  barsOf(places: readonly Place[]): number[] {
    return places.map((place) => this.barOf(place)).filter((bar) => bar >= 0);
  }

  /**
   * Return the index in its line that a word would have if its bar were at position `to` of its rank; null
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

/** Return the names of a view's ops: `3F7`, `3F7.1`. */
function namesOf(view: ViewJson): string[] {
  const { kind, stage, microbatch, slice } = view.bars;
  const [kinds, stages, microbatches, slices] = [kind, stage, microbatch, slice].map(integers);
  return [...stages].map((number, bar) => {
    const part = slices[bar] > 0 ? `.${slices[bar]}` : "";
    return `${number}${view.kinds[kinds[bar]]}${microbatches[bar] < 0 ? "" : microbatches[bar]}${part}`;
  });
}
