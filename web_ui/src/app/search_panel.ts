/** A search for a better schedule, live: the table and the timeline show its best schedule while it runs. */

import { make } from "../dom.js";
import { percent, Times } from "../format.js";
import { SEARCH_FIELDS } from "../records.js";
import type { Comparison } from "./api.js";
import { Asking, choiceField, limitField, optionField } from "./asking.js";
import { gainText, provenText } from "./gains.js";
import type { Host, Panel } from "./panel.js";
import { type Found, type SearchProgress, search } from "./search_api.js";

/** Maximum length of a name; a limit for each rank is longer. */
const LONGEST_NAME = 60;

/** First word of the name of a search's result. */
export const SEARCHED = "search";

export class SearchPanel implements Panel {
  readonly name = "search";
  readonly title = "Search";
  readonly element = make("section", { class: "search" });
  private readonly placement = optionField("placement", SEARCH_FIELDS.placement);
  private readonly limit: ReturnType<typeof limitField>;
  private readonly objective = optionField("objective", SEARCH_FIELDS.objective);
  private readonly decide = choiceField("decide", "Also optimize", [
    ["", "\u2013"],
    ["recompute", "recompute"],
    ["offload", "offload"],
    ["recompute,offload", "recompute and offload"],
  ]);
  private readonly seconds = optionField("seconds", SEARCH_FIELDS.seconds);
  private readonly start = choiceField("start", "Start from", [["", "all published schedules"]]);
  private readonly asking: Asking;
  private readonly aged = make("p", { class: "note", hidden: true }, "Shape or costs have changed: search again.");
  private asked = "";
  private wanted = "";

  constructor(private readonly host: Host) {
    this.limit = limitField(host);
    const fields = [this.placement, this.limit, this.objective, this.decide, this.seconds, this.start];
    this.asking = new Asking("search", host, fields, "Search", (signal) => this.search(signal));
    this.element.append(
      make("h2", {}, "Search for a better schedule"),
      make(
        "p",
        { class: "hint" },
        "Starts from every published schedule that fits the shape, the costs and the memory limit. The search ends when the page is closed, and the server keeps nothing of it.",
      ),
      this.asking.element,
      this.aged,
    );
  }

  /** Start from a schedule as soon as it is compared. */
  about(schedule: string): void {
    this.wanted = schedule;
    if (this.host.comparison !== null) this.answered(this.host.comparison);
  }

  answered(comparison: Comparison): void {
    const { input } = this.limit;
    if (input !== document.activeElement) input.value = this.host.typed("memory_limit");
    const chosen = this.wanted === "" ? this.start.input.value : this.wanted;
    const names = comparison.results.map((result) => result.schedule);
    const options = ["", ...names].map((name) =>
      make("option", { value: name }, name === "" ? "all published schedules" : name),
    );
    this.start.input.replaceChildren(...options);
    this.start.input.value = names.includes(chosen) ? chosen : "";
    if (names.includes(this.wanted)) this.wanted = "";
    this.aged.hidden = this.asked === "" || this.asked === JSON.stringify(this.host.question().settings);
  }

  private async search(signal: AbortSignal): Promise<void> {
    const start = this.start.input.value;
    const { settings, allow, schedules, files } = this.host.question(start === "" ? [] : [start]);
    const seconds = Number(this.seconds.input.value);
    const placement = this.placement.input.value;
    const limit = this.host.typed("memory_limit");
    const name = [SEARCHED, placement, limit].join(" ").trim().slice(0, LONGEST_NAME);
    const objective = this.objective.input.value;
    const decide = this.decide.input.value.split(",").filter((choice) => choice !== "");
    const asked = { settings, allow, placement, objective, decide, seconds, start: schedules, files };
    this.asked = JSON.stringify(settings);
    this.aged.hidden = true;
    let last: SearchProgress | null = null;
    const events = {
      progress: (progress: SearchProgress) => {
        last = progress;
        this.asking.tell(progress, seconds, this.soFar(progress));
      },
      best: (text: string) => this.host.add({ name, text }),
    };
    const stopped = () => last !== null && this.stopped(last, name);
    signal.addEventListener("abort", stopped);
    this.tell(await search(asked, events, signal), name);
  }

  private soFar({ value, bound, published }: SearchProgress): string {
    const times = Times.of([value, bound], this.unit);
    const gap = value > bound ? `at most ${percent(value / bound - 1)} above optimal` : "optimal";
    const gain = published === null ? "" : `, ${gainText(1 - value / published.value, published.name)}`;
    return `best ${times.text(value)}, ${gap}${gain}`;
  }

  private stopped(progress: SearchProgress, name: string): void {
    this.asking.said.textContent = `Stopped: ${this.soFar(progress)}. It is in the table as \u201c${name}\u201d.`;
  }

  private tell(found: Found, name: string): void {
    const { objective, said, seconds, found_by: by } = found;
    const [gain, ...others] = said;
    const times = Times.of([objective.value, objective.lower_bound], found.time_unit);
    const sentences = [
      ...others,
      provenText(objective, found.optimal, times),
      `Found by ${by} in ${seconds.toFixed(1)} s. It is in the table as \u201c${name}\u201d; Download offers every format.`,
    ];
    this.asking.said.replaceChildren(make("strong", {}, gain ?? ""), ` ${sentences.join(" ")}`);
  }

  private get unit(): string {
    return this.host.comparison?.results[0]?.time_unit ?? "";
  }
}
