import { describe, expect, test } from "vitest";
import type { Finding } from "../src/review/api.js";
import { rulesWithout } from "../src/review/ask.js";
import { visibleLines } from "../src/review/listing.js";
import { kindOf } from "../src/review/patch.js";
import { fieldOf, wordsOf } from "../src/review/summary.js";

function finding(line: number, severity: Finding["severity"] = "error"): Finding {
  return {
    rule: "layers-per-rank",
    severity,
    question: "starts",
    where: `run.sh:${line}`,
    file: "run.sh",
    line,
    message: "94 layers do not divide by pp 8",
    remedy: "set a layout",
    source: "arguments.py",
    configuration: "",
    configuration_file: "run.sh",
    column: 0,
    end_column: 0,
  };
}

describe("the listing", () => {
  test("shows a short text whole, with findings at their lines", () => {
    const rows = visibleLines("one\ntwo\nthree\n", [finding(2)]);
    expect(rows).toEqual([
      { line: 1, text: "one", findings: [] },
      { line: 2, text: "two", findings: [finding(2)] },
      { line: 3, text: "three", findings: [] },
    ]);
  });

  test("omits lines of a long text that are far from findings", () => {
    const text = Array.from({ length: 200 }, (_, at) => `line ${at + 1}`).join("\n");
    const rows = visibleLines(text, [finding(0), finding(100)]);
    expect(rows[0]).toEqual({ skipped: 96 });
    expect(rows.at(-1)).toEqual({ skipped: 97 });
    expect(rows.length).toBe(9);
  });
});

describe("the patch", () => {
  test("has a kind for each line of a diff", () => {
    const kinds = ["--- a/x", "+++ b/x", "@@ -1 +1 @@", "-old", "+new", " same"].map(kindOf);
    expect(kinds).toEqual(["head", "head", "hunk", "removed", "added", "same"]);
  });
});

describe("what is not stated", () => {
  const missing = (give: string, rules: number) => ({ what: "", rules, give, sentence: "" });

  test("is stated in the field of its option", () => {
    expect(["--cluster", "--global-batch", ""].map((give) => fieldOf(missing(give, 1)))).toEqual([
      "cluster",
      "global_batch",
      "",
    ]);
  });

  test("is counted over all questions", () => {
    const questions = [[missing("--cluster", 2), missing("--model", 4)], [missing("--cluster", 3)], []].map(
      (facts) => ({
        question: "fits" as const,
        judged: 0,
        not_judged: 0,
        missing: facts,
      }),
    );
    expect(rulesWithout("cluster", { questions })).toBe(5);
    expect(rulesWithout("sequence", { questions })).toBe(0);
  });
});

test("a change is described by its settings", () => {
  const settings = { layout: "Et|tL", vpp: null, parts: [["a"], ["b"]] };
  expect(wordsOf({ settings, removes: [], gain: null, step_time_s: null, peak_memory_gib: null })).toBe(
    'layout Et|tL, drop vpp, parts [["a"],["b"]]',
  );
});
