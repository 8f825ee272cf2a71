import { expect, test } from "vitest";
import { change, countedAs, figure, memoryScale, memoryText, percent, Times, timeText } from "../src/format.js";
import readable from "./readable.json" with { type: "json" };

test.each(readable.times)("times as Python writes them: $texts", ({ values, unit, texts }) => {
  const form = Times.of(values, unit);
  expect(values.map((value) => form.text(value))).toEqual(texts);
});

test.each(readable.percents as [number, string][])("the share %d", (share, text) => {
  expect(percent(share)).toBe(text);
});

test.each(readable.changes as [number, string][])("the change %d", (share, text) => {
  expect(change(share)).toBe(text);
});

test("one time", () => {
  expect([timeText(2019403, "us"), timeText(0.1 + 0.2), timeText(28.2)]).toEqual(["2.019 s", "0.3", "28.2"]);
});

test("times that lie close together are distinguishable", () => {
  const form = Times.fine([1234567, 1238092], 3525, "us");
  expect([1234567, 1238092].map((value) => form.number(value))).toEqual(["1.23457", "1.23809"]);
  expect(Times.fine([4, 5], 1, "").text(4)).toBe("4");
});

test("differences have their sign", () => {
  const form = Times.of([0.25, 3], "");
  expect([0.25, -3, 0, 0.001].map((value) => form.signed(value))).toEqual(["+0.25", "-3.00", "0.00", "0.00"]);
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

test("parts add up to their displayed sum", () => {
  const parts = [0.71323, 0.70666, 0.47825, 0, 0.0777, 0.0107, 0.03286];
  const form = Times.of([...parts, 2.019403], "s");
  const written = form.parts(parts);
  expect(written[3]).toBe("0.000");
  expect(form.number(written.map(Number).reduce((sum, part) => sum + part, 0))).toBe("2.019");
  expect(parts.map((part) => Number(form.number(part))).reduce((sum, part) => sum + part, 0)).not.toBeCloseTo(2.019, 6);
});
