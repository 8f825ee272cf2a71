/** Interface of the panels beside the timelines: each is one file and has a button that opens it. */

import type { CompareRequest, Comparison, OwnFile } from "./api.js";
import type { Picture } from "./picture.js";

export interface Panel {
  /** Name in the page's address: `open=search`. */
  readonly name: string;
  /** Label of its button. */
  readonly title: string;
  readonly element: HTMLElement;
  /** Called after the panel is opened or closed. */
  toggled?(open: boolean): void;
  /** Use one schedule of the comparison, which may arrive later. */
  about?(schedule: string): void;
  /** Part of the page's address while the panel is open. */
  query?(): Readonly<Record<string, string>>;
  /** Edited text, which the browser's history keeps; null if nothing is edited. */
  editedText?(): string | null;
  /** Restore the edited text of a schedule; null for the original text. */
  restore?(schedule: string, rows: string | null): void;
  /** Called with each new comparison; `open` is whether the panel is open. */
  answered?(comparison: Comparison, open: boolean): void;
}

/** Interface of the page for its panels. */
export interface Host {
  /** The request of the page; with names, only for these schedules. */
  request(names?: readonly string[]): CompareRequest;
  /** The last comparison; null before the first one. */
  readonly comparison: Comparison | null;
  /** Schedules whose timelines are visible. */
  readonly drawn: readonly string[];
  /** The timelines. */
  readonly picture: Picture;
  /** Read and change the text of a field of the form. */
  typed(field: string): string;
  type(field: string, text: string): void;
  /** Title of a field on the page. */
  labelOf(field: string): string;
  /** Add a schedule file to the comparison, replacing one of the same name, and show its timeline. */
  add(file: OwnFile): void;
  /** Add a published schedule to the comparison and show its timeline. */
  compareWith(name: string): void;
  /** Open another panel, optionally for one schedule. */
  open(panel: string, about?: string): void;
  /** Show these schedules' timelines. */
  show(names: readonly string[]): void;
  /** Update the page's address. */
  remember(): void;
}

export type MakePanel = (host: Host) => Panel;
