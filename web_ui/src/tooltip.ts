/** Tooltip next to the pointer. */

import type { Description } from "./describe.js";
import { make } from "./dom.js";

const AWAY = 14;

export class Tooltip {
  readonly element = make("div", { class: "pp-tooltip", role: "tooltip", hidden: true });

  show(description: Description, x: number, y: number, width: number, height: number): void {
    const swatch = make("span", { class: "pp-swatch" });
    swatch.style.background = description.fill;
    swatch.hidden = description.fill === "";
    const title = make("strong", {}, description.title);
    const facts = description.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
    this.element.replaceChildren(
      make("div", { class: "pp-tooltip-head" }, swatch, title, ` ${description.kind}`),
      make("dl", {}, ...facts),
    );
    this.element.hidden = false;
    const { offsetWidth, offsetHeight } = this.element;
    const left = x + AWAY + offsetWidth <= width ? x + AWAY : x - AWAY - offsetWidth;
    const top = y + AWAY + offsetHeight <= height ? y + AWAY : y - AWAY - offsetHeight;
    this.element.style.left = `${Math.max(0, Math.min(left, width - offsetWidth))}px`;
    this.element.style.top = `${Math.max(-40, top)}px`;
  }

  hide(): void {
    this.element.hidden = true;
  }
}
