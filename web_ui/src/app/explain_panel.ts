/** Panel that explains the makespan of one schedule: idle time by reason, the critical path, and changes that help. */

import { make } from "../dom.js";
import { change, memoryScale, memoryText, percent, Times } from "../format.js";
import { needsText } from "../needs.js";
import { KIND_WORDS, REASON_WORDS } from "../records.js";
import { scroller } from "../scroller.js";
import { type Comparison, type Explanation, explain } from "./api.js";
import { isInstalled } from "./extensions.js";
import { Latest } from "./latest.js";
import type { Host, Panel } from "./panel.js";

/** Milliseconds without a change before the explanation is requested again. */
const QUIET = 250;

export class ExplainPanel implements Panel {
  readonly name = "why";
  readonly title = "Why idle";
  readonly element = make("section", { class: "explain" });
  private readonly heading = make("h2", {}, "Why ranks idle");
  private readonly body = make("div", { class: "explain-body", "aria-live": "polite" }, "Computing\u2026");
  private readonly explaining = new Latest(() => this.explain());
  private waiting: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly host: Host) {
    this.element.append(this.heading, this.body);
  }

  toggled(open: boolean): void {
    if (open) void this.explaining.request();
  }

  /** Explain the new comparison after a moment without changes. */
  answered(_: Comparison, open: boolean): void {
    clearTimeout(this.waiting);
    if (open) this.waiting = setTimeout(() => void this.explaining.request(), QUIET);
  }

  private async explain(): Promise<void> {
    const [name] = this.host.drawn;
    if (name === undefined) return;
    try {
      this.show(await explain(this.host.request([name])));
    } catch (error) {
      this.body.replaceChildren(make("p", { class: "error" }, error instanceof Error ? error.message : String(error)));
    }
  }

  /** Return the advice, with a link to the search panel in place of the search command. */
  private advise(advice: string): HTMLElement {
    const [before, after] = advice.split("'pipeplan search'");
    if (after === undefined || !isInstalled("search")) return make("p", { class: "advice" }, advice);
    const link = make("button", { type: "button", class: "link" }, "a search");
    link.addEventListener("click", () => this.host.open("search"));
    return make("p", { class: "advice" }, before === "" ? "Here " : before, link, after);
  }

  private show(explanation: Explanation): void {
    this.heading.textContent = explanation.headline;
    const { advice } = explanation.explain;
    const first = advice === "" ? [] : [this.advise(advice)];
    const more = moreText(explanation);
    if (more !== "") first.push(make("p", { class: "advice" }, more));
    this.body.replaceChildren(
      sentencesOf(explanation),
      ...first,
      changes(explanation, this.host),
      idle(explanation),
      path(explanation),
    );
  }
}

/** Return the published schedules that need more than is allowed and are faster, or that alone are within the memory limit. */
function moreText({ explain: { faster_with_more: faster }, fits, time_unit: unit }: Explanation): string {
  const times = Times.of(
    faster.map(({ value }) => value),
    unit,
  );
  const texts = faster.map(
    ({ schedule, value, needs }) => `${schedule}, ${times.text(value)}, needs ${needsText(needs)}`,
  );
  return texts.length > 0 ? `${fits ? "Faster" : "Within the memory limit"} with more: ${texts.join("; ")}.` : "";
}

function idle({
  explain: { reasons, communication },
  idle: totals,
  makespan,
  time_unit: unit,
}: Explanation): HTMLElement {
  const ranks = totals.map((_, rank) => Object.values(reasons).map((times) => times[rank] ?? 0));
  const inOps = communication === undefined ? [] : [communication.exposed, communication.hidden];
  const times = Times.of([...ranks.flat(), ...ranks.map(sum), ...inOps.flat()], unit);
  const used = Object.keys(reasons)
    .map((key, at) => ({ key, title: REASON_WORDS[key] ?? key, at }))
    .filter(({ at }) => ranks.some((row) => (row[at] ?? 0) > 0));
  const most = Math.max(...ranks.map(sum));
  const headings = used.map(({ key, title }) => make("th", { scope: "col" }, swatch(`reason-${key}`), title));
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "rank"),
    make("th", { scope: "col" }, "idle"),
    make("th"),
    ...headings,
    ...["exposed", "hidden"].slice(0, inOps.length).map((what) => {
      return make("th", { scope: "col" }, `${what} in ops: ${communication?.kinds}`);
    }),
  );
  const rows = ranks.map((row, rank) => {
    const parts = used.map(({ key, at }) => part(`reason-${key}`, most === 0 ? 0 : (row[at] ?? 0) / most));
    const bar = make("td", { class: "stack" }, make("div", { "aria-hidden": "true" }, ...parts));
    const cells = used.map(({ at }) => make("td", {}, (row[at] ?? 0) > 0 ? times.number(row[at] ?? 0) : "\u2013"));
    cells.push(...inOps.map((own) => make("td", {}, times.number(own[rank]))));
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, String(rank)),
      make("td", {}, percent(sum(row) / makespan)),
      bar,
      ...cells,
    );
  });
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  return section(
    `Idle time of each rank by reason${times.unit === "" ? "" : `, ${times.unit}`}`,
    scroller("idle time of each rank", table, "tall"),
  );
}

function path({ explain: { critical_path: critical }, makespan, time_unit: unit }: Explanation): HTMLElement {
  const kinds = Object.entries(critical.by_kind).map(([kind, time]) => ({
    key: `kind-${kind}`,
    title: KIND_WORDS[kind] ?? kind,
    time,
  }));
  const parts = [...kinds, { key: "reason-transfer", title: "transfers and waiting", time: critical.transfer }];
  if (critical.overhead > 0)
    parts.push({ key: "reason-overhead", title: "gaps and messages", time: critical.overhead });
  const times = Times.of(
    parts.map(({ time }) => time),
    unit,
  );
  const stack = make(
    "div",
    { class: "stack wide", "aria-hidden": "true" },
    ...parts.map(({ key, time }) => part(key, time / makespan)),
  );
  const list = parts.map(({ key, title, time }) =>
    make("li", {}, swatch(key), `${title} ${times.text(time)} (${percent(time / makespan)})`),
  );
  const stages = critical.by_stage.map((time, stage) => ({ stage, time })).filter(({ time }) => time > 0);
  const first = stages.sort((one, other) => other.time - one.time).slice(0, 4);
  const text = first.map(({ stage, time }) => `${stage} (${percent(time / makespan)})`).join(", ");
  const about = make("p", {}, `${critical.ops} ops. Stages with the most time on it: ${text}.`);
  return section("The critical path", stack, make("ul", { class: "legend" }, ...list), about);
}

/** Return the sentences on the ranks; the first one repeats the headline. */
function sentencesOf({ explain: { sentences } }: Explanation): HTMLElement {
  return make("ul", { class: "sentences" }, ...sentences.slice(1).map((text) => make("li", {}, text)));
}

function changes(explanation: Explanation, host: Host): HTMLElement {
  const { what_ifs: tries, per_microbatch: now } = explanation.explain;
  const { makespan, peak_bytes: bytes } = explanation;
  const peak = Math.max(...(bytes ?? explanation.peak_activation));
  const helping = tries.filter((remedy) => remedy.helps);
  const others = tries.filter((remedy) => !remedy.helps).map((remedy) => remedy.change);
  const tried =
    others.length === 0 ? [] : [make("p", { class: "note" }, `Also tried, without gain: ${others.join(", ")}.`)];
  if (helping.length === 0) return section("What would help", ...tried);
  const unit = explanation.time_unit;
  const steps = Times.of([makespan, ...helping.map((remedy) => remedy.makespan)], unit);
  const perMicrobatch = Times.of([now, ...helping.map((remedy) => remedy.per_microbatch)], unit);
  const peaks = helping.map((one) => one.peak_bytes ?? one.peak_activation);
  const scale = memoryScale(bytes === null ? "activations" : "bytes", Math.max(peak, ...peaks));
  const heads = [
    "simulated again with",
    named("makespan", steps.unit),
    named("per microbatch", perMicrobatch.unit),
    "change",
    `peak, ${scale.unit}`,
  ];
  const rows = helping.map((one, at) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, one.kind === "schedule" ? compared(one.change, host) : one.change),
      make("td", {}, steps.number(one.makespan)),
      make("td", {}, perMicrobatch.number(one.per_microbatch)),
      make("td", {}, change(one.per_microbatch / now - 1)),
      make("td", {}, memoryText(peaks[at], scale)),
    ),
  );
  const first = make(
    "tr",
    {},
    make("th", { scope: "row" }, "(now)"),
    make("td", {}, steps.number(makespan)),
    make("td", {}, perMicrobatch.number(now)),
    make("td"),
    make("td", {}, memoryText(peak, scale)),
  );
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, first, ...rows));
  return section("What would help", scroller("what would help", table), ...tried);
}

/** Return a schedule's name as a button that adds it to the comparison. */
function compared(name: string, host: Host): HTMLElement {
  const link = make("button", { type: "button", class: "link", title: `compare and draw ${name}` }, name);
  link.addEventListener("click", () => host.compareWith(name));
  return link;
}

function named(text: string, unit: string): string {
  return unit === "" ? text : `${text}, ${unit}`;
}

function section(title: string, ...children: Node[]): HTMLElement {
  return make("section", {}, make("h3", {}, title), ...children);
}

function part(key: string, share: number): HTMLElement {
  const element = make("span", { class: "part" });
  element.style.width = `${100 * share}%`;
  element.style.background = `var(--${key})`;
  return element;
}

function swatch(key: string): HTMLElement {
  const element = make("span", { class: "swatch" });
  element.style.background = `var(--${key})`;
  return element;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
