import { describe, expect, test } from "vitest";
import { Picks } from "../../src/picks.js";
import { Plot } from "../../src/plot.js";
import type { DifferenceRow } from "../../src/records.js";
import { byEffect, orderedKinds } from "../../src/report/difference_table.js";
import { placesOf, sentenceOf } from "../../src/report/op_pair.js";
import { INITIAL } from "../../src/state.js";
import { TWO_BY_TWO, TWO_BY_TWO_LINKS, viewOf } from "../fixtures.js";

const row = (kind: string, stage: number, ratio: number | null, effect: number): DifferenceRow => ({
  texts: [],
  notation: `${stage}${kind}`,
  kind,
  stage,
  ops: 2,
  planned: 1,
  measured: ratio ?? 1,
  ratio,
  effect,
});

const ROWS = [row("F", 0, 1.1, 0.5), row("F", 1, null, 0), row("B", 0, 0.9, -2)];
const names = (rows: readonly DifferenceRow[]) => rows.map(({ notation }) => notation);

describe("kinds of ops", () => {
  test("are initially sorted by the size of their effect", () => {
    expect(names(byEffect(ROWS))).toEqual(["0B", "0F", "1F"]);
  });

  test("are sorted by the selected column", () => {
    expect(names(orderedKinds(ROWS, { key: "effect", descending: false }))).toEqual(["0B", "1F", "0F"]);
    expect(names(orderedKinds(ROWS, { key: "ratio", descending: true }))).toEqual(["0F", "0B", "1F"]);
    expect(names(orderedKinds(ROWS, { key: "kind", descending: false }))).toEqual(["0B", "0F", "1F"]);
  });
});

describe("an op in the plan and in the run", () => {
  // Everything starts half a unit later, and the second backward of the second stage takes one more.
  const ops = TWO_BY_TWO.map(
    ([lane, start, end, kind, microbatch], at) =>
      [lane, start + 0.5, end + (at === 7 ? 1.5 : 0.5), kind, microbatch] as const,
  );
  const plan = new Plot(viewOf(TWO_BY_TWO, {}, TWO_BY_TWO_LINKS), 0);
  const run = new Plot(viewOf([...ops].reverse(), { source: "measured" }), 1);

  test("has the same bars from either view", () => {
    expect(placesOf(plan, run, 0, "1B1")).toEqual([7, 0]);
    expect(placesOf(plan, run, 1, "1B1")).toEqual([7, 0]);
    expect(placesOf(plan, run, 0, "5B1")).toBeNull();
    expect(placesOf(plan, run, 0, "")).toBeNull();
  });

  test("is described in a sentence", () => {
    expect(sentenceOf(plan, run, [7, 0])).toBe(
      "1B1 on rank 1 took 3 ms, 1.50 times the planned 2 ms (+50.0%), and started 500 us later than planned.",
    );
    expect(sentenceOf(plan, plan, [7, 7])).toBe(
      "1B1 on rank 1 took 2 ms, 1.00 times the planned 2 ms (0.0%), and started as planned.",
    );
  });

  test("is highlighted in both when it is selected, each with the chain that delayed it", () => {
    const picks = new Picks();
    picks.renew([], [plan, run], { ...INITIAL, op: { view: 0, name: "1B1" } });
    const [twin] = picks.lit.twins;
    expect(twin.op).toEqual({ view: 1, bar: 0 });
    expect(new Set(twin.chain.map(({ view }) => view))).toEqual(new Set([1]));
    picks.renew([], [plan, plan], { ...INITIAL, op: { view: 0, name: "1B1" } });
    expect(picks.lit.twins).toEqual([]);
  });
});
