/** What the choice rests on: what would change it, how far such predictions were off, what was assumed. */

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
      make("td", { class: "why" }, each.changes ? `changes to ${each.instead}` : "stays"),
    ),
  );
  const head = ["if it were", "step, s", "the choice"].map((text) => make("th", { scope: "col" }, text));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  return [
    make("h3", {}, "What would change the choice"),
    scroller("what would change the choice", table, "sensitivity"),
  ];
}

/** What a search for a better order of ops found; empty where it found none. */
export function searched({ searched: found, best }: Plan): string {
  if (found === null) return "";
  const [step, before] = [found.step_time_s, found.instead_of_s].map(figure);
  const behind = best !== null && found.step_time_s > best.step_time_s ? ", still longer than the choice takes" : "";
  return `For ${found.words} a search found an order of ops that takes ${step} s in place of ${before} s${behind} (${found.found_by}). No flags say it; pipeplan plan -o NAME.searched.csv writes it.`;
}

/** Facts of one configuration, as terms with what they are. */
export function facts(candidate: Candidate): HTMLElement {
  const told = (name: keyof Candidate["configuration"]) => String(candidate.configuration[name] ?? "");
  const step = candidate.error_bar;
  const likely = step === null ? "" : ` (${step.step_time_s.map(figure).join(" to ")} s likely)`;
  const rows = [
    ["configuration", candidate.words],
    ["microbatches", `${told("microbatches")} of ${countedAs(Number(told("microbatch_size")), "sequence")}`],
    ["layers on each stage", candidate.layout],
    ["recomputed or moved", candidate.recompute],
    ["step", `${figure(candidate.step_time_s)} s${likely}`],
  ];
  return make(
    "dl",
    { class: "facts" },
    ...rows.flatMap(([term, text]) => [make("dt", {}, term), make("dd", {}, text)]),
  );
}

/** How sure it is. */
export function trust(candidate: Candidate): HTMLElement[] {
  const bar = candidate.error_bar;
  const first =
    bar === null
      ? "No published run is near enough to say how far this is off."
      : `The nearest published runs took ${bar.low.toFixed(2)} to ${bar.high.toFixed(2)} times the prediction: ${bar.runs.slice(0, 4).join(", ")}.`;
  const kinds = new Map<string, string[]>();
  for (const [kind, from] of Object.entries(candidate.costs_from)) kinds.set(from, [...(kinds.get(from) ?? []), kind]);
  const origins = [...kinds].map(([from, names]) => `${from}: ${names.join(", ")}`);
  return [first, ...origins, ...candidate.assumed.map((text) => `assumed: ${text}`)].map((text) =>
    make("p", { class: "note" }, text),
  );
}

/** How it was found. */
export function counted({ counts, seconds, complete }: Plan): string {
  const number = (value: number) => value.toLocaleString("en");
  const reached = complete ? "" : " or not reached within the budget";
  const estimates = `${countedAs(counts.estimated, "estimate")} in ${seconds.toFixed(1)} s`;
  return `${countedAs(counts.legal, "legal configuration")}: ${number(counts.over_memory)} over memory, ${number(counts.too_slow)} too slow by their bounds${reached}; ${estimates}.`;
}
