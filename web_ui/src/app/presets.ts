/** Selection of bundled costs: measured profiles, and configurations with predicted costs. */

import { make } from "../dom.js";
import { type Config, type Preset, preset, Refusal } from "./api.js";

const GROUPS: Readonly<Record<Preset["origin"], string>> = {
  measured: "Measured",
  planned: "Predicted from model and data sheets",
};

export class Presets {
  readonly element: HTMLElement;
  private readonly select = make("select", { id: "field-preset", "aria-describedby": "preset-about preset-error" });
  private readonly about = make("p", { class: "hint", id: "preset-about" });
  private readonly error = make("p", { class: "error", id: "preset-error", role: "alert", hidden: true });
  private presets: readonly Preset[] = [];

  /** `none` is called when the user selects unit costs again. */
  constructor(
    private readonly apply: (config: Config) => void,
    private readonly none: () => void,
  ) {
    const label = make("label", { for: "field-preset" }, "Costs");
    this.select.append(make("option", { value: "" }, "unit costs, or your own"));
    this.element = make(
      "div",
      { class: "field preset", "data-field": "preset" },
      label,
      this.select,
      this.about,
      this.error,
    );
    this.select.addEventListener("change", () => void this.use(this.select.value));
  }

  fill(presets: readonly Preset[]): void {
    this.presets = presets;
    const groups = Object.entries(GROUPS).map(([origin, label]) => {
      const own = presets.filter((preset) => preset.origin === origin);
      return make(
        "optgroup",
        { label },
        ...own.map((preset) => make("option", { value: preset.name }, titleOf(preset))),
      );
    });
    this.select.append(...groups);
  }

  /** Name of the preset with which the form began; empty if there is none. */
  get chosen(): string {
    return this.select.value;
  }

  get names(): readonly string[] {
    return this.presets.map(({ name }) => name);
  }

  /** Show a preset as chosen, without using it. */
  choose(name: string): void {
    const selected = this.presets.find((preset) => preset.name === name);
    this.select.value = selected?.name ?? "";
    this.error.hidden = true;
    this.about.replaceChildren();
    if (selected !== undefined)
      this.about.append(`${selected.about} In the shell: `, make("code", {}, `--config ${name}`));
  }

  private async use(name: string): Promise<void> {
    this.choose(name);
    if (name === "") {
      this.none();
      return;
    }
    try {
      const config = await preset(name);
      if (this.select.value === name) this.apply(config);
    } catch (error) {
      this.error.textContent = error instanceof Refusal ? error.message : String(error);
      this.error.hidden = false;
    }
  }
}

/** Return the name of a preset and its first words, without its publisher. */
function titleOf({ name, about }: Preset): string {
  const [first] = about.split(/: |\. | as /);
  return `${name}: ${first.replace(/^An? /, "").replace(/, profiled on (\w+) GPUs?$/, ", $1")}`;
}
