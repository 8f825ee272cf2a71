/** Progress of a plan, and a button that stops it. */

import { button, make } from "../dom.js";
import type { PlanProgress } from "./api.js";

export class ProgressLine {
  readonly element = make("div", { class: "progress", hidden: true });
  private readonly bar = make("progress", { max: 1, "aria-label": "progress of the plan" });
  private readonly status = make("span", { role: "status" });

  constructor(cancel: () => void) {
    this.element.append(this.bar, this.status, button("Cancel", "stop this plan (Escape)", cancel));
  }

  begin(): void {
    this.bar.removeAttribute("value");
    this.status.textContent = "starting";
    this.element.hidden = false;
  }

  show({ share, said: message, best_s: best }: PlanProgress): void {
    this.bar.value = share;
    this.status.textContent =
      best === undefined || best === null ? message : `${message}, best ${best.toPrecision(4)} s`;
  }

  end(): void {
    this.element.hidden = true;
  }
}
