/** Comparison of one op in the plan and in the run, as a sentence. */

import { make } from "../dom.js";
import { change, Times } from "../format.js";
import type { Plot } from "../plot.js";
import { findBars, parseQuery, sameBar } from "../search.js";

/** Return the bars of an op in the plan and in the run; null if one of them lacks the op. */
export function placesOf(plan: Plot, run: Plot, view: number, name: string): readonly [number, number] | null {
  const own = view === plan.index ? plan : run;
  const query = parseQuery(name);
  const matches = query === null ? [] : findBars([own], query);
  const bar = matches.find((match) => own.name(match.bar) === name)?.bar;
  if (bar === undefined) return null;
  const same = sameBar(own, bar, own === plan ? run : plan);
  if (same < 0) return null;
  return own === plan ? [bar, same] : [same, bar];
}

/** Return `3B7 on rank 3 took 12.4 ms, 1.24 times the planned 10.0 ms (+24.0%), and started 3.1 ms later than planned.` */
export function sentenceOf(plan: Plot, run: Plot, [planned, measured]: readonly [number, number]): string {
  const took = run.end[measured] - run.start[measured];
  const should = plan.end[planned] - plan.start[planned];
  const later = run.start[measured] - plan.start[planned];
  const ops = Times.of([took, should], run.view.unit);
  const where = run.view.lanes.label[run.lane[measured]];
  const ratio = should > 0 ? `, ${(took / should).toFixed(2)} times the planned` : "; planned were";
  const more = should > 0 ? ` (${change(took / should - 1)})` : "";
  return `${run.name(measured)} on ${where} took ${ops.text(took)}${ratio} ${ops.text(should)}${more}, and ${startOf(later, run)}.`;
}

function startOf(later: number, run: Plot): string {
  const times = Times.of([later], run.view.unit);
  if (Math.abs(later) <= 1e-9 * run.view.makespan) return "started as planned";
  return `started ${times.text(Math.abs(later))} ${later > 0 ? "later" : "earlier"} than planned`;
}

/** The line below the table with the sentence. */
export class OpPair {
  readonly element = make("p", { class: "pr-op", role: "status" });

  constructor(
    private readonly plan: Plot,
    private readonly run: Plot,
  ) {
    this.show(null);
  }

  show(op: { readonly view: number; readonly name: string } | null): void {
    const places = op === null ? null : placesOf(this.plan, this.run, op.view, op.name);
    this.element.textContent =
      places === null
        ? "Click an op to compare its planned and measured times, and to see what delayed it."
        : sentenceOf(this.plan, this.run, places);
  }
}
