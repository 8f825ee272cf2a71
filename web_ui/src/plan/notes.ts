/** Evidence for a plan: sensitivity to its inputs, errors of similar predictions, assumptions. */

import { make } from "../dom.js";
import { countedAs, figure } from "../format.js";
import { scroller } from "../scroller.js";
import type { Candidate, Plan } from "./api.js";

export function sensitivity(plan: Plan): HTMLElement[] {
  if (plan.sensitivity.length === 0) return [];
  const rows = plan.sensitivity.map((each) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, each.factor === 1 ? each.input : `${each.input} \u00d7 ${each.factor}`),
      make("td", {}, figure(each.step_time)),
      make("td", { class: "why" }, each.changes ? each.instead : "unchanged"),
    ),
  );
  const head = ["changed input", "step, s", "best plan"].map((text) => make("th", { scope: "col" }, text));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  return [make("h3", {}, "What would change the plan"), scroller("what would change the plan", table, "sensitivity")];
}

/** Result of a search for a better order of ops; empty without one. */
export function searched({ searched: found, best }: Plan): string {
  if (found === null) return "";
  const [step, before] = [found.step_time_s, found.instead_of_s].map(figure);
  const behind = best !== null && found.step_time_s > best.step_time_s ? ", still slower than the plan" : "";
  return `For ${found.words} a search found an order of ops that takes ${step} s instead of ${before} s${behind} (${found.found_by}). No trainer flag can express this order; pipeplan plan -o NAME.searched.csv writes it.`;
}

/** Facts of one configuration, as terms with what they are. */
export function facts(candidate: Candidate): HTMLElement {
  const told = (name: keyof Candidate["configuration"]) => String(candidate.configuration[name] ?? "");
  const step = candidate.error_bar;
  const share = step?.coverage ? `${(100 * step.coverage).toFixed(0)}% ` : "";
  const interval = step === null ? "" : ` (${share}interval ${step.step_time_s.map(figure).join("-")} s)`;
  const rows = [
    ["configuration", candidate.words],
    ["microbatches", `${told("microbatches")} of ${countedAs(Number(told("microbatch_size")), "sequence")}`],
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

/** Accuracy of the prediction. */
export function trust(candidate: Candidate): HTMLElement[] {
  const bar = candidate.error_bar;
  const first =
    bar === null
      ? "No published run is similar enough for an error bar."
      : `The nearest published runs took ${bar.low.toFixed(2)}-${bar.high.toFixed(2)} times the prediction: ${bar.runs.slice(0, 4).join(", ")}.`;
  const kinds = new Map<string, string[]>();
  for (const [kind, from] of Object.entries(candidate.costs_from)) kinds.set(from, [...(kinds.get(from) ?? []), kind]);
  const origins = [...kinds].map(([from, names]) => `${from}: ${names.join(", ")}`);
  return [first, ...origins, ...candidate.assumed.map((text) => `assumed: ${text}`)].map((text) =>
    make("p", { class: "note" }, text),
  );
}

/** Counts of the search for the plan. */
export function counted({ counts, seconds, complete }: Plan): string {
  const number = (value: number) => value.toLocaleString("en");
  const reached = complete ? "" : " or not reached within the budget";
  const estimates = `${countedAs(counts.estimated, "estimate")} in ${seconds.toFixed(1)} s`;
  return `${countedAs(counts.legal, "valid configuration")}: ${number(counts.over_memory)} exceed memory, ${number(counts.too_slow)} ruled out by bounds${reached}; ${estimates}.`;
}
