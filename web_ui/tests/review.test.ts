import { describe, expect, test } from "vitest";
import type { Finding, Review } from "../src/review/api.js";
import { visibleLines } from "../src/review/listing.js";
import { kindOf } from "../src/review/patch.js";
import { verdict, wordsOf } from "../src/review/summary.js";

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

describe("the verdict", () => {
  test("counts errors and warnings, and names the trainer", () => {
    const configurations = [{ trainer: "Megatron-LM" }];
    const of = (findings: Finding[]) => verdict({ findings, configurations } as unknown as Review);
    expect(of([finding(1), finding(2), finding(3, "warning")])).toBe("2 errors and 1 warning, for Megatron-LM");
    expect(of([finding(1, "advice")])).toBe("Nothing is wrong, for Megatron-LM");
    const unknown = { verdict: "unknown", findings: [], configurations } as unknown as Review;
    expect(verdict(unknown)).toBe("No fault found, but not everything was judged, for Megatron-LM");
  });

  test("describes a change by its settings", () => {
    const settings = { layout: "Et|tL", vpp: null, parts: [["a"], ["b"]] };
    expect(wordsOf({ settings, removes: [], gain: null, step_time_s: null, peak_memory_gib: null })).toBe(
      'layout Et|tL, drop vpp, parts [["a"],["b"]]',
    );
  });
});
