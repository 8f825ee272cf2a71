/** Panel with the Pareto front of time against memory: the best schedule under each of several limits, drawn as it arrives. */

import { button, make } from "../dom.js";
import { memoryScale, memoryText, type Scale, Times } from "../format.js";
import { FRONT_FIELDS } from "../records.js";
import { Scatter } from "../scatter.js";
import { scroller } from "../scroller.js";
import type { Comparison } from "./api.js";
import { frontPicture } from "./front_chart.js";
import type { Host, Panel } from "./panel.js";
import { type Front, type FrontPoint, front, type SearchProgress } from "./search_api.js";
import { optionField, SearchForm } from "./search_form.js";

export class FrontPanel implements Panel {
  readonly name = "front";
  readonly title = "Front";
  readonly element = make("section", { class: "trade" });
  private readonly placement = optionField("placement", FRONT_FIELDS.placement);
  private readonly objective = optionField("objective", FRONT_FIELDS.objective);
  private readonly points = optionField("points", FRONT_FIELDS.points);
  private readonly seconds = optionField("seconds", FRONT_FIELDS.seconds);
  private readonly form: SearchForm;
  private readonly chart = new Scatter((at) => this.choose(at));
  private readonly table = make("div");
  private results: readonly FrontPoint[] = [];
  private published: Front["published"] = [];
  private selected = -1;
  private memory: Front["memory"] = "activations";

  constructor(private readonly host: Host) {
    const fields = [this.placement, this.objective, this.points, this.seconds];
    this.form = new SearchForm("front", host, fields, "Find the front", (signal) => this.search(signal));
    this.chart.element.hidden = true;
    this.element.append(
      make("h2", {}, "Time against memory"),
      make(
        "p",
        { class: "hint" },
        "The best schedule under each of several memory limits; ignores the form's memory limit. Click a point to draw its schedule.",
      ),
      this.form.element,
      make("div", { class: "side-by-side" }, this.chart.element, this.table),
    );
  }

  answered(comparison: Comparison): void {
    if (this.selected >= 0 && !comparison.drawn.includes(this.nameOf(this.results[this.selected]))) {
      this.selected = -1;
      this.draw();
    }
  }

  private async search(signal: AbortSignal): Promise<void> {
    const { settings, allow } = this.host.request([]);
    const seconds = Number(this.seconds.input.value);
    this.results = [];
    this.published = [];
    this.selected = -1;
    this.memory = settings.activation_bytes === undefined ? "activations" : "bytes";
    this.draw();
    const request = {
      settings,
      allow,
      placement: this.placement.input.value,
      objective: this.objective.input.value,
      seconds,
      points: Number(this.points.input.value),
    };
    const events = {
      progress: (progress: SearchProgress) => {
        const count = this.results.length;
        this.form.showProgress(progress, seconds, `${count} point${count === 1 ? "" : "s"} found`);
      },
      point: (point: FrontPoint) => this.addPoint(point),
    };
    const last = await front(request, events, signal);
    this.results = last.points;
    this.published = unbeaten(last.published);
    this.memory = last.memory;
    this.draw();
    this.form.status.textContent = `${this.verdict()} Gained: ${last.said}.`;
  }

  private addPoint(point: FrontPoint): void {
    this.results = [...this.results, point].sort((one, other) => one.peak - other.peak);
    this.draw();
  }

  /** Return a sentence about both ends of the front. */
  private verdict(): string {
    const first = this.results[0];
    const last = this.results[this.results.length - 1];
    if (first === undefined || last === undefined) return "";
    if (first === last) return "One schedule is the best under every limit.";
    const { times, scale } = this.forms();
    const memory = (point: FrontPoint) => this.memoryOf(point.peak, scale);
    return `From ${times.text(first.value)} with ${memory(first)} per rank to ${times.text(last.value)} with ${memory(last)}.`;
  }

  private choose(at: number): void {
    const point = this.results[at];
    if (point === undefined) return;
    this.selected = at;
    this.draw();
    this.host.add({ name: this.nameOf(point), text: point.text });
  }

  private nameOf(point: FrontPoint | undefined): string {
    if (point === undefined) return "";
    return `front ${this.placement.input.value} ${this.memoryOf(point.peak, this.forms().scale)}`;
  }

  private memoryOf(value: number, scale: Scale): string {
    return `${memoryText(value, scale)} ${scale.unit === "activations" ? "act" : scale.unit}`;
  }

  private forms(): { times: Times; scale: Scale } {
    const unit = this.host.comparison?.results[0]?.time_unit ?? "";
    const all = [...this.results, ...this.published];
    const times = Times.of(
      all.map((point) => point.value),
      unit,
    );
    return { times, scale: memoryScale(this.memory, Math.max(...all.map((point) => point.peak), 1)) };
  }

  private draw(): void {
    const { times, scale } = this.forms();
    const place = (point: { peak: number; value: number }) => ({
      x: point.peak / scale.divisor,
      y: point.value * times.scale,
    });
    const points = this.results.map((point, at) => ({
      ...place(point),
      name: times.text(point.value),
      description: `${times.text(point.value)} with ${this.memoryOf(point.peak, scale)} per rank: draw it`,
      selected: at === this.selected,
    }));
    // The name leaves out the memory, which the axis shows.
    const marks = this.published.map((mark) => ({
      ...place(mark),
      name: mark.schedule.replace(/ at [\d.]+ activations?$/, ""),
    }));
    const { element } = this.chart;
    element.hidden = points.length === 0;
    if (points.length > 0) {
      const up = times.unit === "" ? "time" : `time, ${times.unit}`;
      const room = element.parentElement?.clientWidth ?? Number.POSITIVE_INFINITY;
      this.chart.show(frontPicture(`peak memory, ${scale.unit}`, up, points, marks, room));
    }
    this.table.replaceChildren(
      ...(this.results.length === 0 ? [] : [scroller("points of the Pareto front", this.rows(times, scale))]),
    );
  }

  private rows(times: Times, scale: Scale): HTMLTableElement {
    const heads = ["limit", "time", "compared with published", ""];
    const head = heads.map((text) => (text === "" ? make("td") : make("th", { scope: "col" }, text)));
    const rows = this.results.map((point, at) => {
      const limit = point.limit === null ? "none" : this.memoryOf(point.limit, scale);
      const draw = button("draw", `draw the schedule of ${limit}`, () => this.choose(at));
      draw.classList.add("link");
      draw.setAttribute("aria-pressed", String(at === this.selected));
      const cells = [times.text(point.value), this.against(point)];
      return make(
        "tr",
        { class: at === this.selected ? "shows" : "" },
        make("th", { scope: "row" }, limit),
        ...cells.map((text) => make("td", {}, text)),
        make("td", {}, draw),
      );
    });
    return make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  }

  /** Compare a point with the best published schedule that needs no more memory. */
  private against({ peak, value }: FrontPoint): string {
    const within = this.published.filter((mark) => mark.peak <= peak * (1 + 1e-9));
    const best = within.sort((one, other) => one.value - other.value)[0];
    if (best === undefined) return this.published.length > 0 ? "none fits" : "";
    const share = 1 - value / best.value;
    return share < 5e-4 ? `same as ${best.schedule}` : `${(100 * share).toFixed(1)}% faster than ${best.schedule}`;
  }
}

/** Return the published schedules on their Pareto front of time and memory. */
function unbeaten(published: Front["published"]): Front["published"] {
  const beats = (one: Front["published"][number], other: Front["published"][number]) =>
    one.peak <= other.peak && one.value <= other.value && (one.peak < other.peak || one.value < other.value);
  return published.filter((mark) => !published.some((other) => beats(other, mark)));
}
