/**
 * Editor of a schedule's text: a line per rank, with its words marked beneath the text. It shows a long text in pages
 * of some ranks, because browsers are slow with long text areas.
 */

import { button, make } from "../dom.js";
import { kindOf, linesOf, type Place, type Span, wordAt, wordsOf } from "./words.js";

export interface AreaHandlers {
  /** Called after the user types; `place` is the word at the caret. */
  typed(text: string, place: Place | null): void;
  /** Called after the caret moves to another word, or to none. */
  pointed(place: Place | null): void;
  /** Handle a key; return whether it had an effect. */
  pressed(event: KeyboardEvent): boolean;
}

/** Marks of words, in addition to their kind. */
export interface Marks {
  readonly wrong: readonly Place[];
  readonly over: readonly Place[];
  readonly lit: Place | null;
}

/** Maximum number of characters in the text area at a time. */
const MOST_CHARACTERS = 24_000;

export class Area {
  readonly element = make("div", { class: "rows" });
  private readonly back = make("pre", { "aria-hidden": "true" });
  private readonly gutter = make("div", { class: "rows-gutter", "aria-hidden": "true" });
  private readonly area = make("textarea", {
    class: "rows-text",
    wrap: "off",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    "aria-label": "ops of each rank, one line per rank",
    "aria-describedby": "edit-verdict",
  });
  private readonly pane = make("div", { class: "rows-pane" });
  private readonly range = make("span", {});
  private readonly pager = make("div", { class: "rows-pager", hidden: true });
  private lines: string[] = [""];
  private first = 0;
  private count = 1;
  private marks: Marks = { wrong: [], over: [], lit: null };
  private rankOf = new Map<number, number>();

  constructor(private readonly handlers: AreaHandlers) {
    const inner = make(
      "div",
      { class: "rows-inner" },
      this.gutter,
      make("div", { class: "rows-sheet" }, this.back, this.area),
    );
    this.pane.append(inner);
    const turn = (by: number) => this.turnTo(this.first + by * this.count);
    this.pager.append(
      button("\u2039", "the ranks before", () => turn(-1)),
      this.range,
      button("\u203a", "the ranks after", () => turn(1)),
    );
    this.element.append(this.pager, this.pane);
    this.area.addEventListener("input", () => this.typed());
    this.area.addEventListener("keydown", (event) => {
      if (handlers.pressed(event)) event.preventDefault();
    });
    for (const name of ["keyup", "click", "select"]) this.area.addEventListener(name, () => this.pointed());
  }

  get text(): string {
    return this.lines.join("\n");
  }

  /** Replace the text. */
  set text(text: string) {
    this.lines = linesOf(text);
    this.renew();
  }

  /** Show as many lines as the limit of characters allows. */
  private renew(): void {
    this.count = windowOf(this.lines);
    this.first = Math.min(this.first, Math.max(0, this.lines.length - this.count));
    this.fill();
  }

  /** Mark words, and number the lines that are rows of ranks. */
  mark(marks: Marks, rows: readonly number[]): void {
    this.marks = marks;
    this.rankOf = new Map(rows.map((line, rank) => [line, rank]));
    this.draw();
  }

  /** Word at the caret, or null. */
  get place(): Place | null {
    const before = this.area.value.slice(0, this.area.selectionStart);
    const line = before.split("\n").length - 1;
    const column = before.length - (before.lastIndexOf("\n") + 1);
    const word = wordAt(this.lines[this.first + line] ?? "", column);
    return word < 0 ? null : { line: this.first + line, word };
  }

  /** Select a word and scroll to it; with `focus`, also focus the text area. */
  go(place: Place, focus: boolean): void {
    if (place.line < this.first || place.line >= this.first + this.count) this.turnTo(place.line);
    const span: Span | undefined = wordsOf(this.lines[place.line] ?? "")[place.word];
    if (span === undefined) return;
    let start = 0;
    for (let line = this.first; line < place.line; line++) start += this.lines[line].length + 1;
    if (focus) this.area.focus({ preventScroll: true });
    this.area.setSelectionRange(start + span.from, start + span.to);
    this.reveal(place.line - this.first, span);
  }

  private reveal(line: number, span: Span): void {
    const style = getComputedStyle(this.area);
    const height = Number.parseFloat(style.lineHeight);
    const width = this.area.scrollWidth / Math.max(1, ...this.visible().map((text) => text.length));
    const [left, top] = [span.from * width, line * height];
    const { clientWidth, clientHeight } = this.pane;
    const room = clientWidth - this.gutter.offsetWidth;
    if (left < this.pane.scrollLeft || span.to * width > this.pane.scrollLeft + room) {
      this.pane.scrollLeft = Math.max(0, left - room / 3);
    }
    if (top < this.pane.scrollTop || top + height > this.pane.scrollTop + clientHeight) {
      this.pane.scrollTop = Math.max(0, top - clientHeight / 2);
    }
  }

  private visible(): string[] {
    return this.lines.slice(this.first, this.first + this.count);
  }

  private turnTo(first: number): void {
    this.first = Math.min(Math.max(first, 0), Math.max(0, this.lines.length - this.count));
    this.fill();
  }

  private fill(): void {
    const text = this.visible().join("\n");
    if (this.area.value !== text) this.area.value = text;
    this.pager.hidden = this.count >= this.lines.length;
    const last = Math.min(this.first + this.count, this.lines.length);
    this.range.textContent = `lines ${this.first + 1} to ${last} of ${this.lines.length}: the text is too long to show all ranks at once`;
    this.draw();
  }

  private typed(): void {
    const written = linesOf(this.area.value);
    this.lines.splice(this.first, this.count, ...written);
    this.count = written.length;
    this.marks = { ...this.marks, wrong: [], over: [] };
    // After a long paste, show fewer lines.
    if (this.area.value.length > 2 * MOST_CHARACTERS) this.renew();
    else this.draw();
    this.handlers.typed(this.text, this.place);
    this.pointed();
  }

  private pointed(): void {
    const { place } = this;
    const { lit } = this.marks;
    if (place?.line === lit?.line && place?.word === lit?.word) return;
    this.marks = { ...this.marks, lit: place };
    this.draw();
    this.handlers.pointed(place);
  }

  /** Draw the marks below the text, and the ranks next to it. */
  private draw(): void {
    const visible = this.visible();
    const classes = new Map<string, string>();
    const add = (place: Place, name: string) => {
      const key = `${place.line}:${place.word}`;
      classes.set(key, `${classes.get(key) ?? ""} ${name}`);
    };
    for (const place of this.marks.wrong) add(place, "wrong");
    for (const place of this.marks.over) add(place, "over-limit");
    if (this.marks.lit !== null) add(this.marks.lit, "lit");
    const nodes = visible.flatMap((line, at) => [...this.lineOf(line, this.first + at, classes), "\n"]);
    this.back.replaceChildren(...nodes);
    const names = visible.map((_, at) => {
      const rank = this.rankOf.get(this.first + at);
      return make("div", {}, rank === undefined ? "\u00a0" : `rank ${rank}`);
    });
    this.gutter.replaceChildren(...names);
  }

  private lineOf(line: string, number: number, classes: ReadonlyMap<string, string>): (Node | string)[] {
    if (line.length > 2 * MOST_CHARACTERS) return [line];
    const nodes: (Node | string)[] = [];
    let at = 0;
    wordsOf(line).forEach(({ from, to, text }, word) => {
      if (from > at) nodes.push(line.slice(at, from));
      const kind = kindOf(text);
      const span = make("span", { class: `word${classes.get(`${number}:${word}`) ?? ""}` }, text);
      if (/^[FBIWR]$/.test(kind)) span.style.setProperty("--word", `var(--kind-${kind})`);
      nodes.push(span);
      at = to;
    });
    nodes.push(line.slice(at));
    return nodes;
  }
}

/** Return the number of lines of a page; all of a short text. */
function windowOf(lines: readonly string[]): number {
  const characters = lines.reduce((sum, line) => sum + line.length + 1, 0);
  return characters <= MOST_CHARACTERS
    ? lines.length
    : Math.max(1, Math.floor((MOST_CHARACTERS * lines.length) / characters));
}
