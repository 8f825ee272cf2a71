/** The choices above the comparison; all are visible except the costs, which are in a list. */

import { make } from "../dom.js";
import { type Choice, type Choices, withRanks } from "./choices.js";

export class Controls {
  readonly element = make("form", { class: "pd-controls", "aria-label": "shape and costs" });
  private readonly origin = make("p", { class: "pd-origin" });
  private readonly costs: HTMLSelectElement;
  private readonly rows = make("div", { class: "pd-rows" });

  constructor(
    private readonly choices: Choices,
    private choice: Choice,
    private readonly onChange: (choice: Choice) => void,
  ) {
    const options = choices.presets.map(({ key, title }) => make("option", { value: key }, title));
    this.costs = make("select", { id: "pd-costs" }, ...options);
    this.costs.addEventListener("change", () => this.choose({ ...this.choice, costs: this.costs.value }));
    this.element.addEventListener("submit", (event) => event.preventDefault());
    this.element.append(this.rows, this.origin);
    this.show(choice);
  }

  show(choice: Choice): void {
    this.choice = choice;
    const { shapes, presets, transfers } = this.choices;
    const ranks = [...new Set(shapes.map(([p]) => p))];
    const microbatches = shapes.filter(([p]) => p === choice.ranks).map(([, m]) => m);
    const focused = document.activeElement?.id ?? "";
    this.costs.value = choice.costs;
    this.rows.replaceChildren(
      make("p", { class: "pd-group" }, make("label", { for: "pd-costs" }, "Costs of a rank"), this.costs),
      group("Ranks", "ranks", ranks.map(String), String(choice.ranks), (value) =>
        this.choose(withRanks(this.choice, Number(value), this.choices)),
      ),
      group("Microbatches", "microbatches", microbatches.map(String), String(choice.microbatches), (value) =>
        this.choose({ ...this.choice, microbatches: Number(value) }),
      ),
      group(
        "Transfers between ranks",
        "transfer",
        transfers.map(({ key }) => key),
        choice.transfer,
        (transfer) => this.choose({ ...this.choice, transfer }),
        new Map(transfers.map(({ key, title }) => [key, title])),
      ),
    );
    this.origin.textContent = presets.find(({ key }) => key === choice.costs)?.origin ?? "";
    if (focused !== "") document.getElementById(focused)?.focus();
  }

  private choose(choice: Choice): void {
    this.show(choice);
    this.onChange(choice);
  }
}

/** Create radio buttons side by side. */
function group(
  title: string,
  name: string,
  values: readonly string[],
  selected: string,
  choose: (value: string) => void,
  titles: ReadonlyMap<string, string> = new Map(),
): HTMLElement {
  const options = values.map((value) => {
    const id = `pd-${name}-${value}`;
    const radio = make("input", { type: "radio", name: `pd-${name}`, value, id });
    radio.checked = value === selected;
    radio.addEventListener("change", () => choose(value));
    return make("span", {}, radio, make("label", { for: id }, titles.get(value) ?? value));
  });
  return make(
    "fieldset",
    { class: "pd-group" },
    make("legend", {}, title),
    make("span", { class: "pd-options" }, ...options),
  );
}
