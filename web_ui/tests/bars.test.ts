import { describe, expect, test } from "vitest";
import { barScale, barShare } from "../src/app/bars.js";

type Given = Parameters<typeof barScale>[0];

/** A comparison of schedules with these makespans and lower bounds. */
function compared(least: number, ...schedules: readonly (readonly [makespan: number, bound: number])[]): Given {
  const results = schedules.map(([makespan, lower_bound]) => ({ makespan, lower_bound, over: null }));
  return { results, least_bound: { value: least } } as unknown as Given;
}

describe("bars of makespans", () => {
  test("begin at the bound, so that small differences above it are visible", () => {
    const scale = barScale(compared(76, [78, 76], [80, 76], [100, 80]));
    expect(scale).toEqual({ start: 76, end: 100, common: true });
    expect(barShare(80, scale)).toBe(2 * barShare(78, scale));
    expect(barShare(100, scale)).toBe(1);
  });

  test("begin at the least bound where a schedule that needs more is faster than the bound of the others", () => {
    expect(barScale(compared(76, [78, 76], [75, 73]))).toEqual({ start: 73, end: 78, common: false });
  });

  test("leave out schedules over the memory limit, for which the bound does not hold", () => {
    const { results, least_bound } = compared(76, [78, 76], [70, 76]);
    const over = { ...results[1], over: { rank: 0 } } as unknown as Given["results"][number];
    expect(barScale({ results: [results[0], over], least_bound })).toEqual({ start: 76, end: 78, common: true });
  });

  test("are empty where all makespans equal the bound", () => {
    expect(barShare(5, barScale(compared(5, [5, 5])))).toBe(0);
  });
});
