import { expect, test } from "vitest";
import { turnOf } from "../src/wheel.js";

const TURN = { deltaX: 0, deltaY: 100, deltaMode: 0, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false };

test("a plain turn scrolls, or zooms where that was chosen", () => {
  expect(turnOf(TURN, "scroll")).toEqual({ does: "scroll", pixels: 100 });
  expect(turnOf({ ...TURN, deltaMode: 1, deltaY: 3 }, "scroll")).toEqual({ does: "scroll", pixels: 48 });
  expect(turnOf(TURN, "zoom")).toEqual({ does: "zoom", factor: 2 ** -0.2 });
});

test("with ctrl it always zooms; a notch is no further than a pinch", () => {
  expect(turnOf({ ...TURN, ctrlKey: true }, "scroll")).toEqual({ does: "zoom", factor: 2 ** -0.6 });
  expect(turnOf({ ...TURN, metaKey: true, deltaY: -2 }, "zoom")).toEqual({ does: "zoom", factor: 2 ** 0.04 });
});

test("sideways it moves in time, with shift too, unless the plain turn zooms", () => {
  expect(turnOf({ ...TURN, deltaX: -120, deltaY: 10 }, "zoom")).toEqual({ does: "pan", pixels: -120 });
  expect(turnOf({ ...TURN, shiftKey: true }, "scroll")).toEqual({ does: "pan", pixels: 100 });
  expect(turnOf({ ...TURN, shiftKey: true, deltaX: 100, deltaY: 0 }, "zoom")).toEqual({ does: "scroll", pixels: 100 });
});

test("with alt it makes lanes lower and higher", () => {
  expect(turnOf({ ...TURN, altKey: true, deltaY: -100 }, "scroll")).toEqual({ does: "stretch", factor: 2 ** 0.2 });
});
