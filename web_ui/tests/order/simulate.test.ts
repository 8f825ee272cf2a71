import { describe, expect, test } from "vitest";
import { floats, integers } from "../../src/data.js";
import { costsOf, moved, nameOf, type Order, orderOf } from "../../src/order/order.js";
import { dataOf, verdict } from "../../src/order/page.js";
import { simulate } from "../../src/order/simulate.js";
import { viewOfOrder } from "../../src/order/view.js";
import { Plot } from "../../src/plot.js";
import { THEMES } from "../fixtures.js";
import { oneForwardOneBackward } from "./orders.js";

const names = (order: Order, rank: number) => order.rows[rank].map((op) => nameOf(order, op)).join(" ");

describe("times", () => {
  test("are those of the formula of 1F1B", () => {
    for (const [ranks, microbatches] of [
      [1, 1],
      [2, 2],
      [4, 8],
      [8, 32],
    ]) {
      const run = simulate(oneForwardOneBackward(ranks, microbatches));
      expect(run.until).toBe(3 * (microbatches + ranks - 1));
      expect(run.stops).toEqual([]);
    }
  });

  test("contain a transfer only between ranks", () => {
    expect(simulate(oneForwardOneBackward(3, 1, 0.5)).until).toBe(9 + 4 * 0.5);
  });

  test("contain the overhead before and after an op, which is not a part of its bar", () => {
    const order = oneForwardOneBackward(1, 2);
    const run = simulate({ ...order, classes: order.classes.map((own) => ({ ...own, before: 0.25, behind: 0.5 })) });
    expect([...run.start]).toEqual([0.25, 2, 4.75, 6.5]);
    expect(run.end[1] - run.start[1]).toBe(2);
  });
});

describe("an order that does not run", () => {
  const order = oneForwardOneBackward(2, 2);
  // Rank 0 wants the backward of microbatch 0 before the forward that it depends on.
  const stuck = moved(order, 0, 2, 0);
  const run = simulate(stuck);

  test("stops where its ranks wait for each other", () => {
    expect(names(stuck, 0)).toBe("0B0 0F0 0F1 0B1");
    expect(run.ran).toBe(0);
    expect(run.stops).toEqual([
      { rank: 0, op: "0B0", waitsFor: "1B0", later: false },
      { rank: 1, op: "1F0", waitsFor: "0F0", later: false },
    ]);
  });

  test("is said in a sentence", () => {
    expect(verdict(stuck, run, simulate(order))).toBe(
      "Deadlock after 0 of 8 ops: rank 0 stops before 0B0, which waits for 1B0; rank 1 stops before 1F0, which waits for 0F0.",
    );
    expect(verdict(order, simulate(order), simulate(order))).toBe("It runs: makespan 9, as before.");
  });

  test("has places for the ops that never run", () => {
    const plot = new Plot(viewOfOrder(stuck, run), 0);
    expect(plot.bars).toBe(8);
    expect(plot.view.makespan).toBe(6);
  });
});

describe("a moved op", () => {
  const order = oneForwardOneBackward(2, 3);

  test("is at its new position among the ops of its rank", () => {
    expect(names(order, 1)).toBe("1F0 1B0 1F1 1B1 1F2 1B2");
    expect(names(moved(order, 1, 0, 3), 1)).toBe("1B0 1F1 1B1 1F0 1F2 1B2");
    expect(names(moved(order, 1, 5, 0), 1)).toBe("1B2 1F0 1B0 1F1 1B1 1F2");
    expect(names(moved(order, 1, 5, 0), 0)).toBe(names(order, 0));
  });

  test("takes the other op of its pair with it, and goes into no pair", () => {
    const row = order.rows[1].map((op, at) => ({ ...op, joined: at === 2 || at === 4 }));
    const pairs = { ...order, rows: [order.rows[0], row] };
    const words = ({ rows }: Order) =>
      rows[1]
        .map((op) => `${op.joined ? "+" : " "}${nameOf(order, op)}`)
        .join("")
        .trim();
    expect(words(pairs)).toBe("1F0 1B0+1F1 1B1+1F2 1B2");
    expect(words(moved(pairs, 1, 1, 0))).toBe("1B0+1F1 1F0 1B1+1F2 1B2");
    expect(words(moved(pairs, 1, 2, 4))).toBe("1F0 1B1+1F2 1B0+1F1 1B2");
    expect(words(moved(pairs, 1, 0, 1))).toBe("1B0+1F1 1F0 1B1+1F2 1B2");
    expect(words(moved(pairs, 1, 5, 4))).toBe("1F0 1B0+1F1 1B2 1B1+1F2");
  });
});

test("a view has the order that it was made from", () => {
  const order = oneForwardOneBackward(3, 5, 0.5);
  const again = orderOf({ ...viewOfOrder(order), order: costsOf(order) });
  expect(again?.rows.map((row) => row.map((op) => nameOf(again, op)))).toEqual(
    order.rows.map((row) => row.map((op) => nameOf(order, op))),
  );
  expect(again === null ? null : [...simulate(again).end]).toEqual([...simulate(order).end]);
});

test("memory is held from the start of a forward to the end of its backward", () => {
  const { memory } = viewOfOrder(oneForwardOneBackward(2, 2));
  expect([...integers(memory?.offsets ?? [])]).toEqual([0, 4, 8]);
  expect([...floats(memory?.time ?? [])].slice(0, 4)).toEqual([0, 1, 6, 9]);
  expect([...floats(memory?.level ?? [])].slice(0, 4)).toEqual([1, 2, 1, 0]);
  expect([...floats(memory?.peak ?? [])]).toEqual([2, 1]);
});

test("a page without enough colours spreads those that it has", () => {
  const order = { ...oneForwardOneBackward(2, 2), chunks: 3 };
  const { themes } = dataOf(order, simulate(order), THEMES);
  expect(themes.light["3"].kinds.F.fill).toEqual(["#0000ff", "#0000ff", "#0000ff"]);
});
