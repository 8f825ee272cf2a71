/** Why one schedule takes as long as it does: idle time by reason, the critical path, and what would help. */

import { make } from "../dom.js";
import { percent, signed, timeText } from "../format.js";
import { type Comparison, type Explanation, explain } from "./api.js";
import { Latest } from "./latest.js";
import type { Host, Panel } from "./panel.js";

/** Milliseconds. */
const QUIET = 250;

export class ExplainPanel implements Panel {
  readonly name = "why";
  readonly title = "Why ranks idle";
  readonly element = make("section", { class: "explain" });
  private readonly heading = make("h2", {}, "Why ranks idle");
  private readonly body = make("div", { class: "explain-body", "aria-live": "polite" });
  private readonly explaining = new Latest(() => this.explain());
  private waiting: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly host: Host) {
    this.element.append(this.heading, this.body);
  }

  toggled(open: boolean): void {
    if (open) void this.explaining.ask();
  }

  /** Explain again once nothing has changed for a moment. */
  answered(_: Comparison, open: boolean): void {
    clearTimeout(this.waiting);
    if (open) this.waiting = setTimeout(() => void this.explaining.ask(), QUIET);
  }

  private async explain(): Promise<void> {
    const [name] = this.host.drawn;
    if (name === undefined) return;
    try {
      this.show(await explain(this.host.question([name])));
    } catch (error) {
      this.body.replaceChildren(make("p", { class: "error" }, error instanceof Error ? error.message : String(error)));
    }
  }

  private show(explanation: Explanation): void {
    this.heading.textContent = `Why ranks idle: ${explanation.schedule}`;
    this.body.replaceChildren(idle(explanation), path(explanation), changes(explanation));
  }
}

function idle({ idle: { reasons, by_rank: ranks }, makespan }: Explanation): HTMLElement {
  const used = reasons
    .map((reason, at) => ({ ...reason, at }))
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
  );
  const rows = ranks.map((row, rank) => {
    const parts = used.map(({ key, at }) => part(`reason-${key}`, most === 0 ? 0 : (row[at] ?? 0) / most));
    const bar = make("td", { class: "stack" }, make("div", { "aria-hidden": "true" }, ...parts));
    const cells = used.map(({ at }) => make("td", {}, (row[at] ?? 0) > 0 ? timeText(row[at] ?? 0) : "\u2013"));
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
  return section("Idle time of each rank by reason", make("div", { class: "scroll tall" }, table));
}

function path({ critical_path: found, makespan }: Explanation): HTMLElement {
  const kinds = found.by_kind.map((each) => ({ key: `kind-${each.kind}`, title: each.title, time: each.time }));
  const parts = [...kinds, { key: "reason-transfer", title: "transfers and waiting", time: found.transfer }];
  if (found.overhead > 0) parts.push({ key: "reason-overhead", title: "gaps and messages", time: found.overhead });
  const stack = make(
    "div",
    { class: "stack wide", "aria-hidden": "true" },
    ...parts.map(({ key, time }) => part(key, time / makespan)),
  );
  const list = parts.map(({ key, title, time }) =>
    make("li", {}, swatch(key), `${title} ${timeText(time)} (${percent(time / makespan)})`),
  );
  const stages = found.by_stage.map((time, stage) => ({ stage, time })).filter(({ time }) => time > 0);
  const first = stages.sort((one, other) => other.time - one.time).slice(0, 4);
  const text = first.map(({ stage, time }) => `${stage} (${percent(time / makespan)})`).join(", ");
  const about = make("p", {}, `${found.ops} ops. Stages with the most time on it: ${text}.`);
  return section("The critical path", stack, make("ul", { class: "legend" }, ...list), about);
}

function changes({ what_ifs: found, makespan, time_unit: unit }: Explanation): HTMLElement {
  if (found.length === 0)
    return section(
      "What would help",
      make("p", {}, "Nothing to change: transfers are free and the stages are balanced."),
    );
  const rows = found.map((each) => {
    const difference = each.makespan - makespan;
    const cells = [
      timeText(each.makespan, unit),
      signed(difference),
      percent(difference / makespan).replace("-", "\u2212"),
    ];
    return make("tr", {}, make("th", { scope: "row" }, each.change), ...cells.map((text) => make("td", {}, text)));
  });
  const head = ["simulated again with", "makespan", "difference", ""].map((text) => make("th", { scope: "col" }, text));
  return section(
    "What would help",
    make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)),
  );
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
