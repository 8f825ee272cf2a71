/** Trainer flags to paste: a tab per trainer, the prediction for its flags, and a button that copies them. */

import { button, make } from "../dom.js";
import { figure } from "../format.js";
import type { Flags } from "./api.js";

export class FlagTabs {
  readonly element = make("section", { class: "flags" });
  private readonly status = make("span", { class: "link-status", role: "status" });
  private trainer = "";
  private picked = "";

  /** Show the flags of each trainer; the tab of `usual` is open unless the user selected another one. */
  show(flags: Readonly<Record<string, Flags>>, usual = ""): void {
    const names = Object.keys(flags);
    this.trainer = [this.picked, usual].find((name) => names.includes(name)) ?? names[0] ?? "";
    const selected = flags[this.trainer];
    if (selected === undefined) {
      this.element.replaceChildren();
      return;
    }
    const focused = document.activeElement?.getAttribute("data-flags") ?? "";
    const tabs = names.map((name) => this.tab(name, flags));
    const copy = button("Copy", `copy the flags for ${this.trainer}`, () => void this.copy(selected.text));
    this.element.replaceChildren(
      make("h3", {}, "Flags to paste"),
      make("div", { class: "tabs", role: "group", "aria-label": "trainer" }, ...tabs, copy, this.status),
      make("p", { class: "flags-for" }, prediction(this.trainer, selected)),
      make("pre", { tabindex: 0, "aria-label": `flags for ${this.trainer}` }, selected.text),
      ...selected.warnings.map((text) => make("p", { class: "note" }, text)),
      ...Object.entries(selected.files).map(([name, text]) => fileOf(name, text)),
    );
    if (focused !== "") this.element.querySelector<HTMLElement>(`[data-flags="${focused}"]`)?.focus();
  }

  private tab(name: string, flags: Readonly<Record<string, Flags>>): HTMLElement {
    const tab = button(name, `flags for ${name}`, () => {
      this.picked = name;
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
    this.status.textContent = copied ? "copied" : "select the text and copy it";
    setTimeout(() => {
      this.status.textContent = "";
    }, 4000);
  }
}

/** Return the configuration of the flags, and the prediction with this trainer's software. */
export function prediction(trainer: string, flags: Flags): string {
  const named = flags.release === "" ? trainer : `${trainer} ${flags.release}`;
  if (flags.step_time_s == null || flags.peak_memory_gib == null)
    return `${named}: no prediction, because the trainer does not run this schedule`;
  const fit = flags.fit === null ? "" : `, ${flags.fit}`;
  const memory = `peak memory ${flags.peak_memory_gib.toFixed(1)} GiB${fit}`;
  return `${named}: ${flags.configuration}; step ${figure(flags.step_time_s)} s, ${memory}`;
}

function fileOf(name: string, text: string): HTMLElement {
  return make("details", {}, make("summary", {}, name), make("pre", { tabindex: 0, "aria-label": name }, text));
}
