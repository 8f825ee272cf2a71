/** The form: all fields in their groups. */

import { make } from "../dom.js";
import type { Fault } from "./api.js";
import { FieldView } from "./field_view.js";
import type { FormFields, Group } from "./fields.js";
import { impliedNumber, partsOf, type Typed } from "./values.js";
import { inWords, pointed } from "./words.js";

export class Form {
  readonly element = make("form", { class: "form", autocomplete: "off" });
  private readonly views: readonly FieldView[];

  constructor(
    private readonly settings: FormFields,
    changed: () => void,
  ) {
    this.views = settings.fields.map(
      (field) =>
        new FieldView(field, {
          changed: () => this.inform(changed),
          stages: () => this.stages(),
          implied: () => impliedNumber(field, this.typed, settings.fields),
          valueOf: (name) => this.views.find((view) => view.field.name === name)?.value ?? "",
        }),
    );
    this.follow();
    this.element.append(...settings.groups.map((group) => this.section(group)));
    this.element.addEventListener("submit", (event) => event.preventDefault());
  }

  get typed(): Typed {
    const entries = this.views.map((view) => [view.field.name, view.applies ? view.text : ""] as const);
    return Object.fromEntries(entries.filter(([, text]) => text.trim() !== ""));
  }

  set typed(typed: Typed) {
    for (const view of this.views) view.text = typed[view.field.name] ?? "";
    this.follow();
    for (const group of this.element.querySelectorAll("details")) {
      group.open ||= this.views.some((view) => group.contains(view.element) && view.text !== "");
    }
  }

  /** Show each fault at its field and return the faults without a field. */
  fail(faults: readonly Fault[]): readonly Fault[] {
    const remaining = new Set(faults);
    for (const view of this.views) {
      const own = faults.filter((fault) => fault.field === view.field.name);
      const messages = [...new Set(own.map((fault) => inWords(fault, this.settings.fields)))];
      view.fail([...messages, ...(own.length > 0 ? pointed(view.text) : [])].join("; "));
      for (const fault of own) remaining.delete(fault);
      const group = view.element.closest("details");
      if (own.length > 0 && group !== null) group.open = true;
    }
    return [...remaining];
  }

  /** Insert an element between the groups that are always open and the others. */
  insert(element: HTMLElement): void {
    this.element.querySelector("details.group")?.before(element);
  }

  /** Focus a field, after opening its group. */
  focus(name: string): void {
    const view = this.views.find(({ field }) => field.name === name);
    const group = view?.element.closest("details");
    if (group != null) group.open = true;
    view?.focus();
  }

  /** Title of a field on the page. */
  labelOf(name: string): string {
    return this.settings.fields.find((field) => field.name === name)?.title ?? name;
  }

  private inform(changed: () => void): void {
    this.follow();
    changed();
  }

  private follow(): void {
    for (const view of this.views) view.follow();
  }

  /** Number of stages: ranks times the requested chunks, one by default. */
  private stages(): number {
    const number = (name: string, otherwise: number) => {
      const text = this.views.find((view) => view.field.name === name)?.text ?? "";
      const value = Number(partsOf(text)[0] ?? otherwise);
      return Number.isInteger(value) && value > 0 ? value : otherwise;
    };
    return number("ranks", 4) * number("chunks", 1);
  }

  private section(group: Group): HTMLElement {
    const views = this.views.filter((view) => view.field.group === group.name).map((view) => view.element);
    if (group.open) return make("fieldset", {}, make("legend", {}, group.title), ...views);
    return make("details", { class: "group" }, make("summary", {}, group.title), ...views);
  }
}
