import { describe, expect, test } from "vitest";
import { Lines } from "../src/app/lines.js";
import { settingsOf } from "../src/app/values.js";
import type { Candidate, Plan } from "../src/plan/api.js";
import { shortened, timeOf } from "../src/plan/bars.js";
import { rowsOf, whyChosen } from "../src/plan/candidates.js";
import { prediction } from "../src/plan/flags.js";
import { counted, searched } from "../src/plan/notes.js";
import { standing } from "../src/plan/table.js";
import { axisOf, staircase } from "../src/scatter.js";

function candidate(tensor: number, lost = ""): Candidate {
  return {
    words: `tp${tensor}`,
    layout: "even",
    recompute: "none",
    document: {},
    configuration: { tensor },
    step_time_s: tensor,
    peak_memory_gib: 80 / tensor,
    breakdown: { compute_s: 2, bubble_s: 1 },
    memory_breakdown_by_rank_gib: [],
    tokens_per_s: 1,
    mfu: 0.4,
    error_bar: null,
    costs_from: {},
    assumed: [],
    ...(lost === "" ? {} : { lost_because: lost }),
  } as unknown as Candidate;
}

/** Plan with the fields that the page reads. */
const PLAN = {
  heading: "",
  miss: "",
  objective: "step-time",
  memory_limit_gib: 72,
  best: candidate(1),
  runners_up: [candidate(2, "slower"), candidate(4, "slower still")],
  front: [candidate(1), candidate(4), candidate(8)],
  closest_miss: null,
  searched: null,
  sensitivity: [],
  counts: { legal: 1234, over_memory: 1, too_slow: 2, estimated: 3 },
  seconds: 1.25,
  complete: false,
} as unknown as Plan;

describe("the rows of the candidate table", () => {
  test("contain each configuration once, the best first", () => {
    const rows = rowsOf(PLAN);
    expect(rows.map((row) => [row.candidate.words, row.role, row.onFront])).toEqual([
      ["tp1", "best", true],
      ["tp2", "runner-up", false],
      ["tp4", "runner-up", true],
      ["tp8", "front", true],
    ]);
  });

  test("are the closest miss if no configuration fits", () => {
    const rows = rowsOf({
      ...PLAN,
      best: null,
      runners_up: [],
      front: [],
      closest_miss: candidate(8),
    } as unknown as Plan);
    expect(rows.map((row) => row.role)).toEqual(["closest"]);
  });
});

describe("the sentence on the choice", () => {
  const plan = (best: Candidate, others: Candidate[], fields: Partial<Plan> = {}) =>
    ({ ...PLAN, best, front: [], runners_up: others, ...fields }) as unknown as Plan;

  test("says that the chosen one is the fastest that fits, and what does not fit", () => {
    expect(whyChosen(plan(candidate(2), [candidate(4)]))).toBe(
      "The chosen configuration is the fastest of those that fit.",
    );
    expect(whyChosen(plan(candidate(2), [candidate(1)]))).toBe(
      "The chosen configuration is the fastest of those that fit. tp1 would be 50.0% faster, but needs 80.0 of 72.0 GiB.",
    );
  });

  test("says why it is not the fastest", () => {
    const faster = candidate(2, "2.0% faster, but unusual");
    expect(whyChosen(plan(candidate(4), [faster], { simpler_because: "unusual" }))).toBe(
      "The chosen configuration is not the fastest: tp2 takes 2.000 s, 50.0% less, but unusual.",
    );
    expect(whyChosen(plan(candidate(4), [faster], { simpler_because: "", objective: "cost" }))).toContain(
      "50.0% less, but the plan minimizes cost.",
    );
  });

  test("is empty if nothing fits", () => {
    expect(whyChosen({ ...PLAN, best: null } as unknown as Plan)).toBe("");
  });
});

test("a row says what it is and why it lost", () => {
  expect(rowsOf(PLAN).map(standing)).toEqual([
    "chosen; on the Pareto front",
    "slower",
    "slower still; on the Pareto front",
    "on the Pareto front",
  ]);
});

test("flags come with the prediction for their trainer", () => {
  const figures = { configuration: "tp8 dp8, no pipeline", step_time_s: 14.6, peak_memory_gib: 67.18, fit: "fits" };
  const flags = { text: "", files: {}, warnings: [], release: "0.6", software: "megatron-bridge-26.04", ...figures };
  expect(prediction("bridge", flags as never)).toBe(
    "bridge 0.6: tp8 dp8, no pipeline; step 14.60 s, peak memory 67.2 GiB, fits",
  );
  const unsupported = { ...flags, release: "", step_time_s: null };
  expect(prediction("pipeplan", unsupported as never)).toContain("does not run this schedule");
});

test("lines are complete, wherever a response is split", () => {
  const lines = new Lines();
  expect([lines.add('{"a"'), lines.add(':1}\n{"b":2}\n\n{'), lines.add("}\n")]).toEqual([
    [],
    ['{"a":1}', '{"b":2}'],
    ["{}"],
  ]);
});

describe("the axes of a front", () => {
  test("show every value, with round ones between", () => {
    const axis = axisOf([9.2, 71.6], 100, 500);
    expect(axis.place(9.2)).toBeGreaterThan(100);
    expect(axis.place(71.6)).toBeLessThan(500);
    expect(axis.ticks.map((value) => axis.text(value))).toEqual(["20", "40", "60"]);
  });

  test("have room for a single value", () => {
    const axis = axisOf([6.5], 0, 100);
    expect(axis.place(6.5)).toBeCloseTo(50);
    expect(axis.ticks.length).toBeGreaterThan(1);
  });

  test("write small steps with their digits", () => {
    const axis = axisOf([0.41, 0.47], 0, 100);
    expect(axis.ticks.map((value) => axis.text(value))).toEqual(["0.42", "0.44", "0.46"]);
  });
});

test("a front is a staircase from little memory to much", () => {
  expect(
    staircase([
      [30, 50],
      [10, 90],
    ]),
  ).toBe("M10.0 90.0H30.0V50.0");
});

test("time is divided by its use", () => {
  expect(timeOf(candidate(1))).toEqual({ compute: 2, bubble: 1 });
});

test("many ranks are shortened to the first and the last ones", () => {
  const stacks = Array.from({ length: 64 }, (_, rank) => ({ label: String(rank), parts: {} }));
  const labels = shortened(stacks).map((stack) => stack?.label ?? null);
  expect([labels.length, labels[15], labels[16], labels[17]]).toEqual([33, "15", null, "48"]);
  expect(shortened(stacks.slice(0, 32))).toHaveLength(32);
});

test("the counts of a plan are a sentence", () => {
  expect(counted(PLAN)).toBe(
    "1,234 valid configurations: 1 exceed memory, 2 ruled out by bounds or not reached within the budget; 3 estimates in 1.3 s.",
  );
});

test("the result of a search for a better order is a sentence", () => {
  expect(searched(PLAN)).toBe("");
  const result = { words: "tp2 pp4", step_time_s: 1.23456, instead_of_s: 1.25, found_by: "annealing" };
  expect(searched({ ...PLAN, searched: result } as Plan)).toContain(
    "For tp2 pp4 a search found an order of ops that takes 1.235 s instead of 1.250 s, still slower than the plan",
  );
  expect(searched({ ...PLAN, best: candidate(2), searched: result } as Plan)).not.toContain("still slower");
});

test("fixed settings are sent as pairs, and a size with a unit as text", () => {
  const field = (name: string, kind: "pairs" | "size") => ({
    name,
    kind,
    title: name,
    group: "",
    unit: "",
    help: "",
    suggestions: [],
    default: "",
    hint: "",
    choices: [],
    slider: null,
    follows: [],
  });
  const fields = [field("fix", "pairs"), field("memory_limit", "size")];
  expect(settingsOf({ fix: " tp=4,8  pp=2 ", memory_limit: "72GiB" }, fields)).toEqual({
    fix: ["tp=4,8", "pp=2"],
    memory_limit: "72GiB",
  });
  expect(settingsOf({ memory_limit: "7e10" }, fields)).toEqual({ memory_limit: 7e10 });
});
