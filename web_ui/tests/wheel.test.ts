import { expect, test } from "vitest";
import { turnOf } from "../src/wheel.js";

const TURN = { deltaX: 0, deltaY: 100, deltaMode: 0, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false };

test("a plain turn scrolls, or zooms if the user selects that", () => {
  expect(turnOf(TURN, "scroll")).toEqual({ does: "scroll", pixels: 100 });
  expect(turnOf({ ...TURN, deltaMode: 1, deltaY: 3 }, "scroll")).toEqual({ does: "scroll", pixels: 48 });
  expect(turnOf(TURN, "zoom")).toEqual({ does: "zoom", factor: 2 ** -0.2 });
});

test("a turn with ctrl zooms, by at most the step of a pinch", () => {
  expect(turnOf({ ...TURN, ctrlKey: true }, "scroll")).toEqual({ does: "zoom", factor: 2 ** -0.6 });
  expect(turnOf({ ...TURN, metaKey: true, deltaY: -2 }, "zoom")).toEqual({ does: "zoom", factor: 2 ** 0.04 });
});

test("a turn sideways or with shift pans in time, unless a plain turn zooms", () => {
  expect(turnOf({ ...TURN, deltaX: -120, deltaY: 10 }, "zoom")).toEqual({ does: "pan", pixels: -120 });
  expect(turnOf({ ...TURN, shiftKey: true }, "scroll")).toEqual({ does: "pan", pixels: 100 });
  expect(turnOf({ ...TURN, shiftKey: true, deltaX: 100, deltaY: 0 }, "zoom")).toEqual({ does: "scroll", pixels: 100 });
});

test("a turn with alt changes the height of lanes", () => {
  expect(turnOf({ ...TURN, altKey: true, deltaY: -100 }, "scroll")).toEqual({ does: "stretch", factor: 2 ** 0.2 });
});
