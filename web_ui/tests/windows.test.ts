import { expect, test } from "vitest";
import { windowText } from "../src/describe.js";
import { plotOf } from "./fixtures.js";

const WINDOWS = {
  lane: [1, 1],
  start: [0, 4],
  end: [2, 7],
  idle: [0.5, 1],
  least: [0.5, 0.5],
  kind: ["first", "trip"],
};

test("a plot has the windows of its view, with a text about their cost", () => {
  const { windows } = plotOf([[0, 0, 1, "F", 0]], { windows: WINDOWS });
  expect(windows.map(({ lane, start, end }) => [lane, start, end])).toEqual([
    [1, 0, 2],
    [1, 4, 7],
  ]);
  expect(windowText(windows[1], "ms")).toBe(
    "of a round trip, 4 to 7 ms: idle 1 ms, under the memory limit 500 us or more",
  );
  expect(plotOf([[0, 0, 1, "F", 0]]).windows).toEqual([]);
});
