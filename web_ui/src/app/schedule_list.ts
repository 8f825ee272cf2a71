/** List of schedules to compare: built-in schedules and the user's files. */

import { button, make } from "../dom.js";
import { NEEDS, type Need, needsText } from "../needs.js";
import { NEED_WORDS } from "../records.js";
import type { OwnFile, Schedule } from "./api.js";

export class ScheduleList {
  readonly element = make("fieldset", { class: "schedules" });
  private readonly boxes = new Map<string, HTMLInputElement>();
  private readonly needs = new Map<Need, HTMLInputElement>();
  private readonly own = make("div", { class: "own" });
  private readonly error = make("p", { class: "error", role: "alert", hidden: true });
  private ownFiles: readonly OwnFile[] = [];

  constructor(private readonly changed: () => void) {
    const all = button("all", "compare all schedules", () => this.choose(null));
    const none = button("none", "compare none of these schedules", () => this.choose([]));
    for (const button of [all, none]) button.classList.add("quiet");
    const head = make("legend", {}, "Schedules ", make("span", { class: "choices" }, all, none));
    const needs = make("div", { class: "boxes needs" }, "The best may need ", ...NEEDS.map((need) => this.need(need)));
    this.element.append(head, this.error, this.own, make("div", { class: "boxes all" }), needs);
  }

  /** Fill the list with the built-in schedules. */
  fill(schedules: readonly Schedule[]): void {
    const rows = schedules.map((schedule) => this.row(schedule));
    this.element.querySelector(".boxes.all")?.replaceChildren(...rows);
  }

  /** Names of all built-in schedules. */
  get known(): readonly string[] {
    return [...this.boxes.keys()];
  }

  get names(): string[] {
    return [...this.boxes].filter(([, box]) => box.checked).map(([name]) => name);
  }

  set names(names: readonly string[] | null) {
    const selected = new Set(names);
    for (const [name, box] of this.boxes) box.checked = names === null || selected.has(name);
  }

  /** Selected names, for an address; null for all, so that a link also has the schedules of later versions. */
  get selected(): readonly string[] | null {
    const { names } = this;
    return names.length === this.boxes.size ? null : names;
  }

  /** Whether all schedules are selected, and no file. */
  get isWhole(): boolean {
    return this.selected === null && this.ownFiles.length === 0;
  }

  /** Needs that the best schedule may have. */
  get allow(): readonly Need[] {
    return NEEDS.filter((need) => this.needs.get(need)?.checked === true);
  }

  set allow(needs: readonly string[]) {
    for (const [need, box] of this.needs) box.checked = needs.includes(need);
  }

  get files(): readonly OwnFile[] {
    return this.ownFiles;
  }

  /** Add a file, replacing one of the same name. */
  add(file: OwnFile): void {
    this.setFiles([...this.ownFiles.filter((other) => other.name !== file.name), file]);
  }

  fail(message: string): void {
    this.error.textContent = message;
    this.error.hidden = message === "";
  }

  focus(): void {
    this.boxes.values().next().value?.focus();
  }

  private choose(names: readonly string[] | null): void {
    this.names = names;
    this.changed();
  }

  private setFiles(files: readonly OwnFile[]): void {
    this.ownFiles = files;
    this.own.replaceChildren(
      ...files.map((file) => {
        const remove = button("\u00d7", `remove ${file.name}`, () =>
          this.setFiles(this.ownFiles.filter((other) => other !== file)),
        );
        return make("div", { class: "own-file" }, make("span", {}, file.name), remove);
      }),
    );
    this.changed();
  }

  private need(need: Need): HTMLElement {
    const box = make("input", { type: "checkbox", value: need });
    box.addEventListener("change", this.changed);
    this.needs.set(need, box);
    return make("label", {}, box, make("span", { class: "name" }, NEED_WORDS[need]));
  }

  private row(schedule: Schedule): HTMLElement {
    const box = make("input", { type: "checkbox", value: schedule.name });
    box.addEventListener("change", this.changed);
    this.boxes.set(schedule.name, box);
    const needs = schedule.needs.length > 0 ? ` Needs ${needsText(schedule.needs)}.` : "";
    const about = `${schedule.title}.${needs} Accepts: ${schedule.accepts}. Bubble: ${schedule.bubble}. ${schedule.paper}`;
    const chunks =
      schedule.chunks === null
        ? `${schedule.default_chunks}+ chunks`
        : `${schedule.chunks} chunk${schedule.chunks > 1 ? "s" : ""}`;
    const text = make("span", { class: "name" }, schedule.name);
    return make(
      "label",
      { title: about },
      box,
      text,
      make("span", { class: "faint" }, `${schedule.placement}, ${chunks}`),
    );
  }
}
