import { expect, test } from "vitest";
import { COLUMN, eachBox, type Mix, sharesOf, tooFine } from "../src/mix.js";
import { mixParts } from "../src/picture.js";
import { type Op, plotOf, themeOf } from "./fixtures.js";

/** Period of 4 with F for 1 and B for 2: a quarter forward, a half backward, a quarter idle. */
const STEADY = Array.from({ length: 400 }, (_, at): Op[] => [
  [0, 4 * at, 4 * at + 1, "F", at],
  [0, 4 * at + 1, 4 * at + 3, "B", at],
]).flat();
const plot = plotOf(STEADY);
const mix: Mix = { parts: mixParts(themeOf([plot]), plot, 0, 1), top: 0, height: 20 };
const whole = { from: 0, scale: 0.075, left: 0, width: 120 };

test("bars are too fine if several fall into a pixel", () => {
  expect(tooFine(plot.tracks[0][0], whole, 1)).toBe(true);
  expect(tooFine(plot.tracks[0][0], { from: 0, scale: 10, left: 0, width: 160 }, 1)).toBe(false);
});

test("columns hold the share of time of each colour", () => {
  const shares = sharesOf(mix, whole);
  expect(shares.map(({ fill }) => fill)).toEqual(["#0000ff", "#00ff00"]);
  expect(shares[0].shares).toHaveLength(120 / COLUMN);
  for (const share of shares[0].shares) expect(share).toBeCloseTo(0.25, 5);
  for (const share of shares[1].shares) expect(share).toBeCloseTo(0.5, 5);
});

test("equal work gives nearly equal columns even if they are no multiple of the period", () => {
  const turns = plotOf(Array.from({ length: 1599 }, (_, at): Op => [0, at, at + 1, "FBB"[at % 3], at]));
  const window = { from: 0, scale: 0.79, left: 0, width: 1263 };
  const parts = mixParts(themeOf([turns]), turns, 0, 1);
  const [forward] = sharesOf({ parts, top: 0, height: 7 }, window);
  for (const share of forward.shares.slice(0, -1)) expect(Math.abs(share - 1 / 3)).toBeLessThan(0.08);
});

test("colours are stacked from the top, and idle time with a reason from the bottom", () => {
  const [part] = mix.parts;
  const shares = sharesOf({ ...mix, parts: [part, { ...part, below: true, weight: 0.4 }] }, whole);
  const boxes: [boolean, number, number][] = [];
  eachBox(shares, ({ below }, column, top, bottom) => {
    if (column === 3) boxes.push([below, Number(top.toFixed(3)), Number(bottom.toFixed(3))]);
  });
  expect(boxes).toEqual([
    [false, 0, 0.25],
    [false, 0.25, 0.75],
    [true, 0.8, 1],
    [true, 0.75, 0.8],
  ]);
});

test("lanes have the columns of the overview, and their idle time ends as sharply", () => {
  const late = plotOf(Array.from({ length: 300 }, (_, at): Op => [0, 205 + at, 206 + at, "FB"[at % 2], at]));
  const window = { from: 0, scale: 0.4, left: 0, width: 210 };
  const parts = mixParts(themeOf([late]), late, 0, 1);
  const shares = sharesOf({ parts, top: 0, height: 9 }, window);
  const work = Array.from(shares[0].shares, (_, column) => shares.reduce((sum, own) => sum + own.shares[column], 0));
  // The first op starts at pixel 82, which is a third of the way through column 27.
  expect(work.slice(0, 27)).toEqual(Array(27).fill(0));
  expect(work[27]).toBeCloseTo(2 / 3, 5);
  for (const share of work.slice(28, 67)) expect(share).toBeCloseTo(1, 5);
});
