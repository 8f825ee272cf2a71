/** The verdict in words: whether the schedule runs, the effect of the last change, errors, and trainers that can run it. */

import { make } from "../dom.js";
import { timeText } from "../format.js";
import type { Flaw, Trainer, Verdict } from "./api.js";
import type { Place } from "./words.js";

/** Maximum number of blocked ranks that are listed. */
const MOST_WAITING = 16;

export class VerdictView {
  readonly element = make("div", { class: "verdict" });
  private readonly headline = make("p", { class: "headline", id: "edit-verdict", role: "status" });
  private readonly list = make("ul", { class: "flaws" });
  private readonly stops = make("ul", {});
  private readonly more = make("details", { hidden: true }, make("summary", {}, "Where each rank stops"), this.stops);
  private readonly trainers = make("ul", { class: "trainers", "aria-label": "trainers that can run it" });

  /** `go` selects a word of the text. */
  constructor(private readonly go: (place: Place) => void) {
    this.element.append(this.headline, this.list, this.more, this.trainers);
  }

  /** Show a verdict; `edited` is whether the text differs from the original. */
  show(verdict: Verdict, edited: boolean): void {
    this.element.dataset.state = verdict.valid ? (verdict.result?.fits === false ? "over" : "runs") : "stopped";
    this.headline.replaceChildren(...headline(verdict, edited));
    const waiting = verdict.stopped?.waiting ?? [];
    const flaws = [...verdict.flaws, ...verdict.over].map((flaw) => this.flaw(flaw));
    if (verdict.more > 0) flaws.push(make("li", {}, `and ${verdict.more.toLocaleString("en")} more like these`));
    this.list.replaceChildren(...flaws);
    this.list.hidden = flaws.length === 0;
    const stops = waiting.slice(0, MOST_WAITING).map((wait) => make("li", {}, this.link(wait.message, wait.places)));
    if (waiting.length > MOST_WAITING) stops.push(make("li", {}, "and so on"));
    this.stops.replaceChildren(...stops);
    this.more.hidden = stops.length === 0;
    this.trainers.replaceChildren(...(verdict.trainers ?? []).map(trainer));
    this.trainers.hidden = (verdict.trainers ?? []).length === 0;
  }

  /** Show that the verdict is pending. */
  wait(): void {
    this.element.dataset.state = "waits";
    this.headline.textContent = "Computing\u2026";
  }

  /** Show why the text could not be checked. */
  fail(message: string): void {
    this.element.dataset.state = "failed";
    this.headline.replaceChildren(make("strong", {}, "Not checked. "), message);
    this.list.hidden = true;
    this.more.hidden = true;
    this.trainers.hidden = true;
  }

  private flaw({ rule, message, places }: Flaw): HTMLElement {
    return make("li", {}, make("span", { class: "rule" }, RULES[rule] ?? rule), this.link(message, places));
  }

  /** Return a message with a link to its word, if it has one. */
  private link(message: string, places: readonly (readonly [number, number])[]): HTMLElement {
    const [first] = places;
    if (first === undefined) return make("span", {}, message);
    const link = make("button", { type: "button", class: "place" }, message);
    link.addEventListener("click", () => this.go({ line: first[0], word: first[1] }));
    return link;
  }
}

/** Short names of the checker's rules. */
const RULES: Readonly<Record<string, string>> = {
  notation: "not an op",
  range: "not in the schedule",
  rows: "ranks",
  incomplete: "missing",
  duplicate: "twice",
  rank: "wrong rank",
  order: "too early",
  overlap: "overlap",
  deadlock: "deadlock",
  memory: "memory",
  placement: "placement",
  message: "message",
  channel: "message order",
  rendezvous: "deadlock",
};

function headline(verdict: Verdict, edited: boolean): (Node | string)[] {
  const notes = verdict.notes.map((note) => ` ${capital(note)}.`);
  if (!verdict.valid) {
    const { stopped } = verdict;
    const far =
      stopped === null || stopped.ran === 0
        ? ""
        : stopped.ran === stopped.ops
          ? " The ops that are present run, but some are missing."
          : ` ${stopped.ran} of ${stopped.ops} ops run, until time ${timeText(stopped.until)}.`;
    return [make("strong", {}, "Invalid: does not run."), far, ...notes];
  }
  const over = verdict.result?.fits === false ? " It exceeds the memory limit." : "";
  const comment = verdict.changed !== "" ? ` ${verdict.changed}` : edited ? "" : " Drag an op, or type below.";
  return [make("strong", {}, "It runs."), over, comment, ...notes];
}

function trainer({ trainer: name, runs, reason }: Trainer): HTMLElement {
  const sign = make("span", { class: "sign", "aria-hidden": "true" }, runs ? "\u2713" : "\u2717");
  if (runs) return make("li", { class: "takes" }, sign, `${name} runs it`);
  return make("li", {}, sign, `${name} does not: `, make("span", { class: "faint" }, reason));
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
