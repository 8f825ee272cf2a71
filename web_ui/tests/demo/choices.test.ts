import { describe, expect, test } from "vitest";
import { type Choices, commandOf, fileOf, first, fromFragment, toParts, withRanks } from "../../src/demo/choices.js";
import { comparison, gib, row, SMALL } from "../report/fixtures.js";

const CHOICES: Choices = {
  shapes: [
    [4, 8],
    [4, 16],
    [8, 16],
    [8, 32],
    [8, 64],
  ],
  presets: [
    {
      key: "gpt",
      title: "GPT",
      origin: "measured",
      options: [
        ["--forward-times", 29718],
        ["--p2p-time", 527],
        ["--time-unit", "us"],
      ],
    },
    { key: "even", title: "even", origin: "made up", options: [["--p2p-time", 0.125]] },
  ],
  transfers: [
    { key: "given", title: "as in the costs", factor: 1 },
    { key: "none", title: "none", factor: 0 },
    { key: "slow", title: "slow", factor: 10 },
  ],
  version: "1",
};
const BEGIN = first(CHOICES);

describe("the choice", () => {
  test("is in a link, and in the name of a file", () => {
    const choice = { ranks: 4, microbatches: 16, costs: "even", transfer: "slow" };
    expect(fromFragment(`#${toParts(choice)}&limit=3`, CHOICES)).toEqual(choice);
    expect(fileOf(choice)).toBe("4x16-even-slow");
  });

  test.each(["", "ranks=5&microbatches=8", "costs=mine", "transfer=..%2F"])("begins as ever with '%s'", (fragment) => {
    expect(fromFragment(fragment, CHOICES)).toEqual(BEGIN);
  });

  test("keeps the microbatches for other ranks if that combination was computed", () => {
    const few = { ...BEGIN, ranks: 4, microbatches: 16 };
    expect(withRanks(few, 8, CHOICES).microbatches).toBe(16);
    expect(withRanks({ ...BEGIN, microbatches: 64 }, 4, CHOICES).microbatches).toBe(16);
  });
});

describe("the command", () => {
  test("contains the shape, the costs and the limit", () => {
    expect(commandOf(BEGIN, CHOICES, SMALL, gib(24))).toBe(
      "pipeplan compare --ranks 8 --microbatches 32 --forward-times 29718 --p2p-time 527 --time-unit us " +
        "--memory-limit 24GiB --output comparison.html",
    );
  });

  test("contains the selected transfers", () => {
    expect(commandOf({ ...BEGIN, transfer: "slow" }, CHOICES, SMALL, null)).toContain("--p2p-time 5270 ");
    expect(commandOf({ ...BEGIN, transfer: "none" }, CHOICES, SMALL, null)).not.toContain("--p2p-time");
  });

  test("contains a limit in activations", () => {
    const small = comparison([row("1f1b", 33, 0, { peak: 8 })], { memory_unit: "activations" });
    expect(commandOf(BEGIN, CHOICES, small, 4.5)).toContain("--memory-limit 4.5act ");
  });
});
