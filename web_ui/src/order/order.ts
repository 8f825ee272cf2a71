/**
 * An order of ops with all that its times depend on: what a page needs to simulate, show and edit a schedule by itself.
 *
 * Ops with equal kind, stage and costs share an `OpClass`, which is written once.
 */

import { floats, integers, type OpCostsJson, type ViewJson } from "../data.js";

/** Kind, place and costs of some ops; times in the unit of the order, `held` in its unit of memory. */
export interface OpClass {
  /** Name of the kind: `F`. */
  readonly kind: string;
  readonly stage: number;
  readonly chunk: number;
  readonly copy: number;
  /** Time of its computation; of an overlapped pair, the time of the pair. */
  readonly duration: number;
  /** Overhead that occupies the rank before its start and after its end. */
  readonly before: number;
  readonly behind: number;
  /** Time of the message with its result to another rank. */
  readonly delay: number;
  /** Memory that it allocates; negative if it frees memory. */
  readonly held: number;
}

export interface OrderedOp {
  /** Index of its class. */
  readonly of: number;
  readonly microbatch: number;
  readonly slice: number;
  /** Whether it is the second op of an overlapped pair. */
  readonly joined: boolean;
}

export interface OrderMemory {
  readonly unit: "activations" | "bytes";
  /** Memory that each rank holds throughout. */
  readonly base: readonly number[];
  readonly limit: readonly number[] | null;
}

export interface Order {
  readonly title: string;
  readonly unit: string;
  readonly chunks: number;
  readonly copies: number;
  readonly slices: number;
  readonly memory: OrderMemory | null;
  readonly classes: readonly OpClass[];
  /** Ops of each rank in their order. */
  readonly rows: readonly (readonly OrderedOp[])[];
}

/** Return the order of a view; null if the view has no costs, because a page cannot compute its times. */
export function orderOf(view: ViewJson): Order | null {
  const costs = view.order ?? null;
  if (costs === null) return null;
  const { bars, memory } = view;
  const [lane, kind, stage, chunk, copy] = [bars.lane, bars.kind, bars.stage, bars.chunk, bars.copy].map(integers);
  const [microbatch, slice, group] = [bars.microbatch, bars.slice, bars.group].map(integers);
  const index = integers(costs.index);
  const tables = tablesOf(costs);
  const numbers = new Map<string, number>();
  const classes: OpClass[] = [];
  const rows: OrderedOp[][] = view.lanes.label.map(() => []);
  for (let bar = 0; bar < lane.length; bar++) {
    const key = `${kind[bar]} ${stage[bar]} ${chunk[bar]} ${copy[bar]} ${index[bar]}`;
    let of = numbers.get(key);
    if (of === undefined) {
      of = classes.length;
      numbers.set(key, of);
      const place = { kind: view.kinds[kind[bar]], stage: stage[bar], chunk: chunk[bar], copy: copy[bar] };
      classes.push({ ...place, ...tables[index[bar]] });
    }
    const joined = group[bar] >= 0 && bar > 0 && lane[bar - 1] === lane[bar] && group[bar - 1] === group[bar];
    rows[lane[bar]].push({ of, microbatch: microbatch[bar], slice: slice[bar], joined });
  }
  return {
    title: view.title,
    unit: view.unit,
    chunks: view.chunks,
    copies: view.copies,
    slices: slice.reduce((most, value) => Math.max(most, value), 0) + 1,
    memory:
      memory === null
        ? null
        : {
            unit: memory.unit,
            base: [...floats(costs.base)],
            limit: memory.limit === null ? null : [...floats(memory.limit)],
          },
    classes,
    rows,
  };
}

/** Return the costs of an order, as a view has them. */
export function costsOf({ classes, rows, memory }: Order): OpCostsJson {
  const column = (name: keyof Costs) => classes.map((own) => own[name]);
  return {
    index: rows.flat().map(({ of }) => of),
    duration: column("duration"),
    before: column("before"),
    behind: column("behind"),
    delay: column("delay"),
    held: column("held"),
    base: memory?.base ?? rows.map(() => 0),
  };
}

type Costs = Pick<OpClass, "duration" | "before" | "behind" | "delay" | "held">;

function tablesOf(costs: OpCostsJson): Costs[] {
  const columns = [costs.duration, costs.before, costs.behind, costs.delay, costs.held].map(floats);
  return Array.from(columns[0], (duration, at) => ({
    duration,
    before: columns[1][at],
    behind: columns[2][at],
    delay: columns[3][at],
    held: columns[4][at],
  }));
}

/** Return the name of an op: `3F7`, `3F7.1`. */
export function nameOf(order: Order, op: OrderedOp): string {
  const { stage, kind } = order.classes[op.of];
  return `${stage}${kind}${op.microbatch}${op.slice > 0 ? `.${op.slice}` : ""}`;
}

/** Return the index of the first op of each unit of a row: a single op, or an overlapped pair. */
export function unitsOf(row: readonly OrderedOp[]): number[] {
  return row.flatMap((op, at) => (op.joined ? [] : [at]));
}

/**
 * Return the order with one op of a rank moved to position `to` among the others; the other op of its pair moves with it,
 * and a position within a pair is before it.
 */
export function moved(order: Order, rank: number, at: number, to: number): Order {
  const row = order.rows[rank];
  const from = row[at].joined ? at - 1 : at;
  const count = row[from + 1]?.joined ? 2 : 1;
  const unit = row.slice(from, from + count);
  const others = [...row.slice(0, from), ...row.slice(from + count)];
  // Of the other ops, those before the new position; the other op of the pair is none of them.
  let place = Math.min(Math.max(count === 2 && to > from ? to - 1 : to, 0), others.length);
  if (others[place]?.joined) place += to > at ? 1 : -1;
  others.splice(place, 0, ...unit);
  return { ...order, rows: order.rows.map((own, number) => (number === rank ? others : own)) };
}
