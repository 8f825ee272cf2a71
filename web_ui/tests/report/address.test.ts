import { describe, expect, test } from "vitest";
import { AS_MADE, fromFragment, type Shown, toParts } from "../../src/report/address.js";

describe("a link to a comparison", () => {
  test("says nothing of how the page begins", () => {
    expect(toParts(AS_MADE).toString()).toBe("");
    expect(fromFragment("")).toEqual(AS_MADE);
  });

  test.each<Shown>([
    { drawn: ["zbv", "1f1b"], limit: 2.5, sort: { key: "peak", descending: true } },
    { drawn: null, limit: 27.75 * 2 ** 30, sort: { key: "makespan", descending: false } },
    { drawn: null, limit: 0, sort: { key: "makespan", descending: false } },
    { drawn: [], limit: null, sort: { key: "gap", descending: false } },
    { drawn: null, limit: undefined, sort: { key: "makespan", descending: true } },
  ])("carries what was chosen: %o", (shown) => {
    expect(fromFragment(`#${toParts(shown)}&op=0:3F7`)).toEqual(shown);
  });

  test.each(["limit=x", "limit=-3", "limit=", "sort=nothing", "sort=-"])("does not mind %s", (fragment) => {
    expect(fromFragment(fragment)).toEqual(AS_MADE);
  });
});
