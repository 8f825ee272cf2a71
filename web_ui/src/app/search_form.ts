/** Form of the panels that search: a row of fields, a button that starts and stops, a progress bar, and errors. */

import { button, make } from "../dom.js";
import type { SearchField } from "../records.js";
import { type Fault, Refusal } from "./api.js";
import type { Host } from "./panel.js";
import type { SearchProgress } from "./search_api.js";

/** Texts of the choices of options; a choice without an entry is its own text. */
const WORDS: Readonly<Record<string, string>> = {
  auto: "auto: every placement that can win",
  linear: "linear (1 chunk per rank)",
  loop: "loop (interleaved)",
  v: "V (2 chunks per rank)",
  wave: "wave (4 chunks per rank)",
  bidirectional: "bidirectional (2 copies of the model)",
  "bidirectional-v": "bidirectional V (2 copies, 2 chunks)",
  span: "longest span of a rank",
};

export type Choice = readonly [value: string, text: string];

type Input = HTMLInputElement | HTMLSelectElement;

/** A field with its label; `name` is its name in the server's error messages. */
export interface FormField {
  readonly name: string;
  readonly label: string;
  readonly input: Input;
}

/** Create a field for an option from the server's declaration. */
export function optionField(name: string, option: SearchField): FormField {
  if (option.choices.length === 0) return numberField(name, option);
  return choiceField(
    name,
    option.title,
    option.choices.map((choice) => [choice, WORDS[choice] ?? choice] as const),
  );
}

export function choiceField(name: string, label: string, choices: readonly Choice[]): FormField {
  const options = choices.map(([value, text]) => make("option", { value }, text));
  return { name, label, input: make("select", {}, ...options) };
}

function numberField(name: string, { title, default: value, least, most }: SearchField): FormField {
  const range = { type: "number", min: Math.max(least, 1), max: most, step: 1, value };
  return { name, label: title, input: make("input", { ...range, class: "short" }) };
}

/** Create a second field for the form's memory limit. */
export function limitField(host: Host): FormField {
  const input = make("input", { type: "text", placeholder: "none", autocomplete: "off", class: "short" });
  input.addEventListener("change", () => host.type("memory_limit", input.value));
  return { name: "memory_limit", label: "Memory limit", input };
}

export class SearchForm {
  readonly element = make("div", {});
  readonly status = make("p", { class: "outcome", role: "status" });
  private readonly error = make("p", { class: "error", role: "alert", hidden: true });
  private readonly bar = make("progress", { max: 1, "aria-label": "share of the budget that is spent" });
  private readonly progressText = make("span");
  private readonly progress: HTMLElement;
  private readonly submit: HTMLButtonElement;
  private running: AbortController | null = null;

  /** `search` runs until it ends or the signal aborts it. */
  constructor(
    private readonly id: string,
    private readonly host: Host,
    private readonly fields: readonly FormField[],
    word: string,
    private readonly search: (signal: AbortSignal) => Promise<void>,
  ) {
    this.submit = make("button", { type: "submit", class: "primary" }, word);
    const form = make("form", { class: "search-form", autocomplete: "off" }, ...fields.map((field) => this.row(field)));
    form.append(this.submit);
    form.noValidate = true;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.run();
    });
    const stop = button("Stop", "stop, and keep the best schedule so far (Escape)", () => this.running?.abort());
    this.progress = make("div", { class: "progress", hidden: true }, this.bar, this.progressText, stop);
    this.element.append(form, this.error, this.progress, this.status);
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this.running?.abort());
  }

  /** Show the progress as a bar with a text next to it. */
  showProgress(progress: SearchProgress, budget: number, words: string): void {
    this.bar.value = progress.share;
    const time = `${Math.round(progress.share * budget)} of ${budget} s`;
    this.progressText.textContent = `${words} \u00b7 ${time}`;
  }

  private async run(): Promise<void> {
    if (this.running !== null) return;
    const controller = new AbortController();
    this.running = controller;
    this.fail([]);
    this.status.textContent = "";
    this.progressText.textContent = "starting";
    this.bar.removeAttribute("value");
    this.progress.hidden = false;
    this.submit.disabled = true;
    try {
      await this.search(controller.signal);
    } catch (error) {
      if (!controller.signal.aborted)
        this.fail(error instanceof Refusal ? error.faults : [{ field: "", message: `${error}` }]);
    } finally {
      this.running = null;
      this.progress.hidden = true;
      this.submit.disabled = false;
    }
  }

  private row({ name, label, input }: FormField): HTMLElement {
    input.id = `${this.id}-${name}`;
    input.setAttribute("aria-describedby", `${input.id}-error`);
    const error = make("span", { class: "error", id: `${input.id}-error`, role: "alert", hidden: true });
    return make("div", { class: "search-field" }, make("label", { for: input.id }, label), input, error);
  }

  /** Show each fault at its field and the others below the form; focus the first invalid field. */
  private fail(faults: readonly Fault[]): void {
    const remaining = new Set(faults);
    let first: Input | null = null;
    for (const { name, input } of this.fields) {
      const own = faults.filter((fault) => fault.field === name);
      for (const fault of own) remaining.delete(fault);
      const error = this.element.querySelector<HTMLElement>(`#${input.id}-error`);
      if (error !== null) {
        error.textContent = own.map((fault) => fault.message).join("; ");
        error.hidden = own.length === 0;
      }
      input.setAttribute("aria-invalid", String(own.length > 0));
      if (own.length > 0) first ??= input;
    }
    first?.focus();
    this.error.textContent = [...remaining]
      .map(({ field, message }) => (field === "" ? message : `${this.host.labelOf(field)}: ${message}`))
      .join("; ");
    this.error.hidden = remaining.size === 0;
  }
}
