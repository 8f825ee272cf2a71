/** The view of an order: what Python's `view_of` makes of a simulated schedule, without reasons of idle time. */

import { type MemoryJson, VERSION, type ViewJson } from "../data.js";
import { Part } from "../part.js";
import type { Order, OrderMemory } from "./order.js";
import { offsetsOf, type Run, simulate } from "./simulate.js";

/** Names of the parts of a lane and of the dependencies, by their codes. */
const PARTS = ["full", "upper", "lower", "strip", "to_host", "from_host", "collective"];
const WAITS = ["arrival", "own_stage", "previous_slice", "collective"];
/** Difference of two times that rounding explains, as a share of the makespan. */
const ROUNDING = 1e-9;

/**
 * Return the view of an order; of one that does not run, with the ops that never run after the others, and no memory. An
 * order of the ops of another view has the lanes of its pairs.
 */
export function viewOfOrder(order: Order, run: Run = simulate(order), of?: ViewJson): ViewJson {
  const ops = order.rows.flat();
  const offsets = offsetsOf(order);
  const kinds = of?.kinds ?? [...new Set(order.classes.map(({ kind }) => kind))];
  const makespan = run.end.reduce((most, value) => Math.max(most, value), 0);
  const work = order.rows.map((row, rank) =>
    row.reduce((sum, op, at) => {
      const position = offsets[rank] + at;
      return op.joined ? sum : sum + (run.end[position] - run.start[position]);
    }, 0),
  );
  const total = order.rows.length * makespan;
  let pair = -1;
  const group = ops.map((op, at) => {
    if (op.joined) return pair;
    const opens = ops[at + 1]?.joined === true;
    if (opens) pair += 1;
    return opens ? pair : -1;
  });
  const links = linksOf(run);
  return {
    version: VERSION,
    title: order.title,
    unit: order.unit,
    source: "simulated",
    makespan,
    idle_over_total: total > 0 ? 1 - work.reduce((sum, time) => sum + time, 0) / total : 0,
    chunks: order.chunks,
    copies: order.copies,
    kinds,
    parts: PARTS,
    waits: WAITS,
    lanes: {
      label: order.rows.map((_, rank) => `rank ${rank}`),
      first_start: order.rows.map((row, rank) => (row.length > 0 ? run.start[offsets[rank]] : 0)),
      last_end: order.rows.map((row, rank) => (row.length > 0 ? run.end[offsets[rank + 1] - 1] : 0)),
      work,
    },
    bars: {
      lane: order.rows.flatMap((row, rank) => row.map(() => rank)),
      start: run.start,
      end: run.end,
      part: ops.map((op, at) =>
        group[at] < 0 ? Part.FULL : order.classes[op.of].kind === "F" ? Part.UPPER : Part.LOWER,
      ),
      kind: ops.map((op) => kinds.indexOf(order.classes[op.of].kind)),
      chunk: ops.map((op) => order.classes[op.of].chunk),
      copy: ops.map((op) => order.classes[op.of].copy),
      stage: ops.map((op) => order.classes[op.of].stage),
      microbatch: ops.map((op) => op.microbatch),
      slice: ops.map((op) => op.slice),
      group,
    },
    links,
    ...(of?.pairs === undefined ? {} : { pairs: of.pairs }),
    memory:
      order.memory === null || run.stops.length > 0 ? null : memoryOf(order.rows, order.classes, order.memory, run),
    gaps: null,
  };
}

function linksOf({ needs }: Run): ViewJson["links"] {
  const links: [number, number, number][] = [];
  [needs.arrival, needs.ownStage, needs.previousSlice].forEach((sources, why) => {
    sources.forEach((source, target) => {
      if (source >= 0) links.push([source, target, why]);
    });
  });
  const column = (at: 0 | 1 | 2) => links.map((link) => link[at]);
  return { source: column(0), target: column(1), why: column(2) };
}

/** Return the step curves: a forward or recomputation allocates at its start, every other op changes memory at its end. */
function memoryOf(rows: Order["rows"], classes: Order["classes"], memory: OrderMemory, run: Run): MemoryJson {
  const { unit, base, limit } = memory;
  const offsets = [0];
  const time: number[] = [];
  const level: number[] = [];
  const peak: number[] = [];
  let position = 0;
  rows.forEach((row, rank) => {
    const first = time.length;
    time.push(0);
    level.push(base[rank]);
    let held = 0;
    let most = 0;
    for (const op of row) {
      const { kind, held: change } = classes[op.of];
      const moment = kind === "F" || kind === "R" ? run.start[position] : run.end[position];
      position += 1;
      held += change;
      most = Math.max(most, held);
      if (change === 0) continue;
      const last = time.length - 1;
      const at = Math.max(moment, time[last]);
      if (at - time[last] <= ROUNDING * run.until && last >= first) level[last] = base[rank] + held;
      else {
        time.push(at);
        level.push(base[rank] + held);
      }
    }
    offsets.push(time.length);
    peak.push(base[rank] + most);
  });
  return { unit, offsets, time, level, peak, limit };
}
