import { describe, expect, test } from "vitest";
import { boxOf, drawHighlights, type Lit } from "../src/highlight.js";
import { frameOf, plotOf, Recorder, TWO_BY_TWO, TWO_BY_TWO_LINKS } from "./fixtures.js";

const NOTHING: Lit = {
  lane: null,
  hovered: null,
  focused: null,
  selected: null,
  chain: [],
  twins: [],
  critical: [],
  matches: [],
  current: null,
  ghost: null,
  band: null,
};
const frame = frameOf([plotOf(TWO_BY_TWO, {}, TWO_BY_TWO_LINKS)], 1014);
const bar = (at: number) => ({ view: 0, bar: at });

function lit(change: Partial<Lit>): Recorder {
  const surface = new Recorder();
  drawHighlights(surface, frame, { ...NOTHING, ...change });
  return surface;
}

describe("the position of a bar", () => {
  test("follows from its times and its lane", () => {
    const box = boxOf(frame, bar(5));
    expect(box?.x).toBeCloseTo(300);
    expect(box?.width).toBeCloseTo(200);
    expect(box?.y).toBeGreaterThan(boxOf(frame, bar(0))?.y ?? Number.POSITIVE_INFINITY);
  });

  test("is null if the bar is not visible", () => {
    const zoomed = frameOf(frame.plots, 1014, { span: [0, 1] });
    expect(boxOf(zoomed, bar(3))).toBeNull();
    expect(boxOf(zoomed, bar(0))).not.toBeNull();
  });
});

describe("highlights", () => {
  test("are empty without a pick", () => {
    const { lines, outlines, rects } = lit({});
    expect([...lines, ...outlines, ...rects]).toEqual([]);
  });

  test("outline a hovered op, with lines to its dependencies and dependents on other ranks", () => {
    const { lines, outlines } = lit({ hovered: bar(4) });
    expect(lines.map(({ points }) => [points[0] + 0.5, points[2] - 0.5])).toEqual([[200, 200]]);
    expect(outlines).toHaveLength(2);
  });

  test("colour the ops of a path over the dimmed others, with lines between ranks only", () => {
    const { lines, rects, texts } = lit({ critical: [[0, 4, 5, 6, 7, 3].map(bar)] });
    expect(lines).toHaveLength(2); // 0F0 to 1F0 and 1B1 to 0B1
    expect(rects.filter(({ fill }) => fill === "#ffffff")).toHaveLength(2); // a veil over each lane
    expect(texts).toEqual(["0F0", "1F0", "1B0", "1F1", "1B1", "0B1"]);
  });

  test("outline the matches of a search, the current one twice", () => {
    expect(lit({ matches: [bar(0), bar(4)] }).outlines).toHaveLength(2);
    expect(lit({ matches: [bar(0), bar(4)], current: bar(4) }).outlines).toHaveLength(3);
  });
});
