import { describe, expect, it } from "vitest";
import type { Settings } from "../src/app/api.js";
import type { Field, Kind } from "../src/app/fields.js";
import { impliedNumber, partsOf, settingsOf, typedOf } from "../src/app/values.js";

function field(name: string, kind: Kind, more: Partial<Field> = {}): Field {
  const plain = {
    title: name,
    group: "times",
    unit: "",
    help: "",
    suggestions: [],
    default: "",
    hint: "",
    choices: [],
    slider: null,
    follows: [],
  };
  return { name, kind, ...plain, ...more };
}

const FORWARD = field("forward_times", "per_stage", { default: "1" });
const INPUTS = field("backward_input_times", "per_stage", {
  default: "half the full one",
  follows: [
    ["backward_times", 0.5],
    ["forward_times", 1],
  ],
});
const FIELDS = [
  field("ranks", "count", { default: "4" }),
  field("chunks", "count"),
  FORWARD,
  field("backward_times", "per_stage"),
  INPUTS,
  field("times_per", "choice", { choices: ["rank", "stage"] }),
  field("pad_times", "flag"),
  field("recompute", "stages"),
  field("memory_limit", "limit"),
  field("overlap_times", "pair_times"),
  field("segments", "segments"),
  field("variant", "text"),
  field("microbatch_factors", "per_microbatch"),
  field("lengths", "lengths"),
];

describe("the settings of typed texts", () => {
  it("contain numbers and lists, but no empty fields", () => {
    const typed = { ranks: "8", forward_times: "1, 2;3\t4", backward_times: " ", memory_limit: "8act" };
    expect(settingsOf(typed, FIELDS)).toEqual({ ranks: 8, forward_times: [1, 2, 3, 4], memory_limit: "8act" });
  });

  it("contain the segments of a file as its form shows them", () => {
    const forward = [
      ["compute", 1.2],
      ["all_to_all", 0.4],
    ];
    const settings = { segments: [{ forward }] } as unknown as Settings;
    expect(settingsOf(typedOf(settings, FIELDS), FIELDS)).toEqual(settings);
  });

  it("contain words unchanged", () => {
    const typed = { times_per: "stage", recompute: "0-3, 6", variant: "2", pad_times: "1" };
    expect(settingsOf(typed, FIELDS)).toEqual({
      times_per: "stage",
      recompute: "0-3, 6",
      variant: "2",
      pad_times: true,
    });
  });

  it("contain a number per microbatch, or the JSON of a file", () => {
    const typed = { microbatch_factors: "2", lengths: "512 128\n256" };
    expect(settingsOf(typed, FIELDS)).toEqual({ microbatch_factors: [2], lengths: [512, 128, 256] });
    expect(settingsOf({ lengths: "[[1, 2], 3]", microbatch_factors: "[1" }, FIELDS)).toEqual({
      lengths: [[1, 2], 3],
      microbatch_factors: "[1",
    });
  });

  it("contain invalid numbers unchanged, so that the server rejects them", () => {
    expect(settingsOf({ ranks: "many" }, FIELDS)).toEqual({ ranks: "many" });
  });
});

describe("the texts of settings", () => {
  it("convert back to the same settings", () => {
    const settings = { ranks: 8, forward_times: [1, 2], recompute: "all", pad_times: true, memory_limit: "8act" };
    expect(settingsOf(typedOf(settings, FIELDS), FIELDS)).toEqual(settings);
  });

  it("contain the documents of each microbatch separately", () => {
    const settings = { lengths: [[1, 2], 3], microbatch_factors: [1, 2] } as unknown as Settings;
    expect(typedOf(settings, FIELDS)).toEqual({ lengths: "[[1,2],3]", microbatch_factors: "1, 2" });
    expect(settingsOf(typedOf(settings, FIELDS), FIELDS)).toEqual(settings);
  });

  it("contain the table of times of pairs that a file has, or a list", () => {
    for (const overlap_times of [
      [
        [1, 2],
        [3, 4],
      ],
      [1, 2],
    ]) {
      const settings = { overlap_times } as unknown as Settings;
      expect(settingsOf(typedOf(settings, FIELDS), FIELDS)).toEqual(settings);
    }
  });

  it("contain ranks for a file that sets only the stages", () => {
    expect(typedOf({ stages: 8, chunks: 2 }, FIELDS)).toEqual({ ranks: "4", chunks: "2" });
  });

  it("omit settings without a field", () => {
    expect(typedOf({ unheard_of: 1, pad_times: false }, FIELDS)).toEqual({});
  });
});

describe("the number that an empty field stands for", () => {
  it("follows the first field that is not empty", () => {
    expect(impliedNumber(INPUTS, { backward_times: "5", forward_times: "3" }, FIELDS)).toBe(2.5);
    expect(impliedNumber(INPUTS, { forward_times: "3, 4" }, FIELDS)).toBe(3);
  });

  it("is the default if all fields are empty", () => {
    expect(impliedNumber(INPUTS, {}, FIELDS)).toBe(1);
    expect(impliedNumber(FORWARD, {}, FIELDS)).toBe(1);
  });

  it("is NaN if the default is described in words", () => {
    const own = field("chunks", "count", { default: "the schedule's own" });
    expect(impliedNumber(own, {}, FIELDS)).toBeNaN();
  });
});

it("rows and columns of spreadsheets are split into values", () => {
  expect(partsOf("1,2\n3\t4; 5")).toEqual(["1", "2", "3", "4", "5"]);
});
