import { describe, expect, test } from "vitest";
import { canOverlay, comfortableHeight, HEADER, layOut, MEMORY_HEADER } from "../src/layout.js";
import { plotOf, TWO_BY_TWO } from "./fixtures.js";

const MEMORY = {
  unit: "activations",
  offsets: [0, 1, 2],
  time: [0, 0],
  level: [1, 1],
  peak: [1, 1],
  limit: null,
} as const;
const STACKED = { layout: "stacked", memory: true, tall: 1 } as const;
const OVERLAID = { ...STACKED, layout: "overlaid" } as const;
const one = plotOf(TWO_BY_TWO);
const other = plotOf(TWO_BY_TWO, { title: "other" }, [], 1);

describe("a stacked layout", () => {
  test("each plot has its title and below it its lanes, one after another", () => {
    const { blocks, rows, height } = layOut([one, other], STACKED, 300);
    expect(blocks.map(({ plots }) => plots)).toEqual([[one], [other]]);
    expect(rows.map(({ plot, lane }) => [plot.index, lane])).toEqual([
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
    ]);
    rows.slice(1).forEach((row, at) => {
      expect(row.top).toBeGreaterThanOrEqual(rows[at].top + rows[at].height);
    });
    expect(rows[0].top).toBe(HEADER);
    expect(height).toBeGreaterThan(rows[3].top + rows[3].height);
  });

  test("fills the window with lanes between their minimum and maximum height", () => {
    const heights = [0, 150, 300, 5000].map((room) => layOut([one], STACKED, room).laneHeight);
    expect(heights[0]).toBe(9);
    expect(heights[3]).toBe(42);
    expect([...heights].sort((low, high) => low - high)).toEqual(heights);
  });

  test("needs no scrolling at the comfortable height", () => {
    const height = comfortableHeight([one, other], STACKED);
    expect(layOut([one, other], STACKED, height).height).toBeLessThanOrEqual(height);
  });

  test("stretches lanes by a factor", () => {
    expect(layOut([one], { ...STACKED, tall: 2 }, 5000).laneHeight).toBe(84);
  });

  test("gives room to lanes that are too low to read before curves", () => {
    const full = plotOf(TWO_BY_TWO, { memory: MEMORY });
    const { laneHeight, memories, height } = layOut([full, full, full, full], STACKED, 600);
    expect(laneHeight).toBe(18);
    expect(memories[0].height).toBeGreaterThanOrEqual(40);
    expect(height).toBeLessThanOrEqual(600);
  });

  test("places memory below its lanes, unless it is off or unknown", () => {
    const full = plotOf(TWO_BY_TWO, { memory: MEMORY });
    const { memories, rows } = layOut([full], STACKED, 300);
    const last = rows[rows.length - 1];
    expect(memories.map(({ top }) => top)).toEqual([last.top + last.height + MEMORY_HEADER]);
    expect(layOut([full], { ...STACKED, memory: false }, 300).memories).toEqual([]);
    expect(layOut([one], STACKED, 300).memories).toEqual([]);
  });
});

describe("an overlaid layout", () => {
  test("has one lane for the same rank of all plots", () => {
    const { blocks, rows, laneHeight, rowOf } = layOut([one, other], OVERLAID, 300);
    expect(blocks).toHaveLength(1);
    for (const lane of [0, 1]) {
      const [upper, lower] = [one, other].map((plot) => rowOf.get(plot)?.[lane]);
      expect(lower?.top).toBeCloseTo((upper?.top ?? 0) + (upper?.height ?? 0));
      expect((upper?.height ?? 0) + (lower?.height ?? 0)).toBeLessThan(laneHeight);
    }
    expect(rows).toHaveLength(4);
  });

  test("requires several plots with the same ranks", () => {
    const three = plotOf([...TWO_BY_TWO, [2, 0, 1, "F", 0]], {}, [], 1);
    expect(canOverlay([one, other])).toBe(true);
    expect(canOverlay([one])).toBe(false);
    expect(canOverlay([one, three])).toBe(false);
    expect(layOut([one, three], OVERLAID, 300).blocks).toHaveLength(2);
  });
});
