/** One field of the form: its text, an optional slider or table, and its error message. */

import { button, make } from "../dom.js";
import type { Field } from "./fields.js";
import { StageTable } from "./stage_table.js";
import { partsOf } from "./values.js";

/** Interface between a field and its form. */
export interface Surroundings {
  /** Called after the user changes the field. */
  changed(): void;
  /** Number of stages. */
  stages(): number;
  /** Number that an empty field stands for; NaN if the default is described in words. */
  implied(): number;
  /** Value of another field, or its default if that field is empty. */
  valueOf(name: string): string;
}

export class FieldView {
  readonly element: HTMLElement;
  private readonly input: HTMLInputElement | HTMLSelectElement;
  private readonly slider: HTMLInputElement | null;
  private readonly table: StageTable | null;
  private readonly error: HTMLElement;

  constructor(
    readonly field: Field,
    private readonly form: Surroundings,
  ) {
    const id = `field-${field.name}`;
    this.error = make("p", { class: "error", id: `${id}-error`, role: "alert", hidden: true });
    this.input = this.makeInput(id);
    this.slider = field.slider === null ? null : this.makeSlider(field.slider);
    this.table = field.kind === "per_stage" || field.kind === "pair_times" ? this.makeTable() : null;
    this.element = this.build(id);
    this.input.addEventListener("input", () => this.typed());
  }

  get text(): string {
    const { input } = this;
    if (input instanceof HTMLInputElement && input.type === "checkbox") return input.checked ? "1" : "";
    return input.value === this.usual ? "" : input.value;
  }

  set text(text: string) {
    const { input } = this;
    if (input instanceof HTMLInputElement && input.type === "checkbox") input.checked = text === "1";
    else {
      this.admit(text);
      input.value = text === "" ? this.usual : text;
    }
    this.follow();
  }

  /** The chosen value, the default included. */
  get value(): string {
    return this.text || this.usual;
  }

  /** Whether the field has an effect, which may depend on the value of another field. */
  get applies(): boolean {
    const { only_with: needed } = this.field;
    return needed == null || this.form.valueOf(needed[0]) === needed[1];
  }

  /** Content of an unchanged field: the default if it is one of the choices, else an empty text. */
  private get usual(): string {
    const { kind, choices, default: usual } = this.field;
    return kind === "choice" && choices.includes(usual) ? usual : "";
  }

  /** Add an unlisted choice, such as one of a broken link, so that the server reports the error. */
  private admit(text: string): void {
    const { field, input } = this;
    if (field.kind !== "choice" || text === "" || field.choices.includes(text)) return;
    input.append(make("option", {}, text));
  }

  /** Show an error message; an empty one clears the error. */
  fail(message: string): void {
    this.error.textContent = message;
    this.error.hidden = message === "";
    this.input.setAttribute("aria-invalid", String(message !== ""));
  }

  focus(): void {
    this.input.focus();
  }

  private typed(): void {
    this.follow();
    this.form.changed();
  }

  /** Update slider and table from the text, or from the implied number if the field is empty. */
  follow(): void {
    this.element.hidden = !this.applies;
    this.table?.show(this.text);
    const { slider, field } = this;
    if (slider === null || field.slider === null) return;
    const parts = partsOf(this.text);
    const [low, high, step] = field.slider;
    const implied = this.form.implied();
    this.input.setAttribute("placeholder", Number.isFinite(implied) ? String(implied) : field.default);
    const number = parts.length > 0 ? Number(parts[0]) : implied;
    const value = Number.isFinite(number) ? number : low;
    slider.disabled = parts.length > 1;
    const most = value <= high ? high : roomFor(value);
    slider.max = String(most);
    slider.step = String(most > high && step < 1 ? most / 200 : step);
    slider.value = String(value);
  }

  private makeInput(id: string): HTMLInputElement | HTMLSelectElement {
    const { field } = this;
    const common = { id, "aria-describedby": `${id}-error ${id}-hint` };
    if (field.kind === "choice") {
      const options = field.choices.map((choice) => make("option", {}, choice));
      // A default that depends on other settings is none of the choices.
      if (!field.choices.includes(field.default)) options.unshift(make("option", { value: "" }, "automatic"));
      return make("select", common, ...options);
    }
    if (field.kind === "flag") return make("input", { ...common, type: "checkbox" });
    const look = { type: "text", placeholder: field.default, autocomplete: "off", spellcheck: "false" };
    return make("input", { ...common, ...look, maxlength: 400_000 });
  }

  private makeSlider([low, high, step]: readonly [number, number, number]): HTMLInputElement {
    const slider = make("input", { type: "range", min: low, max: high, step, "aria-label": this.field.title });
    slider.addEventListener("input", () => {
      this.input.value = slider.value;
      this.table?.show(slider.value);
      this.form.changed();
    });
    return slider;
  }

  private makeTable(): StageTable {
    return new StageTable(this.field.title, this.field.default, this.form.stages, (text) => {
      this.input.value = text;
      this.follow();
      this.form.changed();
    });
  }

  private build(id: string): HTMLElement {
    const { field, input, slider, table, error } = this;
    const label = make("label", { for: id }, field.title);
    const head = make("div", { class: "field-head" }, label);
    if (table !== null) head.append(this.toggle(table));
    const row = make("div", { class: slider === null ? "field-row" : "field-row with-slider" });
    if (slider !== null) row.append(slider);
    row.append(input);
    if (field.suggestions !== undefined && field.suggestions.length > 0)
      row.append(this.suggest(id, field.suggestions));
    const hint = make("p", { class: "hint", id: `${id}-hint`, hidden: field.hint === "" }, field.hint);
    const element = make(
      "div",
      { class: field.kind === "flag" ? "field flag" : "field", "data-field": field.name },
      head,
      row,
    );
    element.append(hint, error);
    if (table !== null) element.append(table.element);
    return element;
  }

  private suggest(id: string, suggestions: readonly string[]): HTMLElement {
    this.input.setAttribute("list", `${id}-list`);
    return make("datalist", { id: `${id}-list` }, ...suggestions.map((value) => make("option", { value })));
  }

  private toggle(table: StageTable): HTMLButtonElement {
    const toggle = button("per stage", `${this.field.title}: a value for each stage`, () => {
      table.element.hidden = !table.element.hidden;
      toggle.setAttribute("aria-expanded", String(!table.element.hidden));
      this.follow();
    });
    toggle.classList.add("quiet");
    toggle.setAttribute("aria-expanded", "false");
    return toggle;
  }
}

/** Return the upper end of a slider whose value exceeds its usual range: twice the value, rounded up to one digit. */
function roomFor(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(2 * value));
  return Math.ceil((2 * value) / unit) * unit;
}
