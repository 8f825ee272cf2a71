import { describe, expect, test } from "vitest";
import { changedNames, rowsOf, Trail } from "../src/app/trail.js";

/** A history that lists what is written to it. */
function listed() {
  const entries: { address: string; state: unknown }[] = [];
  const pushState = (state: unknown, _: string, address?: string | URL | null) => {
    entries.push({ address: String(address), state });
  };
  const replaceState = (state: unknown, _: string, address?: string | URL | null) => {
    entries[Math.max(entries.length - 1, 0)] = { address: String(address), state };
  };
  return { entries, trail: new Trail({ pushState, replaceState }) };
}

const at = (query: string, rows: string | null = null) => ({ query, rows });

describe("entries of the browser's history", () => {
  test("are one for each changed parameter", () => {
    const { entries, trail } = listed();
    trail.restored(at("ranks=4"));
    trail.write(at("ranks=4"), "from=1", 0);
    trail.write(at("ranks=5"), "", 10);
    trail.write(at("ranks=5&p2p_time=1"), "from=2", 20);
    expect(entries.map(({ address }) => address)).toEqual([
      "?ranks=4#from=1",
      "?ranks=5",
      "?ranks=5&p2p_time=1#from=2",
    ]);
  });

  test("are one for changes of a parameter in quick succession, as by a slider", () => {
    const { entries, trail } = listed();
    trail.restored(at("ranks=4"));
    for (const ranks of [5, 6, 7]) trail.write(at(`ranks=${ranks}`), "", 100 * ranks);
    trail.write(at("ranks=8"), "", 5000);
    expect(entries.map(({ address }) => address)).toEqual(["?ranks=7", "?ranks=8"]);
  });

  test("keep an edited text, which may be too long for the address", () => {
    const { entries, trail } = listed();
    trail.restored(at("open=edit"));
    trail.write(at("open=edit", "0F0 0B0"), "", 0);
    trail.write(at("open=edit", "0B0 0F0"), "", 2000);
    expect(entries.map(({ state }) => rowsOf(state))).toEqual(["0F0 0B0", "0B0 0F0"]);
    expect(rowsOf(null)).toBeNull();
  });

  test("do not depend on the order of parameters", () => {
    expect(changedNames(at("a=1&b=2"), at("b=2&a=1"))).toEqual([]);
    expect(changedNames(at("a=1"), at("b=1", "0F0"))).toEqual(["a", "b", "rows"]);
  });
});
