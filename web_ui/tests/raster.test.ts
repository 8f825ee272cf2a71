import { describe, expect, test } from "vitest";
import { Palette } from "../src/palette.js";
import { addVisible, PixelRow, separation } from "../src/raster.js";
import { type Op, plotOf } from "./fixtures.js";

const PALETTE = new Palette(["#ff0000", "#0000ff"], ["#000000", "#000000"]);

/** Return the pixels of a lane between two times, as `[red, green, blue, alpha]`. */
function pixels(ops: readonly Op[], width: number, from: number, to: number): number[][] {
  const [track] = plotOf(ops).tracks[0];
  const row = new PixelRow(width);
  const strip = { track, palette: PALETTE, top: 0, height: 1 };
  addVisible(row, strip, { from, scale: width / (to - from), left: 0, width }, 1, width);
  const data = new Uint8ClampedArray(4 * width);
  row.write(data, 0);
  return Array.from({ length: width }, (_, x) => [...data.subarray(4 * x, 4 * x + 4)]);
}

const RED = [255, 0, 0, 255];
const BLUE = [0, 0, 255, 255];
const NOTHING = [0, 0, 0, 0];

describe("a row of pixels", () => {
  test("has the bars' colours where they are, and nothing elsewhere", () => {
    expect(
      pixels(
        [
          [0, 0, 2, "F", 0],
          [0, 3, 4, "B", 0],
        ],
        4,
        0,
        4,
      ),
    ).toEqual([RED, RED, NOTHING, BLUE]);
  });

  test("mixes the bars within one pixel", () => {
    expect(
      pixels(
        [
          [0, 0, 1, "F", 0],
          [0, 1, 2, "B", 0],
        ],
        1,
        0,
        2,
      ),
    ).toEqual([[128, 0, 128, 255]]);
  });

  test("has an opacity equal to its coverage", () => {
    expect(pixels([[0, 0, 1, "F", 0]], 2, 0, 8)[0]).toEqual([255, 0, 0, 64]);
  });

  test("clips bars at its edges", () => {
    expect(pixels([[0, 0, 100, "F", 0]], 3, 40, 43)).toEqual([RED, RED, RED]);
  });

  test("is cleared for the next row", () => {
    const row = new PixelRow(2);
    const data = new Uint8ClampedArray(8);
    row.add(0, 2, PALETTE.rgb, 0);
    row.write(new Uint8ClampedArray(8), 0);
    row.write(data, 0);
    expect([...data]).toEqual([...NOTHING, ...NOTHING]);
  });

  test("contains all of a hundred thousand bars", () => {
    const ops = Array.from({ length: 100_000 }, (_, at): Op => [0, at, at + 1, at % 2 === 0 ? "F" : "B", 0]);
    for (const [red, , blue, alpha] of pixels(ops, 100, 0, 100_000)) {
      expect(Math.abs(red - blue)).toBeLessThanOrEqual(1);
      expect(alpha).toBeGreaterThanOrEqual(254);
    }
  });
});

test.each([
  [0.5, 0],
  [2, 0],
  [6, 0.5],
  [10, 1],
  [500, 1],
])("a bar %d pixels wide is followed by %d pixels of space", (width, space) => {
  expect(separation(width)).toBe(space);
});
