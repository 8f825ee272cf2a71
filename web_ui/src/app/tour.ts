/** Three tips on this page; each has a ring around its subject. */

import { button, make } from "../dom.js";

export interface Tip {
  readonly text: string;
  /** Selectors of its subject: the first visible element is highlighted. */
  readonly about: readonly string[];
}

export const TIPS: readonly Tip[] = [
  {
    text: "Start with your costs: choose measured ones, drop your own profile, or move a slider. The page updates at once.",
    about: [".preset", ".sheet-opener"],
  },
  {
    text: "Click an op in the timeline to highlight its dependencies, back to the first op, and the ops that wait for it.",
    about: [".timeline"],
  },
  {
    text: "Set a memory limit and search: the page shows the gain over the best published schedule that fits.",
    about: [".panel-bar [aria-controls=panel-search]", ".panel-bar button"],
  },
];

export class Tour {
  readonly element = make("section", { class: "tour", "aria-label": "tips", hidden: true });
  readonly opener = button("Tips", "three tips on this page", () => this.open());
  private readonly text = make("div", { class: "tour-text", "aria-live": "polite" });
  private readonly count = make("span", { class: "faint" });
  private readonly next = make("button", { type: "button" });
  private at = 0;

  constructor(private readonly tips: readonly Tip[] = TIPS) {
    const close = button("Close", "close the tips; the header reopens them (Escape)", () => this.close());
    this.next.addEventListener("click", () => (this.at + 1 < this.tips.length ? this.show(this.at + 1) : this.close()));
    this.element.append(this.text, make("div", { class: "tour-hands" }, this.count, this.next, close));
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  private open(): void {
    this.show(0);
    this.next.focus();
  }

  private show(at: number): void {
    this.at = at;
    this.element.hidden = false;
    this.text.textContent = this.tips[at].text;
    this.count.textContent = `${at + 1} of ${this.tips.length}`;
    this.next.textContent = at + 1 < this.tips.length ? "Next tip" : "Done";
    this.ring(at > 0);
  }

  private close(): void {
    const inside = this.element.contains(document.activeElement);
    this.element.hidden = true;
    this.clear();
    if (inside) this.opener.focus();
  }

  private ring(scroll: boolean): void {
    this.clear();
    const target = this.tips[this.at].about
      .map((selector) => document.querySelector<HTMLElement>(selector))
      .find((element) => element !== null && element.getClientRects().length > 0);
    target?.classList.add("ringed");
    if (scroll) target?.scrollIntoView({ block: "nearest" });
  }

  private clear(): void {
    for (const element of document.querySelectorAll(".ringed")) element.classList.remove("ringed");
  }
}
