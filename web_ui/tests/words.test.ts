import { describe, expect, test } from "vitest";
import type { Field } from "../src/app/fields.js";
import { gainText, provenText } from "../src/app/gains.js";
import { bytesOf, sizeText } from "../src/app/sizes.js";
import { inWords, pointed } from "../src/app/words.js";
import { Times } from "../src/format.js";

function field(name: string, title: string): Field {
  const rest = { kind: "number", group: "", unit: "", default: "", hint: "", choices: [], slider: null, follows: [] };
  return { name, title, ...rest } as unknown as Field;
}

const FIELDS = [
  field("ranks", "Ranks"),
  field("forward_times", "Forward, F"),
  field("memory_limit", "Limit of every rank"),
];

describe("errors in the form's words", () => {
  const cases: [string, string, string][] = [
    ["ranks", "ranks must be at least 1, not -3", "Ranks must be at least 1, not -3"],
    ["ranks", "must be a whole number", "Ranks must be a whole number"],
    ["forward_times", "value 2: must be a number", "Value 2 of Forward, F must be a number"],
    ["forward_times", "forward_times has 4 values for 5 stages", "Forward, F has 4 values for 5 stages"],
    ["forward_times", "forward times: 1e300 is too large", "Forward, F: 1e300 is too large"],
    ["forward_times", "forward time must be more than 0", "Forward, F must be more than 0"],
    ["memory_limit", "memory limit: invalid size 'x'", "Limit of every rank: invalid size 'x'"],
    ["", "leave out forward_times here", "Leave out Forward, F here"],
    ["schedules", "v-half needs 2 chunks", "v-half needs 2 chunks"],
    ["ranks", "3 ranks are odd", "3 ranks are odd"],
  ];
  test.each(cases)("%s: %s", (name, message, text) => {
    expect(inWords({ field: name, message }, FIELDS)).toBe(text);
  });
});

describe("sizes", () => {
  test("are bytes", () => {
    expect(bytesOf("1.5GiB")).toBe(1.5 * 2 ** 30);
    expect(bytesOf("40 gib")).toBe(40 * 2 ** 30);
    expect(bytesOf("2MB")).toBe(2e6);
    expect(bytesOf("512B")).toBe(512);
  });

  test.each(["", "8act", "GiB", "1.2.3GiB", "12", "1e400GiB", "5 GiBs"])("%s is none", (text) => {
    expect(bytesOf(text)).toBeNull();
  });

  test("are formatted exactly, and parse back", () => {
    for (const bytes of [3724541952, 2 ** 30, 5436 * 2 ** 20, 1000, 1536, 123456789, 7]) {
      const text = sizeText(bytes);
      expect(bytesOf(text) ?? Number(text)).toBe(bytes);
    }
    expect(sizeText(3724541952)).toBe("3.46875GiB");
    expect(sizeText(123456789)).toBe("123456789");
  });
});

describe("the result of a search", () => {
  test("has a gain relative to the best schedule before", () => {
    expect(gainText(0.063, "zbv")).toBe("6.3% faster than zbv");
    expect(gainText(-0.02, "zbv")).toBe("2.0% slower than zbv");
    expect(gainText(0.0001, "zbv")).toBe("as fast as zbv");
  });

  test("has a proven bound", () => {
    const proven = { lower_bound: 79.6, bound_reason: "the work of rank 7", gap: 0.026 };
    const times = Times.of([81.7, 79.6], "");
    expect(provenText(proven, false, times)).toBe(
      "At most 2.6% above optimal: the lower bound is 79.6 (the work of rank 7).",
    );
    expect(provenText(proven, true, times)).toBe("Proven optimal: equals the lower bound (the work of rank 7).");
  });
});

test.each([
  ["12,1", "12.1"],
  ["12,5 GiB", "12.5GiB"],
  ["8,5act", "8.5act"],
])("a decimal comma is corrected: %s", (typed, correction) => {
  expect(pointed(typed)).toEqual([`use a decimal point: ${correction}`]);
});

test("lists have no decimal comma", () => {
  for (const text of ["1, 2", "1,2,3", "8act,8act", "12.1", ""]) expect(pointed(text)).toEqual([]);
});
