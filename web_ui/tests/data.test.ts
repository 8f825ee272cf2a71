import { describe, expect, test } from "vitest";
import { floats, integers } from "../src/data.js";

/** Encode values as numpy's little-endian bytes. */
function packed(type: string, values: ArrayBufferView): string {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return `${type}:${btoa(String.fromCharCode(...bytes))}`;
}

describe("columns", () => {
  test.each([
    ["f8", new Float64Array([0, 1.5, -2])],
    ["f4", new Float32Array([0, 1.5, -2])],
    ["i4", new Int32Array([0, 70_000, -2])],
    ["i2", new Int16Array([0, 300, -2])],
    ["i1", new Int8Array([0, 100, -2])],
    ["u1", new Uint8Array([0, 255, 2])],
  ])("of %s are read as they were written", (type, values) => {
    expect([...floats(packed(type, values))]).toEqual([...values]);
    if (!type.startsWith("f")) expect([...integers(packed(type, values))]).toEqual([...values]);
  });

  test("may be plain lists", () => {
    expect([...floats([1, 2.5])]).toEqual([1, 2.5]);
    expect([...integers([1, 2])]).toEqual([1, 2]);
  });

  test.each(["x9:AAAA", "f8AAAA", ""])("of an unknown type raise an error: %j", (text) => {
    expect(() => floats(text)).toThrow("no such column");
  });
});
