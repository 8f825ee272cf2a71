import { describe, expect, test } from "vitest";
import { boxOf, drawHighlights, type Lit } from "../src/highlight.js";
import { frameOf, plotOf, Recorder, TWO_BY_TWO, TWO_BY_TWO_LINKS } from "./made.js";

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

describe("where a bar stands", () => {
  test("goes by its times and its lane", () => {
    const box = boxOf(frame, bar(5));
    expect(box?.x).toBeCloseTo(300);
    expect(box?.width).toBeCloseTo(200);
    expect(box?.y).toBeGreaterThan(boxOf(frame, bar(0))?.y ?? Number.POSITIVE_INFINITY);
  });

  test("is nowhere while it does not show", () => {
    const zoomed = frameOf(frame.plots, 1014, { span: [0, 1] });
    expect(boxOf(zoomed, bar(3))).toBeNull();
    expect(boxOf(zoomed, bar(0))).not.toBeNull();
  });
});

describe("what is lit", () => {
  test("is nothing as long as nothing is picked", () => {
    const { lines, outlines, rects } = lit({});
    expect([...lines, ...outlines, ...rects]).toEqual([]);
  });

  test("a hovered op, with lines to the ops of other ranks that it waits for and that wait for it", () => {
    const { lines, outlines } = lit({ hovered: bar(4) });
    expect(lines.map(({ points }) => [points[0] + 0.5, points[2] - 0.5])).toEqual([[200, 200]]);
    expect(outlines).toHaveLength(2);
  });

  test("a path: its ops in colour over all others dimmed, with lines between ranks alone", () => {
    const { lines, rects, texts } = lit({ critical: [[0, 4, 5, 6, 7, 3].map(bar)] });
    expect(lines).toHaveLength(2); // 0F0 to 1F0 and 1B1 to 0B1
    expect(rects.filter(({ fill }) => fill === "#ffffff")).toHaveLength(2); // a veil over each lane
    expect(texts).toEqual(["0F0", "1F0", "1B0", "1F1", "1B1", "0B1"]);
  });

  test("what was found is ringed, and the current match more than the others", () => {
    expect(lit({ matches: [bar(0), bar(4)] }).outlines).toHaveLength(2);
    expect(lit({ matches: [bar(0), bar(4)], current: bar(4) }).outlines).toHaveLength(3);
  });
});
