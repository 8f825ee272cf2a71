import { describe, expect, test } from "vitest";
import { nearestOf, unknownNames } from "../src/app/unknown_names.js";

const KNOWN = {
  parameters: ["ranks", "microbatches", "preset", "schedules", "show", "open", "machine"],
  query: {
    preset: ["gpt-6.2b-24", "llama3-70b-64"],
    schedules: ["1f1b", "zbv", "v-half"],
    show: ["1f1b", "zbv", "v-half"],
    machine: ["none", "megatron-a100"],
  },
  fragment: { theme: ["auto", "light", "dark"] },
};

const found = (query: string, fragment = "") => unknownNames(query, fragment, KNOWN);

describe("unknown names of a link", () => {
  test("are none in a valid link", () => {
    expect(found("?ranks=4&preset=gpt-6.2b-24&schedules=zbv,1f1b&show=zbv", "theme=dark&from=3&to=4")).toEqual([]);
  });

  test("have the nearest name, and the address with it", () => {
    expect(found("?ranks=4&schedules=zbw,1f1b&show=zbw", "from=3")).toEqual([
      { kind: "schedule", name: "zbw", nearest: "zbv", address: "?ranks=4&schedules=zbv,1f1b&show=zbv#from=3" },
    ]);
    expect(found("?preset=gpt-6.2b").map(({ nearest, address }) => [nearest, address])).toEqual([
      ["gpt-6.2b-24", "?preset=gpt-6.2b-24"],
    ]);
    expect(found("?schedules=zvb,1f1b").map(({ nearest }) => nearest)).toEqual(["zbv"]);
    expect(found("?machine=megatron-a10").map(({ kind, nearest }) => [kind, nearest])).toEqual([
      ["machine", "megatron-a100"],
    ]);
  });

  test("are also those of settings and themes", () => {
    expect(
      found("?rank=4&microbatches=8", "theme=drak").map(({ kind, nearest, address }) => [kind, nearest, address]),
    ).toEqual([
      ["setting", "ranks", "?microbatches=8&ranks=4#theme=drak"],
      ["theme", "dark", "?rank=4&microbatches=8#theme=dark"],
    ]);
  });

  test("are left out where no name is near", () => {
    expect(found("?schedules=mine.csv,zbv")).toEqual([
      { kind: "schedule", name: "mine.csv", nearest: null, address: "?schedules=zbv" },
    ]);
    expect(nearestOf("nonsense", ["1f1b", "zbv"])).toBeNull();
  });
});
