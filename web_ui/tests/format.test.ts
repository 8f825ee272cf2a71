import { expect, test } from "vitest";
import { countedAs, figure, memoryScale, memoryText, percent, signed, timeText } from "../src/format.js";

test.each([
  [12.3456789, "", "12.3457"],
  [0.1 + 0.2, "ms", "0.3 ms"],
  [1e7, "", "10000000"],
])("a time of %d", (value, unit, text) => {
  expect(timeText(value, unit)).toBe(text);
});

test.each([
  [1.2345, "+1.23"],
  [-3, "\u22123"],
  [0, "\u00b10"],
])("a difference of %d", (value, text) => {
  expect(signed(value)).toBe(text);
});

test("shares are percentages", () => {
  expect(percent(0.12345)).toBe("12.3%");
  expect(percent(-1e-9)).toBe("0.0%");
});

test.each([
  [0, "B", "0"],
  [1000, "B", "1000"],
  [1536, "KiB", "1.5"],
  [80 * 2 ** 30, "GiB", "80"],
  [5000 * 2 ** 40, "TiB", "5000"],
])("%d bytes are written in %s", (bytes, unit, text) => {
  const scale = memoryScale("bytes", bytes);
  expect(scale.unit).toBe(unit);
  expect(memoryText(bytes, scale)).toBe(text);
});

test("activations are counted", () => {
  expect(memoryScale("activations", 5000)).toEqual({ divisor: 1, unit: "activations" });
});

test("a prediction has four digits", () => {
  expect([14.2004, 0.394189, 4.146e-5, 12345.6, 0].map(figure)).toEqual(["14.20", "0.3942", "0.000041", "12,346", "0"]);
});

test("numbers agree with their nouns", () => {
  expect([countedAs(1, "chunk"), countedAs(2048, "chunk")]).toEqual(["1 chunk", "2,048 chunks"]);
});
