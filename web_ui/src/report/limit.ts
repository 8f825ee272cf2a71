/** Control of the memory limit: makespan against memory, a slider along the memory axis, and a field. */

import { make } from "../dom.js";
import type { ComparisonFacts } from "../records.js";
import { roundStep, type Scale, scaleOf } from "../scale.js";
import { type MemoryForm, memoryForm } from "./memory_form.js";
import { ranked, SHORTEST_FIRST } from "./ranking.js";
import { Tradeoff } from "./tradeoff.js";

const LEFT = 64;
const RIGHT = 14;
/** Half of the width of the slider's thumb in pixels. */
const THUMB = 9;
const NARROW = 240;
/** Room for a name left of the leanest schedule, as a share of the range between the lowest and the highest peak. */
const ROOM = 0.24;

export interface LimitHandlers {
  /** Called with a new limit in the unit of the comparison; null for no limit. */
  limited(limit: number | null): void;
  pointed(name: string): void;
}

export class LimitControl {
  readonly element = make("section", { class: "pr-limit", "aria-label": "memory limit" });
  private readonly picture: Tradeoff;
  private readonly slider = make("input", { type: "range", "aria-label": "memory limit", class: "pr-slider" });
  private readonly field = make("input", { type: "number", min: 0, step: "any", id: "pr-limit", placeholder: "none" });
  private readonly unit = make("span");
  private readonly clear = make("button", { type: "button" }, "No limit");
  private readonly observer: ResizeObserver;
  private current: { comparison: ComparisonFacts; limit: number | null; drawn: readonly string[] } | null = null;

  constructor(private readonly handlers: LimitHandlers) {
    this.picture = new Tradeoff((name) => handlers.pointed(name));
    this.clear.addEventListener("click", () => this.handlers.limited(null));
    this.slider.addEventListener("input", () => this.slid());
    this.field.addEventListener("change", () => this.typed());
    const label = make("label", { for: "pr-limit" }, "Memory limit per rank");
    const line = make("div", { class: "pr-field" }, label, this.field, this.unit, this.clear);
    const caption = make("p", { class: "pr-caption", "aria-hidden": "true" });
    this.element.append(line, this.picture.element, this.slider, caption);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
  }

  show(comparison: ComparisonFacts, limit: number | null, drawn: readonly string[]): void {
    this.current = { comparison, limit, drawn };
    const form = memoryForm(comparison);
    const { low, high, step } = rangeOf(comparison);
    for (const [name, value] of Object.entries({ min: low, max: high, step }))
      this.slider.setAttribute(name, String(value));
    this.slider.value = String(limit === null ? high : limit / form.divisor);
    const fitting = ranked(comparison, limit, SHORTEST_FIRST).filter(({ over }) => !over).length;
    const limitText = limit === null ? "no limit" : form.text(limit);
    this.slider.setAttribute("aria-valuetext", `${limitText}: ${fitting} of ${comparison.rows.length} schedules fit`);
    if (document.activeElement !== this.field) this.field.value = limit === null ? "" : form.number(limit);
    this.unit.textContent = form.unit;
    this.clear.disabled = limit === null;
    this.draw();
  }

  private draw(): void {
    if (this.current === null) return;
    const { comparison, limit, drawn } = this.current;
    const width = Math.max(this.element.clientWidth, NARROW);
    const form = memoryForm(comparison);
    const { low, high } = rangeOf(comparison);
    const across: Scale = scaleOf(low * form.divisor, high * form.divisor, LEFT, width - RIGHT);
    this.picture.show(comparison, across, { limit, drawn }, width);
    this.slider.style.marginLeft = `${LEFT - THUMB}px`;
    this.slider.style.width = `${width - LEFT - RIGHT + 2 * THUMB}px`;
    const caption = this.element.lastElementChild as HTMLElement;
    caption.textContent = `makespan over peak memory (${form.unit}); line: Pareto front`;
  }

  private slid(): void {
    if (this.current === null) return;
    const value = Number(this.slider.value);
    const atEnd = value >= Number(this.slider.max);
    this.handlers.limited(atEnd ? null : value * memoryForm(this.current.comparison).divisor);
  }

  private typed(): void {
    if (this.current === null) return;
    const value = Number(this.field.value);
    const valid = this.field.value.trim() !== "" && value >= 0;
    this.handlers.limited(valid ? value * memoryForm(this.current.comparison).divisor : null);
  }
}

/** Return the ends and steps of the slider in the displayed unit of memory: from below the lowest peak to above the highest. */
export function rangeOf(comparison: ComparisonFacts): { low: number; high: number; step: number } {
  const form: MemoryForm = memoryForm(comparison);
  const peaks = comparison.rows.map(({ peak }) => peak / form.divisor);
  const [least, most] = [Math.min(...peaks), Math.max(...peaks)];
  const step = roundStep(Math.max(most - least, most / 10) / 200);
  const span = Math.max(most - least, 0.2 * most);
  const low = Math.max(Math.floor((least - ROOM * span) / step), 0) * step;
  return { low: rounded(low), high: rounded(Math.ceil((most + 0.06 * span) / step) * step), step };
}

function rounded(value: number): number {
  return Number(value.toPrecision(12));
}
