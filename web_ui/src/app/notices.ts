/** Messages about unknown names of the link that opened the page, with buttons that use the nearest names. */

import { button, make } from "../dom.js";
import type { UnknownName } from "./unknown_names.js";

/** Maximum number of messages; a link that is no link of this page has many unknown names. */
const MOST = 4;

export class Notices {
  readonly element = make("ul", {
    class: "notices",
    "aria-live": "polite",
    "aria-label": "unknown names of this link",
    hidden: true,
  });

  /** `take` opens an address, which is a query and a fragment. */
  constructor(private readonly take: (address: string) => void) {}

  show(unknown: readonly UnknownName[]): void {
    this.element.hidden = unknown.length === 0;
    this.element.replaceChildren(...unknown.slice(0, MOST).map((one) => this.line(one)));
  }

  private line({ kind, name, nearest, address }: UnknownName): HTMLElement {
    const text = make("span", {}, `Unknown ${kind} \u201c${name}\u201d in this link.`);
    if (nearest === null)
      return make(
        "li",
        {},
        text,
        button("Remove it", "open the link without it", () => this.take(address)),
      );
    const use = button(nearest, `use ${nearest}`, () => this.take(address));
    return make("li", {}, text, make("span", {}, "Did you mean ", use, "?"));
  }
}
