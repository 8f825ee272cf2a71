import { beforeEach, describe, expect, test, vi } from "vitest";
import { TimeZoom } from "../src/zoom.js";

/** Element with the members that d3-zoom uses without a pointer. */
class Place extends EventTarget {
  readonly style = { setProperty: () => undefined };
  readonly clientHeight = 100;
}

let zoom: TimeZoom;
let moves: number;

beforeEach(() => {
  vi.stubGlobal("navigator", { maxTouchPoints: 0 });
  vi.stubGlobal("MouseEvent", class extends Event {});
  moves = 0;
  zoom = new TimeZoom(new Place() as unknown as HTMLElement, {
    moved: () => {
      moves += 1;
    },
    scrolled: () => false,
    stretched: () => undefined,
    busy: () => false,
    idled: () => undefined,
  });
  zoom.fit(100, 1100, 10, 1);
});

const visible = () => zoom.x.domain().map((time) => Number(time.toFixed(9)));

describe("zoom", () => {
  test("initially shows all times", () => {
    expect(zoom.all).toBe(true);
    expect(visible()).toEqual([0, 10]);
    expect(zoom.x(5)).toBe(600);
  });

  test("scales around the middle, or around a pixel that keeps its time", () => {
    zoom.scaleBy(2);
    expect(visible()).toEqual([2.5, 7.5]);
    zoom.scaleBy(2, 100);
    expect(visible()).toEqual([2.5, 5]);
    expect(moves).toBe(2);
  });

  test("pans in time, and stops at both ends", () => {
    zoom.scaleBy(2);
    zoom.panBy(0.2);
    expect(visible()).toEqual([3.5, 8.5]);
    zoom.panBy(5);
    expect(visible()).toEqual([5, 10]);
    zoom.panBy(-50);
    expect(visible()).toEqual([0, 5]);
  });

  test("never shows more than all times", () => {
    zoom.scaleBy(0.1);
    expect(visible()).toEqual([0, 10]);
  });

  test("stops when the shortest op fills half of the picture", () => {
    zoom.scaleBy(1e6);
    const [from, to] = visible();
    expect(to - from).toBeCloseTo(0.5);
  });

  test("follows a span and back without calling a handler", () => {
    zoom.follow([2, 4]);
    expect(visible()).toEqual([2, 4]);
    zoom.follow(null);
    expect(visible()).toEqual([0, 10]);
    expect(moves).toBe(0);
  });

  test("clips a span to the timeline", () => {
    zoom.follow([8, 40]);
    const [from, to] = visible();
    expect(from).toBeGreaterThanOrEqual(0);
    expect(to).toBeLessThanOrEqual(10);
  });

  test("keeps the visible times when the picture gets wider", () => {
    zoom.follow([2, 4]);
    zoom.fit(100, 2100, 10, 1);
    zoom.follow([2, 4]);
    expect(visible()).toEqual([2, 4]);
  });
});
