/** The list of keys and gestures, as a dialog. */

import { button, make } from "./dom.js";

const KEYS: readonly (readonly [string, string])[] = [
  ["wheel, pinch, + and \u2212", "zoom in time, around the pointer"],
  ["drag, sideways wheel, shift \u2190 \u2192", "move in time"],
  ["0", "show everything"],
  ["\u2190 \u2192", "the op before and after on its rank"],
  ["\u2191 \u2193", "the op on the next rank at the same time"],
  ["home, end", "the first and the last op of the rank"],
  ["enter, click", "light what the op waited for and what it holds up"],
  ["escape", "let go of it"],
  ["c", "light the critical path"],
  ["/ then enter, n, shift n", "find an op, next and previous match"],
  ["g, m, o, t", "idle reasons, memory, overlay, theme"],
  ["[ and ], alt wheel", "lower and higher lanes"],
  ["page up, page down, shift wheel", "up and down where lanes are many"],
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
