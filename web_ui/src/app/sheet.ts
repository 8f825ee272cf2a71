/** Sheet with the controls: on a narrow page, a button opens it over the results. */

import { make } from "../dom.js";

/** Media query of narrow pages, as in the style sheet. */
const NARROW = "(max-width: 720px)";

export class Sheet {
  readonly opener = make("button", {
    type: "button",
    class: "sheet-opener",
    "aria-controls": "controls",
    "aria-expanded": "false",
  });
  private readonly closer = make("button", { type: "button", class: "primary sheet-closer" }, "Show results");

  /** `others` are inert while the sheet is open. */
  constructor(
    private readonly sheet: HTMLElement,
    private readonly others: readonly HTMLElement[],
  ) {
    this.setLabel("Shape, costs and schedules");
    this.opener.addEventListener("click", () => this.toggle(true));
    this.closer.addEventListener("click", () => this.toggle(false));
    sheet.addEventListener("keydown", (event) => event.key === "Escape" && this.toggle(false));
    window.matchMedia(NARROW).addEventListener("change", () => this.toggle(false));
    sheet.append(make("div", { class: "sheet-end" }, this.closer));
  }

  /** Label of the button that opens the sheet: the current settings. */
  setLabel(text: string): void {
    this.opener.textContent = text;
  }

  /** Open the sheet on a narrow page, so that its fields can have the focus. */
  reveal(): void {
    if (window.matchMedia(NARROW).matches) this.toggle(true);
  }

  close(): void {
    this.toggle(false);
  }

  private toggle(open: boolean): void {
    if (open === document.body.classList.contains("sheet-open")) return;
    document.body.classList.toggle("sheet-open", open);
    this.opener.setAttribute("aria-expanded", String(open));
    for (const other of this.others) other.inert = open;
    if (open) this.sheet.querySelector<HTMLElement>("select, input")?.focus();
    else this.opener.focus();
  }
}
