import { describe, expect, test } from "vitest";
import { barsOf } from "../src/app/bars.js";

describe("bars of one column", () => {
  test("have lengths proportional to their times", () => {
    expect(barsOf([50, 100, 75]).map(({ share }) => share)).toEqual([0.5, 1, 0.75]);
  });

  test("reserve the same width for every number, so that a longer time has a longer bar", () => {
    const bars = barsOf([99.9, 100, 1234.56]);
    expect(bars.map(({ text }) => text)).toEqual(["100", "100", "1,235"]);
    expect(new Set(bars.map(({ characters }) => characters))).toEqual(new Set([5]));
  });

  test("are empty where no time is positive", () => {
    expect(barsOf([0, 0]).map(({ share }) => share)).toEqual([0, 0]);
    expect(barsOf([])).toEqual([]);
  });
});
