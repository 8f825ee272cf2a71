/** Bars next to the numbers of one column, all on the same scale: twice the number, twice the bar. */

import { Times } from "../format.js";

export interface Bar {
  readonly text: string;
  /** Its length as a share of the column's longest one, from 0 to 1. */
  readonly share: number;
  /** Room for each number of the column, in characters, so that the tracks next to them are equally long. */
  readonly characters: number;
}

/** Return a bar for each time with its formatted number; if no time is positive, all bars are empty. */
export function barsOf(times: readonly number[], form: Times = Times.of(times, "")): Bar[] {
  const longest = Math.max(...times, 0);
  const texts = times.map((time) => form.number(time));
  const characters = Math.max(...texts.map((text) => text.length), 0);
  return times.map((time, at) => ({
    text: texts[at],
    share: longest > 0 ? Math.max(time, 0) / longest : 0,
    characters,
  }));
}
