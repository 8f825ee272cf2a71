import { describe, expect, test } from "vitest";
import { findBars, parseQuery, sameBar } from "../src/search.js";
import { plotOf, TWO_BY_TWO } from "./fixtures.js";

describe("a query", () => {
  test.each([
    ["3F7", { stage: 3, kind: "F", microbatch: 7, slice: null }],
    ["3f7.1", { stage: 3, kind: "F", microbatch: 7, slice: 1 }],
    [" F7 ", { stage: null, kind: "F", microbatch: 7, slice: null }],
    ["3SEND_F", { stage: 3, kind: "SEND_F", microbatch: null, slice: null }],
  ])("%j", (text, query) => {
    expect(parseQuery(text)).toEqual(query);
  });

  test.each(["", "37", "F 7", "3F7 and more", "<F>"])("that names no op: %j", (text) => {
    expect(parseQuery(text)).toBeNull();
  });
});

describe("the bars that match a query", () => {
  const plots = [plotOf(TWO_BY_TWO), plotOf(TWO_BY_TWO.slice(0, 5), {}, [], 1)];
  const namesOf = (text: string) => {
    const query = parseQuery(text);
    return query === null ? [] : findBars(plots, query).map(({ view, bar }) => `${view}:${plots[view].name(bar)}`);
  };

  test("are in the order of views, and in each in the order of time", () => {
    expect(namesOf("F0")).toEqual(["0:0F0", "0:1F0", "1:0F0", "1:1F0"]);
    expect(namesOf("1B")).toEqual(["0:1B0", "0:1B1"]);
  });

  test("are none for a kind that does not occur", () => {
    expect(namesOf("W0")).toEqual([]);
    expect(namesOf("7F0")).toEqual([]);
  });

  test("include the same op in another view with other numbers of kinds", () => {
    const kinds = ["B", "F", "SEND_F", "RECV_F"];
    const other = plotOf(TWO_BY_TWO.slice(0, 5), { kinds }, [], 1);
    expect(sameBar(plots[0], 0, other)).toBe(2); // numbered the other way round, its third op is now 0F0
    expect(sameBar(plots[0], 7, other)).toBe(-1);
  });
});
