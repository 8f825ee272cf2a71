/** The planning page: the form on the left, the plan on the right, and the selected configuration of the plan below. */

import { type Fault, Refusal } from "../app/api.js";
import { Banner } from "../app/banner.js";
import { Form } from "../app/form.js";
import { Picture } from "../app/picture.js";
import { Sheet } from "../app/sheet.js";
import { settingsOf, type Typed } from "../app/values.js";
import { make, part } from "../dom.js";
import { figure, percent } from "../format.js";
import { Scatter } from "../scatter.js";
import { type Candidate, detailsOf, type Plan, type PlanFields, plan } from "./api.js";
import { Bars, timeOf } from "./bars.js";
import { type Row, rowsOf, whyChosen } from "./candidates.js";
import { compareAddress } from "./compare_link.js";
import { FlagTabs } from "./flags.js";
import { frontPicture } from "./front.js";
import { ModelFile } from "./model_file.js";
import { assumptions, counted, facts, searched, sensitivity, trust } from "./notes.js";
import { ProgressLine } from "./progress.js";
import { savedPlan, savePlan } from "./saved_plan.js";
import { CandidateTable } from "./table.js";

/** Initial values of a page without a query. */
const EXAMPLE: Typed = { model: "llama3-70b", cluster: "h100-sxm:8x8", global_batch: "128", sequence: "8192" };

export class PlanPage {
  private readonly form: Form;
  private readonly file = new ModelFile(() => this.changed());
  private readonly progress = new ProgressLine(() => this.running?.abort());
  private readonly submit = make("button", { type: "submit", class: "button primary" }, "Plan");
  private readonly banner = new Banner("See the message at ", (name) => this.focus(name));
  private readonly sheet = new Sheet(part("#controls"), [part("header"), part("main")]);
  private readonly compare = make("a", { class: "button" }, "Compare schedules on these costs");
  private readonly idle = make("p", { class: "note" });
  private readonly answer = make("div", { class: "answer", hidden: true });
  private readonly headline = make("h2", { tabindex: -1 });
  private readonly heading = make("p", { class: "note" });
  private readonly why = make("p", { class: "why-chosen" });
  private readonly count = make("p", { class: "note" });
  private readonly table = new CandidateTable((at) => this.select(at));
  private readonly front = new Scatter((at) => this.select(at));
  private readonly facts = make("div");
  private readonly time: Bars;
  private readonly memory: Bars;
  private readonly flags = new FlagTabs();
  private readonly picture = new Picture(location.hash.slice(1), () => undefined);
  private readonly schedule = make(
    "div",
    { hidden: true },
    make("h3", {}, "Schedule of the selected configuration"),
    this.idle,
    make("p", {}, this.compare),
    this.picture.element,
  );
  private readonly empty = make(
    "p",
    { class: "note empty" },
    "Plan evaluates the parallelism degrees, schedules, layouts and recomputation that are valid for this model on this cluster, and " +
      "shows the fastest configuration that fits, the runners-up, where time and memory go, and the trainer flags to paste.",
  );
  private readonly notes = make("div");
  private readonly sure = make("div");
  private readonly remarks = make("div");
  private readonly failed = make("p", { class: "error", role: "alert", hidden: true });
  private running: AbortController | null = null;
  /** Whether the running plan is that of the example, which the user did not request. */
  private unasked = false;
  private lookup: AbortController | null = null;
  private plan: Plan | null = null;
  private rows: readonly Row[] = [];

  constructor(private readonly fields: PlanFields) {
    this.form = new Form(fields, () => this.stopExample());
    this.time = new Bars("Where the step's time goes", "s", fields.time, figure);
    this.memory = new Bars("Memory of each pipeline rank", "GiB", fields.memory, (value) => value.toFixed(1));
  }

  start(): void {
    const { form, table, front, time, memory } = this;
    form.element.append(make("div", { class: "ask" }, this.submit));
    form.element.addEventListener("submit", () => void this.requestPlan());
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.running?.abort());
    part("#controls").prepend(this.file.element, form.element);
    // Until a plan is requested, the form takes its place.
    this.sheet.setLabel("Change model, cluster or limits");
    document.body.classList.add("controls-first");
    const choice = make("div", { class: "side-by-side" }, front.element, make("div", {}, this.why, this.remarks));
    const selected = make("div", { class: "side-by-side" }, make("div", {}, this.facts), time.element);
    const look = [this.failed, this.flags.element, memory.element, this.schedule];
    this.answer.append(
      this.headline,
      this.heading,
      choice,
      table.element,
      make("h3", {}, "Selected configuration"),
      selected,
      ...look,
      this.notes,
      this.sure,
      this.count,
    );
    const { sheet, banner, progress, empty } = this;
    part("main").replaceChildren(sheet.opener, banner.element, progress.element, empty, this.answer);
    form.typed = typedIn(location.search, fieldNames(this.fields));
    const before = location.search === "" ? null : savedPlan(queryOf(form.typed));
    if (before !== null) {
      document.body.classList.remove("controls-first");
      this.show(before);
    } else if (location.search === "") void this.requestPlan(true);
  }

  private changed(): void {
    this.form.fail([]);
    this.stopExample();
  }

  /** Stop the plan of the example: the user begins one. */
  private stopExample(): void {
    if (this.unasked) this.running?.abort();
  }

  private focus(name: string): void {
    this.sheet.reveal();
    this.form.focus(name);
  }

  private async requestPlan(unasked = false): Promise<void> {
    this.running?.abort();
    this.unasked = unasked;
    const controller = new AbortController();
    this.running = controller;
    const typed = this.form.typed;
    history.replaceState(null, "", `?${queryOf(typed)}${location.hash}`);
    this.fail([]);
    this.sheet.close();
    document.body.classList.remove("controls-first");
    this.progress.begin();
    this.answer.classList.add("stale");
    try {
      const settings = settingsOf(typed, this.fields.fields);
      const result = await plan(
        settings,
        this.file.file,
        (progress) => this.progress.show(progress),
        controller.signal,
      );
      this.show(result);
      if (!unasked) this.headline.focus();
      // The address does not contain the user's file, so its plan is not saved.
      if (this.file.file === null) savePlan(queryOf(typed), result);
    } catch (error) {
      if (this.running !== controller) return;
      if (!controller.signal.aborted) this.fail(faultsOf(error));
      else if (!unasked) this.fail(CANCELLED);
    } finally {
      if (this.running === controller) {
        this.progress.end();
        this.running = null;
        this.unasked = false;
      }
    }
  }

  private show(result: Plan): void {
    this.plan = result;
    this.rows = rowsOf(result);
    this.empty.hidden = true;
    this.answer.hidden = false;
    this.answer.classList.remove("stale");
    this.heading.textContent = result.heading;
    this.headline.textContent = result.headline;
    this.why.textContent = whyChosen(result);
    this.table.restart();
    this.count.textContent = counted(result);
    this.remarks.replaceChildren(...result.remarks.map((text) => make("p", { class: "note" }, sentence(text))));
    this.front.element.hidden = result.best === null;
    if (this.rows.length > 0) this.select(0);
  }

  /** Show one configuration below the table. */
  private select(at: number): void {
    const result = this.plan;
    const rows = this.rows;
    const row = rows[at];
    if (result === null || row === undefined) return;
    const { candidate } = row;
    this.table.show(rows, at, result.memory_limit_gib);
    this.front.show(frontPicture(rows, at, result.memory_limit_gib));
    this.showFacts(candidate);
    const best = rows[0];
    const compared = best === undefined || at === 0 ? [row] : [row, best];
    this.time.show(
      compared.map((other) => ({ label: other === row ? "this one" : "the best", parts: timeOf(other.candidate) })),
    );
    const ranks = candidate.memory_breakdown_by_rank_gib;
    this.memory.show(
      ranks.map((parts, rank) => ({ label: String(rank), parts })),
      result.memory_limit_gib,
    );
    const better = searched(result);
    this.notes.replaceChildren(
      ...(better === "" ? [] : [make("p", { class: "note" }, better)]),
      make(
        "div",
        { class: "side-by-side" },
        make("section", {}, ...assumptions(result)),
        make("section", {}, ...sensitivity(result)),
      ),
    );
    void this.look(row);
  }

  /** Show the facts of a configuration and the accuracy of its prediction. */
  private showFacts(candidate: Candidate): void {
    this.facts.replaceChildren(facts(candidate));
    this.sure.replaceChildren(make("h3", {}, "Accuracy of the prediction"), ...trust(candidate));
  }

  /** Fetch the slow details of a configuration: flags, timeline, and the error bar, which a plan has only for its best. */
  private async look({ candidate }: Row): Promise<void> {
    this.lookup?.abort();
    const controller = new AbortController();
    this.lookup = controller;
    this.flags.element.classList.add("stale");
    try {
      const details = await detailsOf(candidate, controller.signal);
      if (controller.signal.aborted) return;
      // The best configuration has the flags of each trainer's own plan, the others have their own flags.
      const best = this.plan?.best ?? null;
      this.flags.show(candidate === best ? best.flags : details.estimate.flags, this.plan?.trainer);
      // The timeline measures its element, which must be visible.
      this.schedule.hidden = details.timeline === null;
      this.picture.show(details.timeline);
      this.idle.textContent = idleText(details.idle, candidate);
      this.compare.href = compareAddress(details.compare);
      this.showFacts({ ...candidate, error_bar: details.estimate.error_bar });
      this.failed.hidden = true;
    } catch (error) {
      if (controller.signal.aborted) return;
      this.failed.textContent = faultsOf(error)
        .map((fault) => fault.message)
        .join("; ");
      this.failed.hidden = false;
      this.flags.show({});
      this.picture.show(null);
      this.schedule.hidden = true;
    }
    this.flags.element.classList.remove("stale");
  }

  /** Show each fault at its field, and the others in the banner. */
  private fail(faults: readonly Fault[]): void {
    const remaining = this.form.fail(faults);
    const invalid = faults.filter((fault) => !remaining.includes(fault)).map(({ field }) => field);
    const [first] = invalid;
    if (remaining.length > 0) this.banner.show(remaining.map(inSentence).join("; "));
    else if (first === undefined) this.banner.clear();
    else this.banner.point([...new Set(invalid)].map((name) => ({ name, label: this.form.labelOf(name) })));
    if (first !== undefined) this.focus(first);
  }
}

/** Return a text with a capital letter and a full stop. */
function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) || text === "" ? "" : "."}`;
}

function inSentence({ field, message }: Fault): string {
  return field === "" ? message : `${field}: ${message}`;
}

/** Return a note on why the bubble differs between the step and the timeline. */
function idleText(idle: number, { breakdown, step_time_s: step }: Candidate): string {
  const bubble = breakdown.bubble_s ?? 0;
  return (
    `The bubble is the idle time of all ranks: ${percent(bubble / step)} of the step, and ${percent(idle)} of this ` +
    "timeline, which has no optimizer's step. " +
    "The timeline shows activation memory only; the bars above show all memory of a rank."
  );
}

const CANCELLED: readonly Fault[] = [{ field: "", message: "Cancelled." }];

function faultsOf(error: unknown): readonly Fault[] {
  if (error instanceof Refusal) return error.faults;
  return [{ field: "", message: error instanceof Error ? error.message : String(error) }];
}

function fieldNames({ fields }: PlanFields): string[] {
  return fields.map((field) => field.name);
}

/** Return the form's texts as the query of an address. */
function queryOf(typed: Typed): string {
  const entries = Object.entries(typed).filter(([, text]) => text.trim() !== "");
  return new URLSearchParams(entries.map(([name, text]) => [name, text.trim()])).toString();
}

function typedIn(query: string, names: readonly string[]): Typed {
  const parameters = new URLSearchParams(query);
  if (parameters.size === 0) return EXAMPLE;
  return Object.fromEntries(
    names.flatMap((name) => (parameters.has(name) ? [[name, parameters.get(name) ?? ""]] : [])),
  );
}
