import { describe, expect, test } from "vitest";
import { drawCurveOf, drawCurves, highestLevel } from "../src/curves.js";
import { Memory } from "../src/plot.js";
import { frameOf, plotOf, Recorder, TWO_BY_TWO } from "./fixtures.js";

const MEMORY = {
  unit: "activations",
  offsets: [0, 4, 7],
  time: [0, 1, 6, 9, 0, 1, 4],
  level: [1, 2, 1, 0, 0, 1, 0],
  peak: [2, 1],
  limit: [3, 3],
} as const;

function recorded(memory: typeof MEMORY | null): Recorder {
  const surface = new Recorder();
  drawCurves(surface, frameOf([plotOf(TWO_BY_TWO, { memory })]));
  return surface;
}

describe("memory curves", () => {
  test("reach up to peaks and limits", () => {
    expect(highestLevel(new Memory(MEMORY))).toBe(3);
    expect(highestLevel(new Memory({ ...MEMORY, limit: null }))).toBe(2);
  });

  test("are labelled with their peaks if there are few ranks", () => {
    const { texts, lines } = recorded(MEMORY);
    expect(texts).toEqual(
      expect.arrayContaining(["memory (activations)", "rank 0: peak 2", "rank 1: peak 1", "limit 3"]),
    );
    expect(lines.filter(({ stroke }) => ["#010101", "#020202"].includes(stroke))).toHaveLength(2);
  });

  test("have one dashed line for the limit of all ranks", () => {
    const dashed = recorded(MEMORY).lines.filter(({ dash, points }) => dash.length > 0 && points[2] > 900);
    expect(dashed).toHaveLength(1);
  });

  test("are absent if memory is unknown", () => {
    expect(recorded(null).lines).toEqual([]);
  });

  test("are steps: each corner keeps the time or the level of the one before", () => {
    const surface = new Recorder();
    drawCurveOf(surface, frameOf([plotOf(TWO_BY_TWO, { memory: MEMORY })]), 0, 0);
    const { points } = surface.lines[0];
    expect(points).toHaveLength(2 * 8);
    for (let at = 2; at < points.length; at += 2) {
      expect(points[at] === points[at - 2] || points[at + 1] === points[at - 1]).toBe(true);
    }
  });

  test("keep the highest and the lowest level of a pixel", () => {
    const steps = 2000;
    const memory = {
      unit: "activations",
      offsets: [0, steps, steps],
      time: Array.from({ length: steps }, (_, at) => (9 * at) / steps),
      level: Array.from({ length: steps }, (_, at) => (at === 777 ? 5 : at % 2)),
      peak: [5, 0],
      limit: null,
    } as const;
    const surface = new Recorder();
    const frame = frameOf([plotOf(TWO_BY_TWO, { memory })], 300);
    drawCurveOf(surface, frame, 0, 0);
    const [panel] = frame.content.memories;
    const heights = surface.lines[0].points.filter((_, at) => at % 2 === 1);
    expect(surface.lines[0].points.length).toBeLessThan(2 * 5 * 300);
    expect(Math.max(...heights) - Math.min(...heights)).toBeCloseTo(panel.height / 1.08);
  });
});
