/** Random orders from seeds, and the order of a small schedule. */

import type { OpClass, Order, OrderedOp } from "../../src/order/order.js";

/** Return a generator of numbers between 0 and 1 (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Return an order without meaning: any classes in any rows. */
export function anyOrder(seed: number): Order {
  const next = random(seed);
  const below = (limit: number) => Math.floor(next() * limit);
  const number = () => [0, 1, 0.1, next() * 1e9, 1e-300 * next(), -next()][below(6)];
  const classes = Array.from(
    { length: 1 + below(20) },
    (): OpClass => ({
      kind: "FBIWR"[below(5)],
      stage: below(100),
      chunk: below(4),
      copy: below(2),
      duration: number(),
      before: number(),
      behind: number(),
      delay: number(),
      held: number(),
    }),
  );
  const slices = 1 + below(4);
  const ranks = 1 + below(6);
  const rows = Array.from({ length: ranks }, () =>
    Array.from(
      { length: below(80) },
      (_, at): OrderedOp => ({
        of: below(classes.length),
        microbatch: below(below(2) === 0 ? 8 : 100_000),
        slice: below(slices),
        joined: at > 0 && below(5) === 0,
      }),
    ),
  );
  const each = () => Array.from({ length: ranks }, number);
  return {
    title: ["", "1f1b", "m\u00fcller </script> \ud83d\ude80".slice(0, below(24))][below(3)],
    unit: ["", "ms"][below(2)],
    chunks: 1 + below(4),
    copies: 1 + below(2),
    slices,
    memory: [null, { unit: "bytes" as const, base: each(), limit: [null, each()][below(2)] }][below(2)],
    classes,
    rows,
  };
}

/** Return 1F1B with a forward of 1 and a backward of 2, and transfers of `delay`. */
export function oneForwardOneBackward(ranks: number, microbatches: number, delay = 0): Order {
  const costs = { chunk: 0, copy: 0, before: 0, behind: 0, delay };
  const classes = Array.from({ length: ranks }, (_, stage): OpClass[] => [
    { kind: "F", stage, duration: 1, held: 1, ...costs },
    { kind: "B", stage, duration: 2, held: -1, ...costs },
  ]).flat();
  const rows = Array.from({ length: ranks }, (_, rank) => {
    const warm = Math.min(ranks - rank - 1, microbatches);
    const op = (kind: 0 | 1, microbatch: number) => ({ of: 2 * rank + kind, microbatch, slice: 0, joined: false });
    const row = Array.from({ length: warm }, (_, at) => op(0, at));
    for (let at = 0; at + warm < microbatches; at++) row.push(op(0, at + warm), op(1, at));
    for (let at = microbatches - warm; at < microbatches; at++) row.push(op(1, at));
    return row;
  });
  const memory = { unit: "activations" as const, base: rows.map(() => 0), limit: null };
  return { title: "1f1b", unit: "", chunks: 1, copies: 1, slices: 1, memory, classes, rows };
}
