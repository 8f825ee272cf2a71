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
};
const frame = (change: Partial<ViewJson>, width = 1014) => frameOf([plotOf(OPS, { bars: BARS, ...change })], width);

describe("the lanes of a pair", () => {
  test("are those of its two stages, scaled to its time, in the colours of its ops", () => {
    const { content } = frame({ pairs: PAIRS });
    const [compute, communication] = laneTracks(frame({ pairs: PAIRS }), content.rows[0]);
    expect([...compute.track.start]).toEqual([1, 3]);
    expect([...communication.track.end]).toEqual([5, 6]);
    expect([...compute.track.code]).toEqual([KINDS.indexOf("B"), KINDS.indexOf("F")]);
    const twice = { ...BARS, end: [1, 11, 11] };
    const longer = frameOf([plotOf(OPS, { bars: twice, makespan: 11, pairs: PAIRS })], 1014);
    expect([...laneTracks(longer, longer.content.rows[0])[0].track.end]).toEqual([5, 9]);
  });

  test("move both ops up, until pairs are too narrow, and not without segments", () => {
    const [wide, narrow, plain] = [frame({ pairs: PAIRS }), frame({ pairs: PAIRS }, 150), frame({})];
    for (const part of [Part.UPPER, Part.LOWER]) {
      expect(edgesOf(wide, wide.content.rows[0], part)[1]).toBeLessThan(EDGES[part][1]);
      for (const other of [narrow, plain]) expect(edgesOf(other, other.content.rows[0], part)).toEqual(EDGES[part]);
    }
    expect(laneTracks(narrow, narrow.content.rows[0])).toEqual([]);
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
  });
});
