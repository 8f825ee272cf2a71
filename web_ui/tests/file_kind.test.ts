import { describe, expect, test } from "vitest";
import { isSchedule, suffixOf } from "../src/app/file_kind.js";

const SUFFIXES = new Set([".csv", ".json", ".words"]);

test("the suffix of a file is the last part of its name", () => {
  expect(suffixOf("run.trace.JSON")).toBe(".json");
  expect(suffixOf("name")).toBe("");
});

describe("a dropped file is a schedule", () => {
  test("if only schedules have its suffix", () => {
    expect(isSchedule("plan.CSV", "", SUFFIXES)).toBe(true);
    expect(isSchedule("plan.words", "0F0", SUFFIXES)).toBe(true);
    expect(isSchedule("costs.yaml", "", SUFFIXES)).toBe(false);
    expect(isSchedule("notes", "", SUFFIXES)).toBe(false);
  });

  test("if its JSON contains a schedule; costs and configs fill the form", () => {
    const json = (start: string) => isSchedule("a.json", start, SUFFIXES);
    expect(json('{"format": "pipeplan-schedule", "version": 1')).toBe(true);
    expect(json('{"format":"pipeplan-timeline"')).toBe(true);
    expect(json('{"schedule":["1f1b","1f1b"]')).toBe(true);
    expect(json('{"traceEvents": [')).toBe(true);
    expect(json('{"format":"pipeplan-costs"')).toBe(false);
    expect(json('{"ranks": 4, "schedule": "zbv"}')).toBe(false);
  });
});
