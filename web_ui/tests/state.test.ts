import { describe, expect, test } from "vitest";
import { fromFragment, INITIAL, MOST_TALL, type State, toFragment } from "../src/state.js";

const EVERYTHING: State = {
  span: [3.25, 9],
  views: [0, 2],
  layout: "overlaid",
  gaps: true,
  memory: false,
  critical: true,
  scale: false,
  theme: "dark",
  band: { from: 3, to: 5.5, first: { view: 0, lane: 0 }, last: { view: 1, lane: 3 } },
  tall: 2.5,
  query: "3F7",
  op: { view: 1, name: "3F7.1" },
};

describe("a fragment", () => {
  test("omits the initial state", () => {
    expect(toFragment(INITIAL)).toBe("");
    expect(fromFragment("")).toEqual(INITIAL);
  });

  test("contains every change of the state", () => {
    expect(fromFragment(`#${toFragment(EVERYTHING)}`)).toEqual(EVERYTHING);
  });

  test.each(Object.keys(EVERYTHING) as (keyof State)[])("carries %s alone", (key) => {
    const state = { ...INITIAL, [key]: EVERYTHING[key] };
    expect(fromFragment(toFragment(state))).toEqual(state);
  });

  test("contains the selected op with its view", () => {
    expect(toFragment({ ...INITIAL, op: { view: 0, name: "3F7" } })).toBe("op=0%3A3F7");
  });

  test.each([
    "from=3",
    "from=3&to=3",
    "from=9&to=3",
    "from=-1&to=3",
    "from=x&to=y",
    "from=1&to=Infinity",
    "op=3F7",
    "op=0:<b>",
    "op=99999:3F7",
    "theme=pink",
    "layout=sideways",
    "tall=",
    "tall=NaN",
    "unknown=1",
  ])("that makes no sense changes nothing: %s", (fragment) => {
    expect(fromFragment(fragment)).toEqual(INITIAL);
  });

  test("limits the height of lanes to the fitting height and the maximum", () => {
    expect(fromFragment("tall=0.1").tall).toBe(1);
    expect(fromFragment("tall=1000").tall).toBe(MOST_TALL);
  });

  test("limits the length of the search query", () => {
    expect(fromFragment(`find=${"F".repeat(500)}`).query).toHaveLength(64);
  });
});
