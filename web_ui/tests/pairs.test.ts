import { describe, expect, test } from "vitest";
import type { PairsJson, ViewJson } from "../src/data.js";
import { describeBar } from "../src/describe.js";
import { hitAt } from "../src/hit.js";
import { edgesOf, laneTracks, pairOf } from "../src/pairs.js";
import { Part } from "../src/part.js";
import { EDGES } from "../src/plot.js";
import { frameOf, KINDS, type Op, plotOf, themeOf, viewOf } from "./fixtures.js";

/** A forward of stage 0 beside a backward of stage 1: an all-to-all of 1 is exposed, one of 2 hidden. */
const PAIRS: PairsJson = {
  communication: "all-to-all",
  forward: [1, 0],
  backward: [0, 1],
  inputs: [0, 0],
  time: [9, 5],
  exposed: [0, 1],
  hidden: [0, 2],
  offsets: [0, 0, 4],
  lane: [0, 1, 0, 1],
  kind: ["B", "B", "F", "F"].map((kind) => KINDS.indexOf(kind)),
  begin: [0, 2, 2, 4],
  end: [2, 4, 4, 5],
};
const OPS: readonly Op[] = [
  [0, 0, 1, "F", 0],
  [0, 1, 6, "F", 1, 0],
  [0, 1, 6, "B", 0, 1],
];
const BARS = {
  ...viewOf(OPS).bars,
  part: [Part.FULL, Part.UPPER, Part.LOWER],
  group: [-1, 7, 7],
  chunk: [0, 0, 1],
};
const frame = (change: Partial<ViewJson>, width = 1014) =>
  frameOf([plotOf(OPS, { bars: BARS, chunks: 2, ...change })], width);
const lanesOf = (change: Partial<ViewJson>) => {
  const shown = frame({ pairs: PAIRS, ...change });
  return laneTracks(shown, shown.content.rows[0]);
};

describe("the lanes of a pair", () => {
  test("are those of its two stages, scaled to its time, in the colours of its ops", () => {
    const [compute, communication] = lanesOf({});
    expect([...compute.track.start]).toEqual([1, 3]);
    expect([...communication.track.end]).toEqual([5, 6]);
    expect(communication.edges[0]).toBeGreaterThan(compute.edges[1]);
    expect([...compute.track.code]).toEqual([2 * KINDS.indexOf("B") + 1, 2 * KINDS.indexOf("F")]);
    const [longer] = lanesOf({ bars: { ...BARS, end: [1, 11, 11] }, makespan: 11 });
    expect([...longer.track.start, ...longer.track.end]).toEqual([1, 5, 5, 9]);
  });

  test("differ for an I and a full backward", () => {
    const numbers = [KINDS, ["F", "I"]].map((kinds) => {
      const plot = plotOf(OPS, { bars: BARS, kinds, pairs: { ...PAIRS, inputs: [0, 1] } });
      return plot.pairs?.of(plot, [1, 2]);
    });
    expect(numbers).toEqual([-1, 1]);
  });

  test("have the colours of a scale", () => {
    const { plots, content } = frame({ pairs: PAIRS });
    plots[0].recolour(Uint16Array.of(0, 7, 8));
    expect([...laneTracks(frame({}), content.rows[0])[0].track.code]).toEqual([8, 7]);
  });

  test("move both ops up, until pairs are too narrow, and not without segments", () => {
    const [wide, narrow, plain] = [frame({ pairs: PAIRS }), frame({ pairs: PAIRS }, 150), frame({})];
    for (const part of [Part.UPPER, Part.LOWER]) {
      expect(edgesOf(wide, wide.content.rows[0], part)[1]).toBeLessThan(EDGES[part][1]);
      for (const other of [narrow, plain]) expect(edgesOf(other, other.content.rows[0], part)).toEqual(EDGES[part]);
    }
    const low = { ...wide.content.rows[0], height: 20 };
    for (const [shown, row] of [[narrow, narrow.content.rows[0]] as const, [wide, low] as const]) {
      expect(laneTracks(shown, row)).toEqual([]);
    }
    expect(edgesOf(wide, wide.content.rows[0], Part.FULL)).toEqual(EDGES[Part.FULL]);
  });

  test("belong to the backward, and its tooltip says what is exposed and hidden", () => {
    const wide = frame({ pairs: PAIRS });
    const [row] = wide.content.rows;
    const at = (share: number) => hitAt(wide, wide.x(3), row.top + 26 + share * row.height)?.bar;
    expect([at(0.2), at(0.5), at(0.9)]).toEqual([1, 2, 2]);
    const facts = describeBar(wide.plots, themeOf(wide.plots), { view: 0, bar: 2 }, false).facts;
    expect(facts).toContainEqual(["all-to-all", "exposed 1 ms, hidden 2 ms"]);
    const alone = describeBar(wide.plots, themeOf(wide.plots), { view: 0, bar: 0 }, false).facts;
    expect(alone.map(([name]) => name)).not.toContain("all-to-all");
  });

  test("need two ops of one group on one rank", () => {
    const { plots } = frame({});
    expect([0, 1, 2].map((bar) => pairOf(plots[0], bar))).toEqual([null, [1, 2], [1, 2]]);
    const apart = OPS.map(([, ...op], at): Op => [at === 2 ? 1 : 0, ...op]);
    expect(pairOf(plotOf(apart, { bars: { ...BARS, lane: [0, 0, 1] } }), 1)).toBeNull();
  });
});
