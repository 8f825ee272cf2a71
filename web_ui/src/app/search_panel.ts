/** Panel that searches for a better schedule: the table and the timeline show the best one while the search runs. */

import { make } from "../dom.js";
import { percent, Times } from "../format.js";
import { SEARCH_FIELDS } from "../records.js";
import type { Comparison } from "./api.js";
import { gainText, provenText } from "./gains.js";
import type { Host, Panel } from "./panel.js";
import { type SearchProgress, type SearchResult, search } from "./search_api.js";
import { choiceField, limitField, optionField, SearchForm } from "./search_form.js";

/** Maximum length of a schedule's name; a memory limit per rank may be longer. */
const LONGEST_NAME = 60;

/** First word of the name of a schedule that a search found. */
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
  private readonly form: SearchForm;
  private readonly outdated = make("p", { class: "note", hidden: true }, "Shape or costs have changed: search again.");
  private searchedSettings = "";
  private pendingStart = "";

  constructor(private readonly host: Host) {
    this.limit = limitField(host);
    const fields = [this.placement, this.limit, this.objective, this.decide, this.seconds, this.start];
    this.form = new SearchForm("search", host, fields, "Search", (signal) => this.search(signal));
    this.element.append(
      make("h2", {}, "Search for a better schedule"),
      make(
        "p",
        { class: "hint" },
        "Starts from every published schedule that fits the shape, the costs and the memory limit. The search ends when the page is closed, and the server keeps nothing of it.",
      ),
      this.form.element,
      this.outdated,
    );
  }

  /** Start from a schedule once it is in the comparison. */
  about(schedule: string): void {
    this.pendingStart = schedule;
    if (this.host.comparison !== null) this.answered(this.host.comparison);
  }

  answered(comparison: Comparison): void {
    const { input } = this.limit;
    if (input !== document.activeElement) input.value = this.host.typed("memory_limit");
    const selected = this.pendingStart === "" ? this.start.input.value : this.pendingStart;
    const names = comparison.results.map((result) => result.schedule);
    const options = ["", ...names].map((name) =>
      make("option", { value: name }, name === "" ? "all published schedules" : name),
    );
    this.start.input.replaceChildren(...options);
    this.start.input.value = names.includes(selected) ? selected : "";
    if (names.includes(this.pendingStart)) this.pendingStart = "";
    this.outdated.hidden =
      this.searchedSettings === "" || this.searchedSettings === JSON.stringify(this.host.request().settings);
  }

  private async search(signal: AbortSignal): Promise<void> {
    const start = this.start.input.value;
    const { settings, allow, schedules, files } = this.host.request(start === "" ? [] : [start]);
    const seconds = Number(this.seconds.input.value);
    const placement = this.placement.input.value;
    const limit = this.host.typed("memory_limit");
    const name = [SEARCHED, placement, limit].join(" ").trim().slice(0, LONGEST_NAME);
    const objective = this.objective.input.value;
    const decide = this.decide.input.value.split(",").filter((choice) => choice !== "");
    const request = { settings, allow, placement, objective, decide, seconds, start: schedules, files };
    this.searchedSettings = JSON.stringify(settings);
    this.outdated.hidden = true;
    let last: SearchProgress | null = null;
    const events = {
      progress: (progress: SearchProgress) => {
        last = progress;
        this.form.showProgress(progress, seconds, this.soFar(progress));
      },
      best: (text: string) => this.host.add({ name, text }),
    };
    const stopped = () => last !== null && this.stopped(last, name);
    signal.addEventListener("abort", stopped);
    this.showResult(await search(request, events, signal), name);
  }

  private soFar({ value, bound, published }: SearchProgress): string {
    const times = Times.of([value, bound], this.unit);
    const gap = value > bound ? `at most ${percent(value / bound - 1)} above optimal` : "optimal";
    const gain = published === null ? "" : `, ${gainText(1 - value / published.value, published.name)}`;
    return `best ${times.text(value)}, ${gap}${gain}`;
  }

  private stopped(progress: SearchProgress, name: string): void {
    this.form.status.textContent = `Stopped: ${this.soFar(progress)}. It is in the table as \u201c${name}\u201d.`;
  }

  private showResult(result: SearchResult, name: string): void {
    const { headline, objective, said, seconds, found_by: by } = result;
    const [, ...others] = said;
    const times = Times.of([objective.value, objective.lower_bound], result.time_unit);
    const sentences = [
      ...others,
      provenText(objective, result.optimal, times),
      `Found by ${by} in ${seconds.toFixed(1)} s. It is in the table as \u201c${name}\u201d; Download offers every format.`,
    ];
    this.form.status.replaceChildren(make("strong", {}, `${headline}.`), ` ${sentences.join(" ")}`);
  }

  private get unit(): string {
    return this.host.comparison?.results[0]?.time_unit ?? "";
  }
}
