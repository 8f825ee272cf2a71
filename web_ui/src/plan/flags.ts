/** The flags to paste: a tab for each trainer, with a button that copies. */

import { button, make } from "../dom.js";
import type { Flags } from "./api.js";

export class FlagTabs {
  readonly element = make("section", { class: "flags" });
  private readonly said = make("span", { class: "link-said", role: "status" });
  private trainer = "";

  show(flags: Readonly<Record<string, Flags>>): void {
    const names = Object.keys(flags);
    if (!names.includes(this.trainer)) this.trainer = names[0] ?? "";
    const found = flags[this.trainer];
    if (found === undefined) {
      this.element.replaceChildren();
      return;
    }
    const focused = document.activeElement?.getAttribute("data-flags") ?? "";
    const tabs = names.map((name) => this.tab(name, flags));
    const copy = button("Copy", `copy the flags for ${this.trainer}`, () => void this.copy(found.text));
    this.element.replaceChildren(
      make("h3", {}, "Flags to paste"),
      make("div", { class: "tabs", role: "group", "aria-label": "trainer" }, ...tabs, copy, this.said),
      make("pre", { tabindex: 0, "aria-label": `flags for ${this.trainer}` }, found.text),
      ...found.warnings.map((text) => make("p", { class: "note" }, text)),
      ...Object.entries(found.files).map(([name, text]) => fileOf(name, text)),
    );
    if (focused !== "") this.element.querySelector<HTMLElement>(`[data-flags="${focused}"]`)?.focus();
  }

  private tab(name: string, flags: Readonly<Record<string, Flags>>): HTMLElement {
    const tab = button(name, `flags for ${name}`, () => {
      this.trainer = name;
      this.show(flags);
    });
    tab.setAttribute("data-flags", name);
    tab.setAttribute("aria-pressed", String(name === this.trainer));
    return tab;
  }

  private async copy(text: string): Promise<void> {
    const copied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    this.said.textContent = copied ? "copied" : "select the text and copy it";
    setTimeout(() => {
      this.said.textContent = "";
    }, 4000);
  }
}

function fileOf(name: string, text: string): HTMLElement {
  return make("details", {}, make("summary", {}, name), make("pre", { tabindex: 0, "aria-label": name }, text));
}
