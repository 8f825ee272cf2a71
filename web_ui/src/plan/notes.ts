/** Evidence for a plan: sensitivity to its inputs, errors of similar predictions, assumptions. */

import { make } from "../dom.js";
import { change, countedAs, figure } from "../format.js";
import type { Candidate, Plan } from "./api.js";

export function sensitivity(plan: Plan): HTMLElement[] {
  if (plan.sensitivity.length === 0) return [];
  const rows = plan.sensitivity.map((row) =>
    make(
      "tr",
      {},
      heading(
        row.factor === 1 ? row.input : `${row.input} \u00d7 ${row.factor}`,
        row.changes ? `better then: ${row.instead}` : "the plan stays the best",
      ),
      make("td", {}, figure(row.step_time)),
    ),
  );
  return [make("h3", {}, "What would change the plan"), tableOf(["changed input", "step, s"], rows)];
}

/** Return the heading of a row with a faint text below it, which wraps on a narrow page. */
function heading(text: string, below: string): HTMLElement {
  return make("th", { scope: "row" }, text, make("span", { class: "why" }, below));
}

function tableOf(titles: readonly string[], rows: readonly HTMLElement[]): HTMLElement {
  const head = titles.map((text) => make("th", { scope: "col" }, text));
  return make(
    "table",
    { class: "with-reasons" },
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows),
  );
}

/** Return a difference of memory, `+4.9`; an empty text for none. */
function added(gib: number): string {
  const text = gib.toFixed(1);
  return Number(text) === 0 ? "" : gib > 0 ? `+${text}` : text;
}

/** Return what the plan assumes, what the opposite changes, and the setting that says it. */
export function assumptions({ assumptions: assumed }: Plan): HTMLElement[] {
  if (assumed.length === 0) return [];
  const rows = assumed.map((row) =>
    make(
      "tr",
      {},
      heading(row.assumed, `otherwise: ${row.instead}${row.setting === "" ? "" : `, ${row.setting}`}`),
      make("td", {}, change(row.slower)),
      make("td", {}, added(row.more_memory_gib)),
    ),
  );
  return [make("h3", {}, "What the plan rests on"), tableOf(["assumed", "step", "GiB"], rows)];
}

/** Return the result of a search for a better order of ops; an empty text without one. */
export function searched({ searched: result, best }: Plan): string {
  if (result === null) return "";
  const [step, before] = [result.step_time_s, result.instead_of_s].map(figure);
  const behind = best !== null && result.step_time_s > best.step_time_s ? ", still slower than the plan" : "";
  return `For ${result.words} a search found an order of ops that takes ${step} s instead of ${before} s${behind} (${result.found_by}). No trainer flag can express this order; pipeplan plan -o NAME.searched.csv writes it.`;
}

/** Return the facts of one configuration as a list of terms and values. */
export function facts(candidate: Candidate): HTMLElement {
  const setting = (name: keyof Candidate["configuration"]) => String(candidate.configuration[name] ?? "");
  const step = candidate.error_bar;
  const share = step?.coverage ? `${(100 * step.coverage).toFixed(0)}% ` : "";
  const interval = step === null ? "" : ` (${share}interval ${step.step_time_s.map(figure).join("-")} s)`;
  const rows = [
    ["configuration", candidate.words],
    ["microbatches", `${setting("microbatches")} of ${countedAs(Number(setting("microbatch_size")), "sequence")}`],
    ["layers on each stage", candidate.layout],
    ["recomputation, offload", candidate.recompute],
    ["step", `${figure(candidate.step_time_s)} s${interval}`],
  ];
  return make(
    "dl",
    { class: "facts" },
    ...rows.flatMap(([term, text]) => [make("dt", {}, term), make("dd", {}, text)]),
  );
}

/** Return paragraphs about the accuracy of the prediction. */
export function trust(candidate: Candidate): HTMLElement[] {
  const bar = candidate.error_bar;
  const first =
    bar === null
      ? "There is no error bar."
      : `Most of ${bar.basis} took ${bar.low.toFixed(2)}-${bar.high.toFixed(2)} times the prediction.`;
  const kinds = new Map<string, string[]>();
  for (const [kind, from] of Object.entries(candidate.costs_from)) kinds.set(from, [...(kinds.get(from) ?? []), kind]);
  const origins = [...kinds].map(([from, names]) => `${from}: ${names.join(", ")}`);
  return [first, ...origins, ...candidate.assumed.map((text) => `assumed: ${text}`)].map((text) =>
    make("p", { class: "note" }, text),
  );
}

/** Return the numbers of configurations that the planner evaluated and ruled out. */
export function counted({ counts, seconds, complete }: Plan): string {
  const number = (value: number) => value.toLocaleString("en");
  const reached = complete ? "" : " or not reached within the budget";
  const estimates = `${countedAs(counts.estimated, "estimate")} in ${seconds.toFixed(1)} s`;
  return `${countedAs(counts.legal, "valid configuration")}: ${number(counts.over_memory)} exceed memory, ${number(counts.too_slow)} ruled out by bounds${reached}; ${estimates}.`;
}
