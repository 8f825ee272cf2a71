/** Measured and planned times of each kind of op on each stage; a click on a row highlights its ops in the timeline. */

import type { ThemeName } from "../data.js";
import { make } from "../dom.js";
import { Shading } from "../palette.js";
import type { DifferenceFacts, DifferenceRow } from "../records.js";
import { type Column, headings, type Order, refilled } from "./sortable.js";

const KEYS = ["kind", "stage", "ops", "planned", "measured", "ratio", "effect"] as const;
export type KindKey = (typeof KEYS)[number];

const HELP: Record<KindKey, string> = {
  kind: "kind of op; click a row to find its ops below",
  stage: "stage of the model",
  ops: "number of ops",
  planned: "planned time of an op, on average",
  measured: "measured time of an op, on average",
  ratio: "measured / planned, in the colours of the timelines",
  effect: "change of the step if only these ops take their measured times",
};

/** Return the rows in an order; equal ones keep their order. */
export function orderedKinds(rows: readonly DifferenceRow[], { key, descending }: Order<KindKey>): DifferenceRow[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((one, other) => {
    if (key === "kind") return sign * one.kind.localeCompare(other.kind, "en");
    return sign * ((one[key] ?? 0) - (other[key] ?? 0));
  });
}

/** Return the rows by the size of their effects, in either direction. */
export function byEffect(rows: readonly DifferenceRow[]): DifferenceRow[] {
  return [...rows].sort((one, other) => Math.abs(other.effect) - Math.abs(one.effect));
}

export class DifferenceTable {
  readonly element = make("div", {
    class: "pr-table pr-kinds",
    tabindex: 0,
    role: "region",
    "aria-label": "kinds of ops",
  });
  /** Order that the user selected; null for the largest effects first. */
  private order: Order<KindKey> | null = null;
  private theme: ThemeName = "light";
  private selected = "";

  constructor(
    private readonly facts: DifferenceFacts,
    private readonly find: (notation: string) => void,
  ) {}

  show(change: { theme?: ThemeName; selected?: string } = {}): void {
    this.theme = change.theme ?? this.theme;
    this.selected = change.selected ?? this.selected;
    const { rows, headings: names } = this.facts;
    const columns = KEYS.map((key, at): Column<KindKey> => ({ key, name: names[at], help: HELP[key], kind: key }));
    const order = this.order ?? { key: "effect", descending: true };
    const head = headings(columns, order, (next) => {
      this.order = next;
      this.show();
    });
    const sorted = this.order === null ? byEffect(rows) : orderedKinds(rows, this.order);
    const fills = this.fills(sorted);
    refilled(
      this.element,
      make(
        "table",
        {},
        make("thead", {}, make("tr", {}, ...head)),
        make("tbody", {}, ...sorted.map((row, at) => this.row(row, fills[at]))),
      ),
    );
  }

  private row(row: DifferenceRow, fill: string): HTMLElement {
    const [kind, ...others] = row.texts;
    const link = make("button", { type: "button", title: `find ${row.notation}`, "data-focus": row.notation }, kind);
    link.addEventListener("click", () => this.find(row.notation));
    const cells = others.map((text, at) => {
      if (KEYS[at + 1] !== "ratio" || row.ratio === null) return make("td", {}, text);
      const swatch = make("span", { class: "pr-swatch", "aria-hidden": "true" });
      swatch.style.background = fill;
      return make("td", {}, swatch, text);
    });
    const selected = row.notation === this.selected ? "drawn" : "";
    return make("tr", { class: selected }, make("th", { scope: "row" }, link), ...cells);
  }

  /** Return the colour of each row's ratio, which its ops have in the timeline. */
  private fills(rows: readonly DifferenceRow[]): string[] {
    const shading = new Shading({
      title: "",
      ends: ["", ""],
      reach: this.facts.reach,
      values: [rows.map(({ ratio }) => ratio ?? 0)],
    });
    const { fill } = shading.palette(this.theme);
    return [...shading.codes(0, rows.length)].map((code) => fill[code]);
  }
}
