/**
 * Times of an order by the rules of pipeplan.simulation with transfers that only delay: an op starts when its rank is free
 * and its inputs have arrived. The same operations in the same sequence as there give exactly the same times.
 */

import { nameOf, type Order, type OrderedOp } from "./order.js";

/** Dependencies between ops by their positions, rank after rank; -1 for none, -2 for one that is missing. */
export interface Needs {
  readonly arrival: Int32Array;
  readonly ownStage: Int32Array;
  readonly previousSlice: Int32Array;
}

/** Names of the kinds, by their numbers in keys. */
const KINDS = "FBIWR";
const NONE = -1;
const MISSING = -2;

/** A rank that stops: its first op that never runs, and the op that this waits for. */
export interface Stop {
  readonly rank: number;
  readonly op: string;
  readonly waitsFor: string;
  /** Whether that op comes later on the same rank. */
  readonly later: boolean;
}

export interface Run {
  /** Start and end of each op; ops that never run come after the others. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** Number of ops that run, and the end of the last of them. */
  readonly ran: number;
  readonly until: number;
  readonly stops: readonly Stop[];
  readonly needs: Needs;
}

/** Position of the first op of each rank, and the number of ops. */
export function offsetsOf(order: Order): number[] {
  const offsets = [0];
  for (const row of order.rows) offsets.push(offsets[offsets.length - 1] + row.length);
  return offsets;
}

/** Return what each op waits for, as pipeplan.model.dependency defines it. */
export function needsOf(order: Order): Needs {
  const ops = order.rows.flat();
  const stages = 1 + order.classes.reduce((most, { stage }) => Math.max(most, stage), 0);
  const turns = 1 + ops.reduce((most, { microbatch, slice }) => Math.max(most, microbatch * order.slices + slice), 0);
  const places = new Map<number, number>();
  const key = (kind: string, stage: number, op: OrderedOp, slice: number) =>
    (KINDS.indexOf(kind) * stages + stage) * turns + op.microbatch * order.slices + slice;
  ops.forEach((op, at) => {
    const { kind, stage } = order.classes[op.of];
    places.set(key(kind, stage, op, op.slice), at);
  });
  const find = (kinds: readonly string[], stage: number, op: OrderedOp, slice: number): number => {
    for (const kind of kinds) {
      const at = places.get(key(kind, stage, op, slice));
      if (at !== undefined) return at;
    }
    return MISSING;
  };
  const empty = () => new Int32Array(ops.length).fill(NONE);
  const needs: Needs = { arrival: empty(), ownStage: empty(), previousSlice: empty() };
  ops.forEach((op, at) => {
    const { kind, stage } = order.classes[op.of];
    if (kind === "F") {
      if (stage > 0) needs.arrival[at] = find(["F"], stage - 1, op, op.slice);
      if (op.slice > 0) needs.previousSlice[at] = find(["F"], stage, op, op.slice - 1);
    } else if (kind === "B" || kind === "I") {
      if (stage < stages - 1) needs.arrival[at] = find(["B", "I"], stage + 1, op, op.slice);
      needs.ownStage[at] = find(["R", "F"], stage, op, op.slice);
      if (op.slice < order.slices - 1) needs.previousSlice[at] = find(["B", "I"], stage, op, op.slice + 1);
    } else if (kind === "W") needs.ownStage[at] = find(["I"], stage, op, op.slice);
    else if (kind === "R") needs.ownStage[at] = find(["F"], stage, op, op.slice);
  });
  return needs;
}

export function simulate(order: Order): Run {
  const needs = needsOf(order);
  const offsets = offsetsOf(order);
  const ops = order.rows.flat();
  const rankOf = Int32Array.from(order.rows.flatMap((row, rank) => row.map(() => rank)));
  const start = new Float64Array(ops.length);
  const end = new Float64Array(ops.length);
  /** When the rank is free after each op, -1 before that is known. */
  const freed = new Float64Array(ops.length).fill(-1);
  const cursor = offsets.slice(0, -1);
  const free = new Float64Array(order.rows.length);
  /** Ranks that wait for an op. */
  const waiting = new Map<number, number[]>();
  const stack = order.rows.map((_, rank) => rank).reverse();
  const sources = [needs.arrival, needs.ownStage, needs.previousSlice];
  /** The first source of a pair or single op that has not run. */
  const blocker = (op: number, after: number): number => {
    for (let member = op; member < after; member++) {
      for (const source of sources) {
        if (source[member] === MISSING || (source[member] >= 0 && freed[source[member]] < 0)) return source[member];
      }
    }
    return NONE;
  };
  let ran = 0;
  while (stack.length > 0) {
    const rank = stack.pop() as number;
    while (cursor[rank] < offsets[rank + 1]) {
      const op = cursor[rank];
      const after = op + 1 < offsets[rank + 1] && ops[op + 1].joined ? op + 2 : op + 1;
      const missing = blocker(op, after);
      if (missing !== NONE) {
        waiting.set(missing, [...(waiting.get(missing) ?? []), rank]);
        break;
      }
      let begin = free[rank];
      for (let member = op; member < after; member++) {
        const source = needs.arrival[member];
        if (source < 0 || rankOf[source] === rank) continue;
        begin = Math.max(begin, freed[source] + order.classes[ops[source].of].delay);
      }
      const { before, duration, behind } = order.classes[ops[op].of];
      const clock = begin + (before + duration + behind);
      for (let member = op; member < after; member++) {
        start[member] = begin + before;
        end[member] = clock - behind;
        freed[member] = clock;
        ran += 1;
        stack.push(...(waiting.get(member) ?? []));
        waiting.delete(member);
      }
      free[rank] = clock;
      cursor[rank] = after;
    }
  }
  const until = end.reduce((most, value) => Math.max(most, value), 0);
  const stops = order.rows.flatMap((_, rank): Stop[] => {
    if (cursor[rank] >= offsets[rank + 1]) return [];
    let clock = until;
    for (let op = cursor[rank]; op < offsets[rank + 1]; op++) {
      start[op] = ops[op].joined ? start[op - 1] : clock;
      clock = start[op] + order.classes[ops[op].of].duration;
      end[op] = clock;
    }
    const op = cursor[rank];
    const after = op + 1 < offsets[rank + 1] && ops[op + 1].joined ? op + 2 : op + 1;
    const source = blocker(op, after);
    const waitsFor = source < 0 ? "an op that is missing" : nameOf(order, ops[source]);
    return [{ rank, op: nameOf(order, ops[op]), waitsFor, later: source >= 0 && rankOf[source] === rank }];
  });
  return { start, end, ran, until, stops, needs };
}
