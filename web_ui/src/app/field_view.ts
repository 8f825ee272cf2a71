/** One field on the page: its text, its slider or table where it has one, and what is wrong with it. */

import { button, make } from "../dom.js";
import type { Field } from "./fields.js";
import { StageTable } from "./stage_table.js";
import { partsOf } from "./values.js";

export class FieldView {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement | HTMLSelectElement;
  private readonly slider: HTMLInputElement | null;
  private readonly table: StageTable | null;
  private readonly error: HTMLElement;

  constructor(
    readonly field: Field,
    private readonly changed: () => void,
    stages: () => number,
  ) {
    const id = `field-${field.name}`;
    this.error = make("p", { class: "error", id: `${id}-error`, role: "alert", hidden: true });
    this.input = this.makeInput(id);
    this.slider = field.slider === undefined ? null : this.makeSlider(field.slider);
    this.table = field.perStage ? this.makeTable(stages) : null;
    this.element = this.build(id);
    this.input.addEventListener("input", () => this.typed());
  }

  get text(): string {
    const { input } = this;
    if (input instanceof HTMLInputElement && input.type === "checkbox") return input.checked ? "1" : "";
    return input.value === this.field.choices?.[0] ? "" : input.value;
  }

  set text(text: string) {
    const { input, field } = this;
    if (input instanceof HTMLInputElement && input.type === "checkbox") input.checked = text === "1";
    else input.value = text === "" && field.choices !== undefined ? field.choices[0] : text;
    this.follow();
  }

  /** Show what is wrong, or that nothing is. */
  fail(message: string): void {
    this.error.textContent = message;
    this.error.hidden = message === "";
    this.input.setAttribute("aria-invalid", String(message !== ""));
  }

  /** Fit the table to another number of stages. */
  fitStages(): void {
    this.table?.show(this.text);
  }

  private typed(): void {
    this.follow();
    this.changed();
  }

  /** Bring slider and table in step with the text. */
  private follow(): void {
    this.table?.show(this.text);
    const { slider, field } = this;
    if (slider === null || field.slider === undefined) return;
    const parts = partsOf(this.text);
    const [low, high, step] = field.slider;
    const said = Number(parts[0] ?? field.fallback);
    const value = Number.isFinite(said) ? said : low;
    slider.disabled = parts.length > 1;
    const most = value <= high ? high : roomFor(value);
    slider.max = String(most);
    slider.step = String(most > high && step < 1 ? most / 200 : step);
    slider.value = String(value);
  }

  private makeInput(id: string): HTMLInputElement | HTMLSelectElement {
    const { field } = this;
    const common = { id, "aria-describedby": `${id}-error ${id}-hint` };
    if (field.choices !== undefined) {
      return make("select", common, ...field.choices.map((choice) => make("option", {}, choice)));
    }
    if (field.flag) return make("input", { ...common, type: "checkbox" });
    const look = { type: "text", placeholder: field.fallback, autocomplete: "off", spellcheck: "false" };
    return make("input", { ...common, ...look, maxlength: 400_000 });
  }

  private makeSlider([low, high, step]: readonly [number, number, number]): HTMLInputElement {
    const slider = make("input", { type: "range", min: low, max: high, step, "aria-label": this.field.label });
    slider.addEventListener("input", () => {
      this.input.value = slider.value;
      this.table?.show(slider.value);
      this.changed();
    });
    return slider;
  }

  private makeTable(stages: () => number): StageTable {
    return new StageTable(this.field.label, this.field.fallback, stages, (text) => {
      this.input.value = text;
      this.follow();
      this.changed();
    });
  }

  private build(id: string): HTMLElement {
    const { field, input, slider, table, error } = this;
    const label = make("label", { for: id }, field.label);
    const head = make("div", { class: "field-head" }, label);
    if (table !== null) head.append(this.toggle(table));
    const row = make("div", { class: slider === null ? "field-row" : "field-row with-slider" });
    if (slider !== null) row.append(slider);
    row.append(input);
    const hint = make("p", { class: "hint", id: `${id}-hint`, hidden: field.hint === undefined }, field.hint ?? "");
    const element = make("div", { class: field.flag ? "field flag" : "field", "data-field": field.name }, head, row);
    element.append(hint, error);
    if (table !== null) element.append(table.element);
    return element;
  }

  private toggle(table: StageTable): HTMLButtonElement {
    const toggle = button("per stage", `${this.field.label}: a value for each stage`, () => {
      table.element.hidden = !table.element.hidden;
      toggle.setAttribute("aria-expanded", String(!table.element.hidden));
      this.follow();
    });
    toggle.classList.add("quiet");
    toggle.setAttribute("aria-expanded", "false");
    return toggle;
  }
}

/** A round end for a slider whose value is beyond its usual range: twice the value, to one digit. */
function roomFor(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(2 * value));
  return Math.ceil((2 * value) / unit) * unit;
}
