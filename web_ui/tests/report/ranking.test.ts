import { describe, expect, test } from "vitest";
import { freeLabels, front } from "../../src/report/front.js";
import {
  headlineWithin,
  initialSchedules,
  leastBound,
  ranked,
  SHORTEST_FIRST,
  type SortKey,
} from "../../src/report/ranking.js";
import { comparison, gib, row, SMALL } from "./fixtures.js";

const names = (limit: number | null, key: SortKey = "makespan", descending = false) =>
  ranked(SMALL, limit, { key, descending }).map(({ row: { schedule } }) => schedule);

describe("the order of rows", () => {
  test("is the requested one, and stable for equal rows", () => {
    expect(names(null)).toEqual(["zbv", "v-half", "1f1b", "v-min"]);
    expect(names(null, "peak")).toEqual(["v-min", "v-half", "zbv", "1f1b"]);
    expect(names(null, "peak", true)).toEqual(["zbv", "1f1b", "v-half", "v-min"]);
    expect(names(null, "schedule")).toEqual(["1f1b", "v-half", "v-min", "zbv"]);
    expect(names(null, "gap")).toEqual(["zbv", "v-half", "v-min", "1f1b"]);
  });

  test("has rows over the limit last", () => {
    expect(names(gib(20))).toEqual(["v-half", "v-min", "zbv", "1f1b"]);
    expect(names(gib(20), "peak", true)).toEqual(["v-half", "v-min", "zbv", "1f1b"]);
  });

  test("contains the index of each row's timeline", () => {
    expect(ranked(SMALL, gib(20), SHORTEST_FIRST).map(({ at }) => at)).toEqual([1, 3, 0, 2]);
  });
});

describe("the gap to a bound", () => {
  test("is relative to the bound of the placement", () => {
    const [zbv] = ranked(SMALL, null, SHORTEST_FIRST);
    expect(zbv.gap).toBeCloseTo(100 / 95 - 1);
    expect(leastBound(SMALL).schedule).toBe("1f1b");
  });

  test("is null over the limit, and never negative", () => {
    const over = ranked(SMALL, gib(20), SHORTEST_FIRST).filter(({ over }) => over);
    expect(over.map(({ gap }) => gap)).toEqual([null, null]);
    expect(ranked(comparison([row("x", 90 - 1e-12, 1)]), null, SHORTEST_FIRST)[0].gap).toBe(0);
  });
});

test("a peak equal to the limit fits", () => {
  expect(ranked(SMALL, gib(17) * (1 - 1e-12), SHORTEST_FIRST).filter(({ over }) => !over)).toHaveLength(2);
});

test("a schedule that exceeds the limit of a rank is over the comparison's own limit", () => {
  const compared = comparison([row("a", 100, 20, { fits: false }), row("b", 110, 20)], { limit: gib(24) });
  const over = (limit: number | null) => ranked(compared, limit, SHORTEST_FIRST).map((each) => each.over);
  expect(over(gib(24))).toEqual([false, true]);
  expect(over(null)).toEqual([false, false]);
});

describe("the sentence of a comparison", () => {
  test("is that of the comparison under its own limit", () => {
    expect(headlineWithin(SMALL, null)).toBe(SMALL.headline);
    expect(headlineWithin(comparison(SMALL.rows, { limit: gib(20) }), gib(20))).toBe(SMALL.headline);
  });

  test("names the fastest schedule under another limit, or the one that needs the least", () => {
    expect(headlineWithin(SMALL, gib(20))).toBe("v-half is the fastest that fits 20.0 GiB: 110 ms");
    expect(headlineWithin(SMALL, gib(10))).toBe(
      "No schedule fits 10.0 GiB: v-min, which needs the least, takes 14.0 GiB",
    );
    expect(headlineWithin(comparison(SMALL.rows, { limit: gib(20) }), null)).toBe("zbv is the fastest: 100 ms");
  });

  test("names the fastest of those that need more", () => {
    const rows = [
      ...SMALL.rows,
      row("seq1f1b", 105, 12, { needs: ["slices"] }),
      row("slimpipe", 103, 18, { needs: ["slices"] }),
    ];
    const more = comparison(rows);
    expect(headlineWithin(more, gib(20))).toBe(
      "v-half is the fastest that fits 20.0 GiB: 110 ms; with sequence slices, slimpipe takes 103 ms",
    );
    expect(headlineWithin(more, gib(13))).toBe(
      "No schedule that needs nothing fits 13.0 GiB; with sequence slices, seq1f1b takes 105 ms",
    );
  });

  test("uses activations without bytes", () => {
    const small = comparison([row("1f1b", 33, 0, { peak: 4.5 })], { unit: "", memory_unit: "activations" });
    expect(headlineWithin(small, 8)).toBe("1f1b is the fastest that fits 8 activations: 33");
  });
});

test("the fastest schedule that fits and a well-known one are drawn initially", () => {
  expect(initialSchedules(SMALL, null)).toEqual(["zbv", "1f1b"]);
  expect(initialSchedules(SMALL, gib(20))).toEqual(["v-half", "1f1b"]);
  expect(initialSchedules(comparison([row("1f1b", 1, 1), row("x", 2, 1)]), null)).toEqual(["1f1b", "x"]);
  expect(initialSchedules(comparison([row("x", 2, 1)]), null)).toEqual(["x"]);
});

test("the front contains the Pareto-optimal rows", () => {
  expect(front(SMALL.rows).map(({ schedule }) => schedule)).toEqual(["v-min", "v-half", "zbv"]);
});

describe("names of points", () => {
  const label = (text: string, x: number, y: number) => ({ text, x, y, width: 40 });

  test("move down to avoid overlaps, and are omitted if that is not enough", () => {
    const names = [label("a", 60, 30), label("b", 62, 35), label("c", 200, 95)];
    const placed = freeLabels(names, [label("tick", 90, 40)], 0, 100);
    expect(placed.map(({ text, x, y }) => [text, x, y])).toEqual([
      ["c", 200, 95],
      ["b", 62, 56],
    ]);
  });

  test("stay within the picture", () => {
    expect(freeLabels([label("a", 30, 30), label("b", 90, 99)], [], 0, 100)).toEqual([]);
  });
});
