/** Form of the panels that search: a row of fields, a button that starts and stops, a progress bar, and errors. */

import { button, make } from "../dom.js";
import type { SearchField } from "../records.js";
import { type Fault, Refusal } from "./api.js";
import type { Host } from "./panel.js";
import type { SearchProgress } from "./search_api.js";

/** Choices of options, in words; a choice that is missing here is its own word. */
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

/** A field with its label; `name` is what the server calls it when it is wrong. */
export interface AskedField {
  readonly name: string;
  readonly label: string;
  readonly input: Input;
}

/** A field for an option, as the server declares it. */
export function optionField(name: string, option: SearchField): AskedField {
  if (option.choices.length === 0) return numberField(name, option);
  return choiceField(
    name,
    option.title,
    option.choices.map((choice) => [choice, WORDS[choice] ?? choice] as const),
  );
}

export function choiceField(name: string, label: string, choices: readonly Choice[]): AskedField {
  const options = choices.map(([value, text]) => make("option", { value }, text));
  return { name, label, input: make("select", {}, ...options) };
}

function numberField(name: string, { title, default: value, least, most }: SearchField): AskedField {
  const range = { type: "number", min: Math.max(least, 1), max: most, step: 1, value };
  return { name, label: title, input: make("input", { ...range, class: "short" }) };
}

/** A second field for the memory limit of the form. */
export function limitField(host: Host): AskedField {
  const input = make("input", { type: "text", placeholder: "none", autocomplete: "off", class: "short" });
  input.addEventListener("change", () => host.type("memory_limit", input.value));
  return { name: "memory_limit", label: "Memory limit", input };
}

export class Asking {
  readonly element = make("div", {});
  readonly said = make("p", { class: "outcome", role: "status" });
  private readonly error = make("p", { class: "error", role: "alert", hidden: true });
  private readonly bar = make("progress", { max: 1, "aria-label": "share of the budget that is spent" });
  private readonly far = make("span");
  private readonly progress: HTMLElement;
  private readonly submit: HTMLButtonElement;
  private running: AbortController | null = null;
  private spent = -1;

  /** `ask` does the work until the signal ends it. */
  constructor(
    private readonly id: string,
    private readonly host: Host,
    private readonly fields: readonly AskedField[],
    word: string,
    private readonly ask: (signal: AbortSignal) => Promise<void>,
  ) {
    this.submit = make("button", { type: "submit", class: "primary" }, word);
    const form = make("form", { class: "asked", autocomplete: "off" }, ...fields.map((field) => this.row(field)));
    form.append(this.submit);
    form.noValidate = true;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.run();
    });
    const stop = button("Stop", "stop, and keep the best schedule so far (Escape)", () => this.running?.abort());
    this.progress = make("div", { class: "progress", hidden: true }, this.bar, this.far, stop);
    this.element.append(form, this.error, this.progress, this.said);
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this.running?.abort());
  }

  /** Show the progress, in words next to the bar. */
  tell(progress: SearchProgress, budget: number, words: string): void {
    this.bar.value = progress.share;
    // The budget does not run while kernels are compiled, once per machine.
    const waits = progress.seconds === this.spent && progress.share < 1;
    this.spent = progress.seconds;
    const time = `${Math.round(progress.share * budget)} of ${budget} s`;
    this.far.textContent = `${words} \u00b7 ${time}${waits ? " \u00b7 compiling (first run only)" : ""}`;
  }

  private async run(): Promise<void> {
    if (this.running !== null) return;
    const mine = new AbortController();
    this.running = mine;
    this.fail([]);
    this.said.textContent = "";
    this.far.textContent = "starting";
    this.bar.removeAttribute("value");
    this.progress.hidden = false;
    this.submit.disabled = true;
    try {
      await this.ask(mine.signal);
    } catch (error) {
      if (!mine.signal.aborted)
        this.fail(error instanceof Refusal ? error.faults : [{ field: "", message: `${error}` }]);
    } finally {
      this.running = null;
      this.progress.hidden = true;
      this.submit.disabled = false;
    }
  }

  private row({ name, label, input }: AskedField): HTMLElement {
    input.id = `${this.id}-${name}`;
    input.setAttribute("aria-describedby", `${input.id}-error`);
    const error = make("span", { class: "error", id: `${input.id}-error`, role: "alert", hidden: true });
    return make("div", { class: "asked-field" }, make("label", { for: input.id }, label), input, error);
  }

  /** Say what is wrong at its field, and the rest below them; the first field at fault has the focus. */
  private fail(faults: readonly Fault[]): void {
    const left = new Set(faults);
    let first: Input | null = null;
    for (const { name, input } of this.fields) {
      const own = faults.filter((fault) => fault.field === name);
      for (const fault of own) left.delete(fault);
      const error = this.element.querySelector<HTMLElement>(`#${input.id}-error`);
      if (error !== null) {
        error.textContent = own.map((fault) => fault.message).join("; ");
        error.hidden = own.length === 0;
      }
      input.setAttribute("aria-invalid", String(own.length > 0));
      if (own.length > 0) first ??= input;
    }
    first?.focus();
    this.error.textContent = [...left]
      .map(({ field, message }) => (field === "" ? message : `${this.host.labelOf(field)}: ${message}`))
      .join("; ");
    this.error.hidden = left.size === 0;
  }
}
