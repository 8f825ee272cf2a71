/** Error messages above the results: a sentence, or buttons that lead to the invalid fields. */

import { make } from "../dom.js";

export interface Marked {
  readonly name: string;
  readonly label: string;
}

export class Banner {
  readonly element = make("p", { class: "banner", role: "alert", hidden: true });

  constructor(
    /** Text before the buttons of the invalid fields. */
    private readonly before: string,
    private readonly go: (name: string) => void,
  ) {}

  clear(): void {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  show(sentence: string): void {
    this.fill(sentence);
  }

  /** Show a button for each invalid field. */
  point(marked: readonly Marked[]): void {
    const links = marked.flatMap(({ name, label }, at) => {
      const link = make("button", { type: "button", class: "link" }, label);
      link.addEventListener("click", () => this.go(name));
      return at === 0 ? [link] : [", ", link];
    });
    this.fill(this.before, ...links, ".");
  }

  /** Replace the content only if it changes, because screen readers announce every replacement. */
  private fill(...content: (Node | string)[]): void {
    const text = content.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
    if (text !== this.element.textContent) this.element.replaceChildren(...content);
    this.element.hidden = false;
  }
}
