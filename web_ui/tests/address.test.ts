import { describe, expect, test } from "vitest";
import { fromQuery, INITIAL, type PageState, toQuery } from "../src/app/address.js";
import type { Field } from "../src/app/fields.js";

const FIELDS = ["ranks", "microbatches", "forward_times", "p2p_time"].map(
  (name): Field => ({
    name,
    kind: "number",
    title: name,
    group: "shape",
    unit: "",
    help: "",
    suggestions: [],
    default: "",
    hint: "",
    choices: [],
    slider: null,
    follows: [],
  }),
);
const STATE: PageState = {
  preset: "",
  typed: { ranks: "4", forward_times: "1,2,3" },
  schedules: ["1f1b", "zbv"],
  allow: [],
  visible: ["zbv"],
  open: "why",
};

describe("the page's address", () => {
  test("initially contains an example", () => {
    expect(fromQuery("", FIELDS)).toEqual(INITIAL);
  });

  test("without a list of schedules stands for all of them", () => {
    expect(INITIAL.schedules).toBeNull();
    expect(fromQuery("?ranks=4", FIELDS).schedules).toBeNull();
    expect(toQuery({ ...STATE, schedules: null, visible: [], open: "" })).toBe("ranks=4&forward_times=1,2,3");
  });

  test("contains typed texts, schedules, visible timelines and the open panel", () => {
    const state = { ...STATE, allow: ["slices", "copies"] };
    expect(fromQuery(`?${toQuery(state)}`, FIELDS)).toEqual(state);
  });

  test("contains a preset by its name, and what differs from it", () => {
    const base = { ranks: "8", p2p_time: "3", forward_times: "29718" };
    const state = {
      ...STATE,
      preset: "gpt",
      typed: { ranks: "8", p2p_time: "5" },
      schedules: null,
      visible: [],
      open: "",
    };
    const query = toQuery(state, {}, base);
    expect(query).toBe("preset=gpt&p2p_time=5&forward_times=");
    expect(fromQuery(query, FIELDS, base)).toEqual(state);
    expect(fromQuery("?preset=gpt", FIELDS, base).typed).toEqual(base);
  });

  test("contains lists as users type them", () => {
    expect(toQuery({ ...STATE, typed: { forward_times: " 1, 2, 3 " } })).toBe(
      "forward_times=1,2,3&schedules=1f1b,zbv&show=zbv&open=why",
    );
  });

  test("omits empty fields, and ignores unknown ones", () => {
    expect(toQuery({ ...STATE, typed: { ranks: " " }, visible: [], open: "" })).toBe("schedules=1f1b,zbv");
    expect(fromQuery("?unknown=1&schedules=", FIELDS)).toEqual({
      preset: "",
      typed: {},
      schedules: [],
      allow: [],
      visible: [],
      open: "",
    });
  });

  test("keeps names with special characters of addresses", () => {
    const state = { ...STATE, schedules: ["a&b=c#d.csv"] };
    expect(fromQuery(toQuery(state), FIELDS).schedules).toEqual(state.schedules);
  });
});
