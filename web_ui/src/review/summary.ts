/** Results of a review besides its findings: the estimate of a configuration, and the verified changes. */

import { make } from "../dom.js";
import { figure, percent } from "../format.js";
import type { Change, Missing, Question, Reviewed } from "./api.js";

const QUESTIONS: Readonly<Record<Question["question"], string>> = {
  starts: "Does it start",
  right: "Is it right",
  loses: "Where it loses",
  fits: "Does it fit",
};

/** Field of the form that states a missing fact; empty if only the text can. */
export function fieldOf({ give }: Missing): string {
  return give.replace(/^--/, "").replaceAll("-", "_");
}

/** Return how far each question was answered, and what was not read; `go` focuses the field that states a missing fact. */
export function questions(
  { questions, unknown, not_read: notRead }: Reviewed,
  labelOf: (field: string) => string,
  go: (field: string) => void,
): HTMLElement[] {
  const noteOf = (missing: Missing) => {
    const field = fieldOf(missing);
    if (field === "") return make("div", { class: "note" }, missing.sentence);
    const link = make("button", { type: "button", class: "link", "data-asks": field }, `state the ${labelOf(field)}`);
    link.addEventListener("click", () => go(field));
    return make("div", { class: "note" }, `${missing.sentence.replace(`: give ${missing.give}`, "")}: `, link);
  };
  const rows = questions.flatMap(({ question, judged, not_judged: unjudged, missing }) => [
    make("dt", {}, QUESTIONS[question]),
    make("dd", {}, `${judged} rules judged, ${unjudged} not judged`, ...missing.map(noteOf)),
  ]);
  const notes = [
    ...(unknown.length > 0 ? [`Unknown: ${unknown.join(", ")}.`] : []),
    ...(notRead.length > 0 ? [`Not read: ${notRead.join(", ")}.`] : []),
  ];
  return [
    make("h3", {}, "What was judged"),
    make("dl", { class: "facts" }, ...rows),
    ...notes.map((text) => make("p", { class: "note" }, text)),
  ];
}

/** Return the estimate as a list of facts, or the reason why there is none. */
export function estimate(reviewed: Reviewed): HTMLElement {
  if (reviewed.step_time_s === null) return make("p", { class: "note" }, `No estimate: ${reviewed.not_estimated}.`);
  const work = reviewed.work_by_rank_s ?? [];
  const mean = work.reduce((sum, time) => sum + time, 0) / Math.max(work.length, 1);
  const heaviest = reviewed.heaviest_rank ?? 0;
  const facts: [string, string][] = [["step", `${figure(reviewed.step_time_s)} s`]];
  if (reviewed.peak_memory_gib !== null && reviewed.memory_limit_gib !== null)
    facts.push([
      "peak memory",
      `${reviewed.peak_memory_gib.toFixed(1)} GiB of ${reviewed.memory_limit_gib.toFixed(1)}: ${reviewed.fit ?? ""}`,
    ]);
  if (work.length > 1) {
    facts.push(["heaviest rank", `${heaviest}, ${percent((work[heaviest] ?? 0) / mean - 1)} more work than the mean`]);
    facts.push(["bubble", `${percent(reviewed.bubble ?? 0)} of the step, over all ranks`]);
  }
  const list = facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return make(
    "div",
    {},
    make("dl", { class: "facts" }, ...list),
    ...reviewed.assumed.map((text) => make("p", { class: "note" }, `Assumed: ${text}.`)),
  );
}

/** Return the changes with their effects, in the order in which they are applied. */
export function changes(reviewed: Reviewed): HTMLElement[] {
  if (reviewed.changes.length === 0) return [];
  const items = reviewed.changes.map((change) =>
    make("li", {}, make("code", {}, wordsOf(change)), ` ${effectOf(change)}`),
  );
  const note =
    reviewed.unpatched === "" ? [] : [make("p", { class: "note" }, `Not in the patch: ${reviewed.unpatched}.`)];
  return [make("h3", {}, "What to change"), make("ol", { class: "changes" }, ...items), ...note];
}

/** Return the text of a change: the settings with their new values. */
export function wordsOf({ settings }: Change): string {
  return Object.entries(settings)
    .map(([key, value]) =>
      value === null || value === false
        ? `drop ${key}`
        : `${key} ${typeof value === "object" ? JSON.stringify(value) : value}`,
    )
    .join(", ");
}

function effectOf({ removes, step_time_s: step, gain, peak_memory_gib: peak }: Change): string {
  const parts = [`removes ${removes.join(" and ")}`];
  if (step !== null) parts.push(`step ${figure(step)} s${gain === null || gain === 0 ? "" : ` (${percent(-gain)})`}`);
  if (peak !== null) parts.push(`peak ${peak.toFixed(1)} GiB`);
  return parts.join("; ");
}
