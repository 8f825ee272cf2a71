import { describe, expect, test } from "vitest";
import { fromFragment, INITIAL, type ReportState, toParts } from "../../src/report/address.js";

describe("a link to a comparison", () => {
  test("omits the initial state", () => {
    expect(toParts(INITIAL).toString()).toBe("");
    expect(fromFragment("")).toEqual(INITIAL);
  });

  test.each<ReportState>([
    { drawn: ["zbv", "1f1b"], limit: 2.5, sort: { key: "peak", descending: true } },
    { drawn: null, limit: 27.75 * 2 ** 30, sort: { key: "makespan", descending: false } },
    { drawn: null, limit: 0, sort: { key: "makespan", descending: false } },
    { drawn: [], limit: null, sort: { key: "gap", descending: false } },
    { drawn: null, limit: undefined, sort: { key: "makespan", descending: true } },
  ])("contains the state: %o", (state) => {
    expect(fromFragment(`#${toParts(state)}&op=0:3F7`)).toEqual(state);
  });

  test.each(["limit=x", "limit=-3", "limit=", "sort=nothing", "sort=-"])("does not mind %s", (fragment) => {
    expect(fromFragment(fragment)).toEqual(INITIAL);
  });
});
