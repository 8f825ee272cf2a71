/** The row of buttons that open panels, and the open panel. */

import { make } from "../dom.js";
import type { Comparison } from "./api.js";
import type { Panel } from "./panel.js";

export class Panels {
  readonly element = make("div", { class: "panels", hidden: true });
  private readonly buttons = new Map<Panel, HTMLButtonElement>();
  private current: Panel | null = null;

  constructor(
    private readonly panels: readonly Panel[],
    private readonly changed: () => void,
  ) {
    const bar = make("div", { class: "panel-bar", role: "group", "aria-label": "further panels on these schedules" });
    for (const panel of panels) {
      const id = `panel-${panel.name}`;
      const button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": id }, panel.title);
      button.addEventListener("click", () => this.toggle(panel));
      this.buttons.set(panel, button);
      panel.element.id = id;
      panel.element.hidden = true;
      panel.element.classList.add("panel");
      panel.element.setAttribute("role", "region");
      panel.element.setAttribute("aria-label", panel.title);
      bar.append(button);
    }
    this.element.append(bar, ...panels.map((panel) => panel.element));
  }

  /** The name of the open panel; empty for none. */
  get open(): string {
    return this.current?.name ?? "";
  }

  set open(name: string) {
    this.show(this.panels.find((panel) => panel.name === name) ?? null);
  }

  /** Part of the address of the open panel. */
  query(): Readonly<Record<string, string>> {
    return this.current?.query?.() ?? {};
  }

  about(schedule: string): void {
    this.current?.about?.(schedule);
  }

  answered(comparison: Comparison): void {
    this.element.hidden = comparison.results.length === 0;
    for (const panel of this.panels) panel.answered?.(comparison, panel === this.current);
  }

  private toggle(panel: Panel): void {
    this.show(panel === this.current ? null : panel);
    this.changed();
  }

  private show(panel: Panel | null): void {
    const before = this.current;
    if (before === panel) return;
    this.current = panel;
    for (const [other, button] of this.buttons) {
      button.setAttribute("aria-expanded", String(other === panel));
      other.element.hidden = other !== panel;
    }
    before?.toggled?.(false);
    panel?.toggled?.(true);
  }
}
