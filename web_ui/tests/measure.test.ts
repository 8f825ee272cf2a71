import { describe, expect, test } from "vitest";
import { rowsOf } from "../src/band.js";
import { measured } from "../src/measure.js";
import { summaryOf, titleOf } from "../src/measure_panel.js";
import { frameOf, type Op, plotOf, TWO_BY_TWO, themeOf } from "./fixtures.js";

const GAPS = {
  lane: [0, 0, 1],
  start: [2, 6, 0],
  end: [4, 7, 1],
  reason: [0, 0, 0],
  cause: [-1, -1, -1],
  reasons: ["warmup"],
};
const plot = plotOf(TWO_BY_TWO, { gaps: GAPS });
const theme = themeOf([plot]);
const lanes = (...numbers: number[]) => numbers.map((lane) => ({ plot, lane }));

describe("an interval", () => {
  test("has the time of each rank by kind of op and by reason for idling", () => {
    const { uses, rows, totals } = measured(lanes(0, 1), { from: 0.5, to: 5 }, theme);
    expect(uses.map(({ title }) => title)).toEqual(["forward", "backward", "idle: warm-up"]);
    expect(rows.map(({ times }) => times)).toEqual([
      [1.5, 1, 2],
      [2, 2, 0.5],
    ]);
    expect(totals).toEqual([3.5, 3, 2.5]);
  });

  test("adds up without reasons for idling and after a schedule's end", () => {
    const bare = plotOf(TWO_BY_TWO);
    const { uses, rows } = measured([{ plot: bare, lane: 1 }], { from: 6, to: 12 }, theme);
    expect(uses.map(({ key }) => key)).toEqual(["kind B", "idle", "after"]);
    expect(rows[0].times).toEqual([1, 2, 3]);
  });

  test("counts an overlapped pair once, and no messages beside compute", () => {
    const ops: Op[] = [
      [0, 0, 2, "F", 1],
      [0, 0, 2, "B", 0],
      [0, 0, 4, "SEND_F", 0],
      [0, 3, 4, "F", 2],
    ];
    const bars = { ...plotOf(ops).view.bars, part: [1, 2, 3, 0] };
    const { uses, rows } = measured([{ plot: plotOf(ops, { bars }), lane: 0 }], { from: 1, to: 4 }, theme);
    expect(uses.map(({ title }) => title)).toEqual(["forward", "overlapped pairs", "idle"]);
    expect(rows[0].times).toEqual([1, 1, 1]);
  });

  test("has a title and a summary of its largest parts", () => {
    const measurement = measured(lanes(0, 1), { from: 0.5, to: 5 }, theme);
    expect(titleOf(measurement, 0.5, 5)).toBe("4.5 ms (50.0% of the step), from 0.5 to 5.0 ms, 2 ranks");
    expect(summaryOf(measurement)).toEqual([
      ["forward", "3.5 ms (38.9%)"],
      ["backward", "3.0 ms (33.3%)"],
      ["idle: warm-up", "2.5 ms (27.8%)"],
    ]);
  });

  test("has the rows between its first and its last, in either order", () => {
    const { content } = frameOf([plot], 1014);
    const band = { from: 0, to: 1, first: { view: 0, lane: 1 }, last: { view: 0, lane: 0 } };
    expect(rowsOf(content, band).map(({ lane }) => lane)).toEqual([0, 1]);
    expect(rowsOf(content, { ...band, last: { view: 3, lane: 0 } })).toEqual([]);
  });
});
