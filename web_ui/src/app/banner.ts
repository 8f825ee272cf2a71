/** Errors above the answers: a sentence, or buttons that lead to the fields at fault. */

import { make } from "../dom.js";

export interface Marked {
  readonly name: string;
  readonly label: string;
}

export class Banner {
  readonly element = make("p", { class: "banner", role: "alert", hidden: true });

  constructor(
    /** Said before the fields at fault. */
    private readonly before: string,
    private readonly go: (name: string) => void,
  ) {}

  clear(): void {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  say(sentence: string): void {
    this.fill(sentence);
  }

  /** Lead to fields. */
  point(marked: readonly Marked[]): void {
    const links = marked.flatMap(({ name, label }, at) => {
      const link = make("button", { type: "button", class: "link" }, label);
      link.addEventListener("click", () => this.go(name));
      return at === 0 ? [link] : [", ", link];
    });
    this.fill(this.before, ...links, ".");
  }

  /** Said again only where it has changed: it is read out each time. */
  private fill(...content: (Node | string)[]): void {
    const text = content.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
    if (text !== this.element.textContent) this.element.replaceChildren(...content);
    this.element.hidden = false;
  }
}
