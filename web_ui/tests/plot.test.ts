import { describe, expect, test } from "vitest";
import { firstAbove, firstAtLeast, Memory, Plot } from "../src/plot.js";
import { plotOf, TWO_BY_TWO, viewOf } from "./made.js";

describe("searching sorted times", () => {
  const times = new Float64Array([1, 2, 2, 4]);

  test.each([
    [0, 0, 0],
    [1, 1, 0],
    [2, 3, 1],
    [3, 3, 3],
    [4, 4, 3],
    [5, 4, 4],
  ])("around %d", (value, above, atLeast) => {
    expect(firstAbove(times, value)).toBe(above);
    expect(firstAtLeast(times, value)).toBe(atLeast);
  });
});

describe("a plot", () => {
  test("refuses a view of another version", () => {
    expect(() => new Plot(viewOf(TWO_BY_TWO, { version: 2 }), 0)).toThrow("version 2");
  });

  test("names its ops as the notation does", () => {
    const ops = plotOf([...TWO_BY_TWO, [0, 9, 10, "F", -1]]);
    expect([0, 5, 8].map((bar) => ops.name(bar))).toEqual(["0F0", "1B0", "0F"]);
    expect(ops.number(8)).toBe("");
  });

  test("names a slice unless it is the first", () => {
    const bars = { ...viewOf(TWO_BY_TWO).bars, slice: [0, 1, 0, 0, 0, 0, 0, 0] };
    expect(plotOf(TWO_BY_TWO, { bars }).name(1)).toBe("0F1.1");
  });

  test("knows its shortest op; those that take no time do not count", () => {
    expect(
      plotOf([
        [0, 0, 0, "F", 0],
        [0, 0, 3, "F", 1],
        [0, 3, 5, "B", 0],
      ]).shortest,
    ).toBe(2);
  });

  test("finds what shows between two times", () => {
    const [track] = plotOf(TWO_BY_TWO).tracks[0];
    const shown = (from: number, to: number) => {
      const [first, stop] = track.between(from, to);
      return [...track.items.subarray(first, stop)];
    };
    expect(shown(0, 9)).toEqual([0, 1, 2, 3]);
    expect(shown(1.5, 4.5)).toEqual([1, 2]);
    expect(shown(2.5, 3.5)).toEqual([]);
  });

  test("does not miss a long op that began before a short one", () => {
    const [track] = plotOf([
      [0, 0, 10, "F", 0],
      [0, 1, 2, "F", 1],
      [0, 3, 4, "F", 2],
    ]).tracks[0];
    expect(track.between(9, 10)[0]).toBe(0);
  });

  test("puts messages into tracks of their own, after the others", () => {
    const parts = plotOf([
      [0, 0, 1, "SEND_F", 0],
      [0, 0, 2, "F", 0],
    ]).tracks[0].map((track) => track.part);
    expect(parts).toEqual([0, 3]);
  });
});

describe("memory", () => {
  const memory = new Memory({
    unit: "activations",
    offsets: [0, 3, 5],
    time: [0, 1, 4, 0, 2],
    level: [0, 2, 1, 0, 1],
    peak: [2, 1],
    limit: null,
  });

  test.each([
    [0, 0, 0],
    [0, 1, 1],
    [0, 3.9, 1],
    [0, 9, 2],
    [1, 1.9, 3],
    [1, -1, 3],
  ])("of lane %d at %d", (lane, time, step) => {
    expect(memory.stepAt(lane, time)).toBe(step);
  });

  test("of many lanes is shown for the first, the last, the fullest and the emptiest", () => {
    const many = { unit: "bytes", offsets: [], time: [], level: [], peak: [3, 5, 9, 1, 4, 2], limit: null } as const;
    expect(new Memory(many).lanesThatMatter()).toEqual([0, 2, 3, 5]);
    expect(memory.lanesThatMatter()).toEqual([0, 1]);
  });
});
