/** Stacked bars: the step's time by its use, and each rank's memory by its content. */

import { make } from "../dom.js";
import type { Candidate, Share } from "./api.js";

export interface Stack {
  readonly label: string;
  readonly parts: Readonly<Record<string, number>>;
}

/** Maximum number of visible ranks: the first and the last half of it. */
const MOST = 32;

export class Bars {
  readonly element = make("section", { class: "bars" });

  constructor(
    private readonly title: string,
    private readonly unit: string,
    private readonly shares: readonly Share[],
    private readonly text: (value: number) => string,
  ) {}

  /** Show the stacks; `limit` is a line across all bars. */
  show(stacks: readonly Stack[], limit: number | null = null): void {
    const used = this.shares.filter(({ key }) => stacks.some(({ parts }) => (parts[key] ?? 0) > 0));
    const longest = Math.max(...stacks.map(totalOf), limit ?? 0, 1e-12);
    const rows = shortened(stacks).map((stack) => (stack === null ? gap() : this.row(stack, used, longest, limit)));
    const legend = used.map((share) => make("li", {}, swatch(share), share.title));
    if (limit !== null)
      legend.push(make("li", {}, make("span", { class: "limit-key" }), `limit, ${this.text(limit)} ${this.unit}`));
    this.element.replaceChildren(
      make("h3", {}, this.title),
      make("ul", { class: "legend" }, ...legend),
      make("table", {}, make("tbody", {}, ...rows)),
    );
  }

  private row(stack: Stack, used: readonly Share[], longest: number, limit: number | null): HTMLElement {
    const total = totalOf(stack);
    const parts = used.map((share) => {
      const value = stack.parts[share.key] ?? 0;
      const part = make("span", { class: "part", title: `${share.title}: ${this.text(value)} ${this.unit}` });
      part.style.width = `${(100 * value) / longest}%`;
      part.style.background = colourOf(share);
      return part;
    });
    const bar = make("div", { class: "stacked", "aria-hidden": "true" }, ...parts);
    if (limit !== null) {
      const line = make("span", { class: "limit", title: `limit: ${this.text(limit)} ${this.unit}` });
      line.style.left = `${(100 * limit) / longest}%`;
      bar.append(line);
    }
    const over = limit !== null && total > limit;
    const totalCell = make(
      "td",
      { class: over ? "over-limit" : "" },
      `${this.text(total)} ${this.unit}${over ? ", over" : ""}`,
    );
    return make("tr", {}, make("th", { scope: "row" }, stack.label), make("td", { class: "wide" }, bar), totalCell);
  }
}

/** Return the step's time by the keys of the shares. */
export function timeOf(candidate: Candidate): Record<string, number> {
  return Object.fromEntries(Object.entries(candidate.breakdown).map(([key, value]) => [key.replace(/_s$/, ""), value]));
}

function totalOf({ parts }: Stack): number {
  return Object.values(parts).reduce((total, value) => total + value, 0);
}

/** Return the visible stacks; null stands for the omitted ones. */
export function shortened(stacks: readonly Stack[]): readonly (Stack | null)[] {
  return stacks.length <= MOST ? stacks : [...stacks.slice(0, MOST / 2), null, ...stacks.slice(-MOST / 2)];
}

function gap(): HTMLElement {
  return make("tr", {}, make("th", { scope: "row", "aria-label": "ranks left out" }, "\u22ee"));
}

function colourOf({ light, dark }: Share): string {
  return `light-dark(${light}, ${dark})`;
}

function swatch(share: Share): HTMLElement {
  const element = make("span", { class: "swatch" });
  element.style.background = colourOf(share);
  return element;
}
