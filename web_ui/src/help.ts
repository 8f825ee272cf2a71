/** The list of keys and gestures, as a dialog. */

import { button, make } from "./dom.js";

const KEYS: readonly (readonly [string, string])[] = [
  ["wheel, pinch, + and \u2212", "zoom in time, around the pointer"],
  ["drag, sideways wheel, shift \u2190 \u2192", "move in time"],
  ["0", "show everything"],
  ["\u2190 \u2192", "the previous and the next op on the rank"],
  ["\u2191 \u2193", "the op that the rank above or below runs at that time"],
  ["home, end", "the first and the last op of the rank"],
  ["enter, click", "highlight the chain that held the op up, and what it holds up"],
  ["escape", "clear the selection"],
  ["c", "highlight the critical path"],
  ["/ then enter, n, shift n", "find an op; next and previous match"],
  ["g, m, o, t", "reasons for idling, memory, overlay, theme"],
  ["[ and ], alt wheel", "make lanes lower or higher"],
  ["page up, page down, shift wheel", "scroll up and down"],
];

export class Help {
  readonly element = make("dialog", { class: "pp-help", "aria-label": "keys and gestures" });

  constructor() {
    const keys = KEYS.flatMap(([key, does]) => [make("dt", {}, key), make("dd", {}, does)]);
    const close = button("Close", "close", () => this.element.close());
    this.element.append(make("h2", {}, "Keys and gestures"), make("dl", {}, ...keys), close);
  }

  open(): void {
    if (!this.element.open) this.element.showModal();
  }
}
