/** Undo history: a sequence of texts; consecutive typing is one step. */

import type { Place } from "./words.js";

export interface Step {
  readonly text: string;
  /** Place of the change, which undo selects. */
  readonly place: Place | null;
}

/** Milliseconds without typing after which the next character begins a new step. */
const PAUSE = 900;

const MOST_STEPS = 500;
/** Maximum number of characters of all steps together. */
const MOST_SIGNS = 40_000_000;

export class History {
  private steps: Step[];
  private at = 0;
  private typing = false;
  private last = 0;

  constructor(text: string) {
    this.steps = [{ text, place: null }];
  }

  get text(): string {
    return this.steps[this.at].text;
  }

  get canUndo(): boolean {
    return this.at > 0;
  }

  get canRedo(): boolean {
    return this.at < this.steps.length - 1;
  }

  /** Add a changed text, which discards undone steps. Changes with `typed` merge if their times, in milliseconds, are close. */
  add(text: string, place: Place | null, typed: boolean, now: number): void {
    if (text === this.text) return;
    const joins = typed && this.typing && this.at > 0 && now - this.last < PAUSE;
    this.steps.length = joins ? this.at : this.at + 1;
    this.steps.push({ text, place });
    this.typing = typed;
    this.last = now;
    while (this.steps.length > MOST_STEPS || (this.steps.length > 2 && this.signs() > MOST_SIGNS)) this.steps.shift();
    this.at = this.steps.length - 1;
  }

  /** Go one step back: return the text before it, and where it differs. Null at the beginning. */
  undo(): Step | null {
    if (!this.canUndo) return null;
    const { place } = this.steps[this.at];
    this.at -= 1;
    this.typing = false;
    return { text: this.text, place };
  }

  redo(): Step | null {
    if (!this.canRedo) return null;
    this.at += 1;
    this.typing = false;
    return this.steps[this.at];
  }

  /** Go to the nearest step with a text, or add it. */
  goTo(text: string): void {
    const places = this.steps.flatMap((step, at) => (step.text === text ? [at] : []));
    this.typing = false;
    if (places.length === 0) this.add(text, null, false, 0);
    else this.at = places.reduce((near, at) => (Math.abs(at - this.at) < Math.abs(near - this.at) ? at : near));
  }

  private signs(): number {
    return this.steps.reduce((sum, step) => sum + step.text.length, 0);
  }
}
