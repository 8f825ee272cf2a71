/** The first schedules as rows: a thumbnail of the timeline, the makespan with its bar, the peak memory. */

import { make } from "../dom.js";
import { memoryScale, memoryText, type Scale, Times } from "../format.js";
import type { Comparison, Result } from "./api.js";
import { type BarScale, barScale, barShare } from "./bars.js";
import { thumbnailOf } from "./thumbnail.js";

export interface Choice {
  /** Show only the timeline of this schedule. */
  only(name: string): void;
  /** Show or hide the timeline of this schedule next to the others. */
  beside(name: string, shows: boolean): void;
}

/** Number of rows, in addition to those whose timelines are visible. */
export const FIRST = 6;

/** Formats that the rows share. */
interface Forms {
  readonly bars: BarScale;
  readonly times: Times;
  readonly memory: Scale;
}

export class Rows {
  readonly element = make("div", { class: "fastest" });

  constructor(private readonly choice: Choice) {}

  show({ results: all, thumbnails, drawn, least_bound }: Comparison): void {
    const places = all.map((_, at) => at).filter((at) => at < FIRST || drawn.includes(all[at].schedule));
    const results = places.map((at) => all[at]);
    const bars = barScale({ results, least_bound });
    const times = Times.of([bars.start, ...results.map(({ makespan }) => makespan)], all[0]?.time_unit ?? "");
    const forms = { bars, times, memory: memoryFor(results) };
    const rows = places.map((at) => {
      const row = this.row(all[at], drawn.includes(all[at].schedule), forms);
      row.prepend(thumbnailOf(thumbnails[at]));
      return make("li", {}, row);
    });
    const axis = `Bars begin at the ${bars.common ? "bound" : "least bound"}, ${times.text(bars.start)}.`;
    this.element.replaceChildren(
      make("p", { class: "hint" }, axis),
      make("ol", { "aria-label": "fastest schedules" }, ...rows),
    );
  }

  private row(result: Result, shows: boolean, { bars, times, memory }: Forms): HTMLElement {
    const { schedule, makespan, over } = result;
    const bar = make("span", { class: "bar" });
    bar.style.width = `${over === null ? 100 * barShare(makespan, bars) : 0}%`;
    const unit = memory.unit === "activations" ? "act." : memory.unit;
    const peak = `${over === null ? "" : "over: "}${memoryText(peakOf(result), memory)} ${unit}`;
    const row = make(
      "button",
      {
        type: "button",
        class: "row",
        "data-key": `row ${schedule}`,
        "aria-pressed": String(shows),
        title: `show the timeline of ${schedule}`,
      },
      make("span", { class: "name" }, schedule),
      " ",
      make("span", { class: "number" }, times.text(makespan)),
      " ",
      make("span", { class: over === null ? "track" : "", "aria-hidden": "true" }, bar),
      make("span", { class: over === null ? "peak faint" : "peak error" }, peak),
    );
    row.addEventListener("click", () => this.choice.only(schedule));
    return row;
  }
}

/** Return the scale of the peak memory of results. */
export function memoryFor(results: readonly Result[]): Scale {
  const inBytes = results.some((result) => result.peak_bytes !== null);
  return memoryScale(inBytes ? "bytes" : "activations", Math.max(...results.map(peakOf)));
}

export function peakOf(result: Result): number {
  return Math.max(...(result.peak_bytes ?? result.peak_activation));
}
