/** Progress of a plan, and a button that stops it. */

import { button, make } from "../dom.js";
import type { PlanProgress } from "./api.js";

export class ProgressLine {
  readonly element = make("div", { class: "progress", hidden: true });
  private readonly bar = make("progress", { max: 1, "aria-label": "progress of the plan" });
  private readonly said = make("span", { role: "status" });

  constructor(cancel: () => void) {
    this.element.append(this.bar, this.said, button("Cancel", "stop this plan (Escape)", cancel));
  }

  begin(): void {
    this.bar.removeAttribute("value");
    this.said.textContent = "asks";
    this.element.hidden = false;
  }

  show({ share, said, best_s: best }: PlanProgress): void {
    this.bar.value = share;
    this.said.textContent = best === undefined || best === null ? said : `${said}, best ${best.toPrecision(4)} s`;
  }

  end(): void {
    this.element.hidden = true;
  }
}
