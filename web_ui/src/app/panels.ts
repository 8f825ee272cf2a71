/** The panels beside the timelines: a row of buttons, and the open panel; the first one is open if no other is. */

import { make } from "../dom.js";
import type { Comparison } from "./api.js";
import type { Panel } from "./panel.js";

export class Panels {
  readonly element = make("div", { class: "panels" });
  private readonly buttons = new Map<Panel, HTMLButtonElement>();
  private current: Panel;

  constructor(
    private readonly panels: readonly Panel[],
    /** Called after another panel is opened. */
    private readonly changed: () => void,
  ) {
    this.current = panels[0];
    const bar = make("div", { class: "panel-bar", role: "group", "aria-label": "panels" });
    for (const panel of panels) {
      const id = `panel-${panel.name}`;
      const button = make(
        "button",
        { type: "button", "aria-expanded": String(panel === this.current), "aria-controls": id },
        panel.title,
      );
      button.addEventListener("click", () => this.toggle(panel));
      this.buttons.set(panel, button);
      panel.element.id = id;
      panel.element.hidden = panel !== this.current;
      panel.element.classList.add("panel");
      panel.element.setAttribute("role", "region");
      panel.element.setAttribute("aria-label", panel.title);
      bar.append(button);
    }
    this.element.append(bar, ...panels.map((panel) => panel.element));
  }

  /** The name of the open panel; empty for the first one. */
  get open(): string {
    return this.current === this.panels[0] ? "" : this.current.name;
  }

  set open(name: string) {
    this.show(this.panels.find((panel) => panel.name === name) ?? this.panels[0]);
  }

  get names(): readonly string[] {
    return this.panels.map((panel) => panel.name);
  }

  /** Part of the address of the open panel. */
  query(): Readonly<Record<string, string>> {
    return this.current.query?.() ?? {};
  }

  /** Text of the open panel that the browser's history keeps. */
  get editedText(): string | null {
    return this.current.editedText?.() ?? null;
  }

  /** Restore a text of the history or of the address in all panels. */
  restore(schedule: string, rows: string | null): void {
    for (const panel of this.panels) panel.restore?.(schedule, rows);
  }

  about(schedule: string): void {
    this.current.about?.(schedule);
  }

  answered(comparison: Comparison): void {
    for (const panel of this.panels) panel.answered?.(comparison, panel === this.current);
  }

  private toggle(panel: Panel): void {
    this.show(panel === this.current ? this.panels[0] : panel);
  }

  private show(panel: Panel): void {
    const before = this.current;
    if (before === panel) return;
    this.current = panel;
    for (const [other, button] of this.buttons) {
      button.setAttribute("aria-expanded", String(other === panel));
      other.element.hidden = other !== panel;
    }
    before.toggled?.(false);
    panel.toggled?.(true);
    this.changed();
  }
}
