import { describe, expect, test } from "vitest";
import { firstAbove, firstAtLeast, Memory, Plot } from "../src/plot.js";
import { plotOf, TWO_BY_TWO, viewOf } from "./fixtures.js";

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

  test("names its ops in the op notation", () => {
    const ops = plotOf([...TWO_BY_TWO, [0, 9, 10, "F", -1]]);
    expect([0, 5, 8].map((bar) => ops.name(bar))).toEqual(["0F0", "1B0", "0F"]);
    expect(ops.number(8)).toBe("");
  });

  test("includes the slice in a name unless it is the first", () => {
    const bars = { ...viewOf(TWO_BY_TWO).bars, slice: [0, 1, 0, 0, 0, 0, 0, 0] };
    expect(plotOf(TWO_BY_TWO, { bars }).name(1)).toBe("0F1.1");
  });

  test("has a shortest op, which ignores ops of zero duration", () => {
    expect(
      plotOf([
        [0, 0, 0, "F", 0],
        [0, 0, 3, "F", 1],
        [0, 3, 5, "B", 0],
      ]).shortest,
    ).toBe(2);
  });

  test("returns the bars that are visible between two times", () => {
    const [track] = plotOf(TWO_BY_TWO).tracks[0];
    const visible = (from: number, to: number) => {
      const [first, stop] = track.between(from, to);
      return [...track.items.subarray(first, stop)];
    };
    expect(visible(0, 9)).toEqual([0, 1, 2, 3]);
    expect(visible(1.5, 4.5)).toEqual([1, 2]);
    expect(visible(2.5, 3.5)).toEqual([]);
  });

  test("includes a long op that begins before a short one", () => {
    const [track] = plotOf([
      [0, 0, 10, "F", 0],
      [0, 1, 2, "F", 1],
      [0, 3, 4, "F", 2],
    ]).tracks[0];
    expect(track.between(9, 10)[0]).toBe(0);
  });

  test("puts messages into separate tracks, after the others", () => {
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

  test("highlights the first, the last, the fullest and the emptiest of many lanes", () => {
    const many = { unit: "bytes", offsets: [], time: [], level: [], peak: [3, 5, 9, 1, 4, 2], limit: null } as const;
    expect(new Memory(many).lanesThatMatter()).toEqual([0, 2, 3, 5]);
    expect(memory.lanesThatMatter()).toEqual([0, 1]);
  });
});
