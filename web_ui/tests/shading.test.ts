import { describe, expect, test } from "vitest";
import { legendEntries } from "../src/legend.js";
import { Shading, Theme } from "../src/palette.js";
import { INITIAL } from "../src/state.js";
import { plotOf, THEMES, TWO_BY_TWO } from "./fixtures.js";

const RATIOS = [1, 1.1, 0.9, 1, 1.1, 0.5, 0, 1];

function shaded(reach: number | null = 1.1) {
  return new Shading({ title: "measured / planned", ends: ["faster", "slower"], reach, values: [RATIOS, null] });
}

describe("colours by a ratio", () => {
  test("are symmetric and clamped at the ends, with a separate colour for ops without a ratio", () => {
    expect([...shaded().codes(0, 8)]).toEqual([16, 32, 0, 16, 32, 0, 33, 16]);
    expect([...shaded(1 / 0.9).codes(0, 3)]).toEqual([16, 30, 0]);
    expect(shaded().palette("light").fill).toHaveLength(34);
  });

  test("cover nearly all ratios, or a minimum range if all are equal", () => {
    expect(shaded(null).reach).toBeCloseTo(1 / 0.9);
    const equal = new Shading({ title: "", ends: ["", ""], reach: null, values: [[1, 1]] });
    expect(equal.reach).toBe(1.05);
  });

  test("have a text for each ratio", () => {
    expect(shaded().valueOf(0, 6)).toBeNull();
    expect(shaded().valueOf(1, 0)).toBeNull();
    expect(shaded().text(1.12)).toBe("1.12 (+12.0%)");
  });

  test("are in the legend, next to the kinds of views without ratios", () => {
    const plots = [plotOf(TWO_BY_TWO), plotOf(TWO_BY_TWO, {}, [], 1)];
    const shading = shaded();
    const theme = new Theme({ views: [], themes: THEMES }, "light", plots, shading);
    const titles = (visible: typeof plots) => legendEntries(visible, theme, INITIAL).map(({ title }) => title);
    expect(titles(plots)).toEqual(["1.10 (slower)", "forward", "backward"]);
    expect(titles(plots.slice(0, 1))).toEqual(["1.10 (slower)"]);
    expect(titles(plots.slice(1))).toEqual(["forward", "backward"]);
  });

  test("replace the colours of bars, and can be removed", () => {
    const plot = plotOf(TWO_BY_TWO);
    const before = [...plot.code];
    plot.recolour(shaded().codes(0, 8));
    expect([...plot.tracks[1][0].code]).toEqual([32, 0, 33, 16]);
    plot.recolour(null);
    expect([...plot.code]).toEqual(before);
  });
});
