/** Costs to begin with: profiles that were measured, and configurations whose costs are predicted. */

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
  private known: readonly Preset[] = [];

  /** `none`: round numbers were chosen again. */
  constructor(
    private readonly taken: (config: Config) => void,
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
    this.known = presets;
    const groups = Object.entries(GROUPS).map(([origin, label]) => {
      const own = presets.filter((each) => each.origin === origin);
      return make("optgroup", { label }, ...own.map((each) => make("option", { value: each.name }, titleOf(each))));
    });
    this.select.append(...groups);
  }

  private async use(name: string): Promise<void> {
    const chosen = this.known.find((each) => each.name === name);
    this.error.hidden = true;
    this.about.replaceChildren();
    if (chosen === undefined) {
      this.none();
      return;
    }
    this.about.append(`${chosen.about} In the shell: `, make("code", {}, `--config ${name}`));
    try {
      const found = await preset(name);
      if (this.select.value === name) this.taken(found);
    } catch (error) {
      this.error.textContent = error instanceof Refusal ? error.message : String(error);
      this.error.hidden = false;
    }
  }
}

/** Title of a preset, without its publisher. */
function titleOf({ name, about }: Preset): string {
  const [first] = about.split(/: |\. | as /);
  return `${first.replace(/^An? /, "").replace(/, profiled on (\w+) GPUs?$/, ", $1")} (${name})`;
}
