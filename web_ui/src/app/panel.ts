/** Panels between the table and the timelines: each is one file, made from the page around it, and opened by its button. */

import type { Comparison, OwnFile, Question } from "./api.js";
import type { Picture } from "./picture.js";

export interface Panel {
  /** In the page's address: `open=search`. */
  readonly name: string;
  /** Label of its button. */
  readonly title: string;
  readonly element: HTMLElement;
  /** It was opened or closed. */
  toggled?(open: boolean): void;
  /** It shall be about one schedule of the comparison, which may be about to come. */
  about?(schedule: string): void;
  /** Part of the page's address while the panel is open. */
  query?(): Readonly<Record<string, string>>;
  /** There is a new comparison; `open` as long as the panel is. */
  answered?(comparison: Comparison, open: boolean): void;
}

/** The page as its panels know it. */
export interface Host {
  /** The request of the page; with names, only for these schedules. */
  question(names?: readonly string[]): Question;
  /** The last answer; null before the first one. */
  readonly comparison: Comparison | null;
  /** The schedules whose timelines show. */
  readonly drawn: readonly string[];
  /** The timelines. */
  readonly picture: Picture;
  /** Read and change the text of a field of the form. */
  typed(field: string): string;
  type(field: string, text: string): void;
  /** Title of a field on the page. */
  labelOf(field: string): string;
  /** Let a schedule of one's own join the comparison, in place of one of the same name, and show its timeline. */
  add(file: OwnFile): void;
  /** Compare with a published schedule too, and show its timeline. */
  compareWith(name: string): void;
  /** Open another panel, about one schedule where one is named. */
  open(panel: string, about?: string): void;
  /** Show these schedules' timelines. */
  show(names: readonly string[]): void;
  /** Bring the page's address up to date. */
  remember(): void;
}

export type MakePanel = (host: Host) => Panel;
