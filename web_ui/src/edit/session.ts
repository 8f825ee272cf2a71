/** An editing session of one schedule: the original text, its history, and the result of the original. */

import type { Result } from "../app/api.js";
import type { Begin, Shape } from "./api.js";
import { History } from "./history.js";
import { linesOf, rowLines } from "./words.js";

export class Session {
  readonly history: History;
  /** Result of the original text with the current costs. */
  baseline: Result | null = null;
  /** Last valid text. */
  before: string | null = null;

  constructor(
    readonly name: string,
    readonly original: string,
    readonly shape: Shape | null,
  ) {
    this.history = new History(original);
  }

  static of(begin: Begin): Session {
    return new Session(begin.name, begin.rows, begin.shape);
  }

  static empty(): Session {
    return new Session("mine", "", null);
  }

  get text(): string {
    return this.history.text;
  }

  get edited(): boolean {
    return this.text !== this.original;
  }

  /** Expected number of rows; null if unknown. */
  get ranks(): number | null {
    return this.shape === null ? null : 1 + Math.max(...this.shape.placement.flat());
  }

  /** Line of each rank. */
  get rows(): number[] {
    return rowLines(linesOf(this.text), this.ranks);
  }

  /** Name of its file. */
  get fileName(): string {
    const stem = this.name.replace(/\.(csv|json|txt)$/i, "").slice(0, 60);
    return `${stem.endsWith("-edited") || this.original === "" ? stem : `${stem}-edited`}.txt`;
  }
}
