import { describe, expect, test } from "vitest";
import { type Op, plotOf, TWO_BY_TWO, TWO_BY_TWO_LINKS } from "./fixtures.js";

describe("the op that delays another", () => {
  const plot = plotOf(TWO_BY_TWO, {}, TWO_BY_TWO_LINKS);
  const names = (bars: Iterable<number>) => [...bars].map((bar) => plot.name(bar));

  test("is the last of its predecessors to end", () => {
    expect(names([plot.links.holder(2)])).toEqual(["1B0"]); // waited for its gradient
    expect(names([plot.links.holder(1)])).toEqual(["0F0"]); // its rank was busy
    expect(plot.links.holder(0)).toBe(-1);
  });

  test("has its dependencies and dependents in the links", () => {
    expect(names(plot.links.waitedFor(4))).toEqual(["0F0"]);
    expect(names(plot.links.waiting(0))).toEqual(["1F0"]);
    expect(names([plot.links.before(3)])).toEqual(["0B0"]);
    expect(plot.links.before(4)).toBe(-1);
  });

  test("leads from the last op back along the critical path", () => {
    expect(names(plot.links.critical())).toEqual(["0F0", "1F0", "1B0", "1F1", "1B1", "0B1"]);
  });

  test("extends the chain of an op forward along the longest delay", () => {
    expect(names(plot.links.chain(5))).toEqual(["0F0", "1F0", "1B0", "1F1", "1B1", "0B1"]);
    expect(names(plot.links.chain(2))).toEqual(["0F0", "1F0", "1B0", "0B0"]);
  });

  test("is the arrival in a tie with an op of the same rank", () => {
    const tied = plotOf(
      [
        [0, 0, 2, "F", 0],
        [1, 0, 2, "F", 1],
        [1, 2, 3, "F", 0],
      ],
      {},
      [[0, 2]],
    );
    expect(tied.links.holder(2)).toBe(0);
  });

  test("is never a message of the same rank", () => {
    const sends = plotOf([
      [0, 0, 1, "F", 0],
      [0, 1, 2, "SEND_F", 0],
      [0, 1, 2, "F", 1],
    ]);
    expect(sends.links.before(2)).toBe(0);
  });

  test("is the collective that gathers the parameters of an op, or the previous collective on its stream", () => {
    const ops: Op[] = [
      [0, 0, 1, "UNSHARD", -1, 0],
      [0, 1, 4, "UNSHARD", -1, 1],
      [0, 1, 2, "F", 0, 0],
      [0, 4, 5, "F", 0, 1],
    ];
    const plot = plotOf(ops, {}, [
      [0, 2],
      [1, 3],
    ]);
    const holders = ops.map((_, bar) => plot.links.holder(bar));
    expect(holders).toEqual([-1, 0, 0, 1]);
  });

  test("is the copy to the host that blocks a rank, or the copy back that an op needs", () => {
    const ops: Op[] = [
      [0, 0, 1, "F", 0],
      [0, 1, 2, "F", 1],
      [0, 1, 4, "OFFLOAD", 0],
      [0, 4, 5, "F", 2],
      [0, 4, 7, "OFFLOAD", 1],
      [0, 7, 10, "RELOAD", 0],
      [0, 7, 8, "B", 2],
      [0, 10, 13, "RELOAD", 1],
      [0, 10, 12, "B", 0],
    ];
    const copies = plotOf(ops, {}, [
      [0, 2],
      [1, 4],
      [2, 5],
      [4, 7],
      [5, 8],
    ]);
    const delays = ops.map((_, bar) => copies.links.holder(bar)).map((bar) => (bar < 0 ? "" : copies.name(bar)));
    const expected = ["", "0F0", "0F0", "0OFFLOAD0", "0OFFLOAD0", "0OFFLOAD1", "0OFFLOAD1", "0RELOAD0", "0RELOAD0"];
    expect(delays).toEqual(expected);
    expect(copies.name(copies.links.before(8))).toBe("0B2");
  });
});
