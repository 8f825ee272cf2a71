/**
 * An order as text for the fragment of an address: `VERSION.BASE64URL` of a zlib stream, which has a checksum.
 *
 * The bytes are a header as JSON, then two streams of numbers, each op's in the order of the rows: its class among those of
 * its rank in order of appearance, with its lowest bit set for the second op of a pair; and how far its microbatch and slice
 * are from those after the previous op of its class. Most ops repeat a pattern of a few classes and are next in turn, so
 * that an op takes a fraction of a bit.
 */

import type { OpClass, Order, OrderedOp, OrderMemory } from "./order.js";

const VERSION = "1";
/** Maximum number of ops of an order that a page reads, and of characters of its text. */
const MOST_OPS = 200_000;
const MOST_CHARACTERS = 4_000_000;

/** Maximum number of characters of a link; chat programs and mail truncate longer ones. */
export const LONGEST_LINK = 16_000;

const FIELDS = ["kind", "stage", "chunk", "copy", "duration", "before", "behind", "delay", "held"] as const;

interface Header {
  readonly title: string;
  readonly unit: string;
  readonly chunks: number;
  readonly copies: number;
  readonly slices: number;
  readonly memory: OrderMemory | null;
  /** Columns of the classes, in the order of `FIELDS`. */
  readonly classes: readonly (readonly (string | number)[])[];
  /** Number of ops of each rank, and its classes in order of appearance. */
  readonly ranks: readonly { readonly ops: number; readonly classes: readonly number[] }[];
}

/** Return the text of an order. */
export async function encode(order: Order): Promise<string> {
  const places = new Bytes();
  const turns = new Bytes();
  const ranks = order.rows.map((row) => {
    const numbers = new Map<number, number>();
    const last = new Map<number, number>();
    for (const op of row) {
      const own = numbers.get(op.of) ?? numbers.size;
      numbers.set(op.of, own);
      places.add(2 * own + Number(op.joined));
      const turn = op.microbatch * order.slices + op.slice;
      turns.addSigned(turn - (last.get(op.of) ?? -1) - 1);
      last.set(op.of, turn);
    }
    return { ops: row.length, classes: [...numbers.keys()] };
  });
  const { title, unit, chunks, copies, slices, memory, classes } = order;
  const columns = FIELDS.map((field) => classes.map((own) => own[field]));
  const header: Header = { title, unit, chunks, copies, slices, memory, classes: columns, ranks };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = new Bytes();
  length.add(text.length);
  const packed = await through(
    new Blob([length.array, text, places.array, turns.array]),
    new CompressionStream("deflate"),
  );
  return `${VERSION}.${toBase64(packed)}`;
}

/** Return the order of a text. Throws an error whose message is a sentence if the text is damaged or from another release. */
export async function decode(text: string): Promise<Order> {
  const [version, coded, ...rest] = text.split(".");
  if (version !== VERSION && /^\d+$/.test(version) && coded !== undefined)
    throw new Error(
      `This link is of version ${version}, and this page reads version ${VERSION}: open it in a newer page.`,
    );
  if (version !== VERSION || coded === undefined || rest.length > 0 || text.length > MOST_CHARACTERS) throw damaged();
  let order: Order;
  try {
    order = parsed(await through(new Blob([fromBase64(coded)]), new DecompressionStream("deflate")));
  } catch {
    throw damaged();
  }
  return order;
}

function damaged(): Error {
  return new Error("This link is damaged or incomplete: ask for it again, or for the page as a file.");
}

function parsed(bytes: Uint8Array): Order {
  const reader = new Reader(bytes);
  const header = JSON.parse(new TextDecoder().decode(reader.bytes(reader.next()))) as Header;
  const { title, unit, chunks, copies, slices, memory, ranks } = header;
  const classes = classesOf(header.classes);
  const count = ranks.reduce((sum, { ops }) => sum + natural(ops), 0);
  if (typeof title !== "string" || typeof unit !== "string" || count > MOST_OPS) throw new Error("no order");
  if (natural(chunks) * natural(copies) < 1 || natural(slices) < 1 || ranks.length < 1) throw new Error("no order");
  const places = Array.from({ length: count }, () => reader.next());
  const turns = Array.from({ length: count }, () => reader.nextSigned());
  let at = 0;
  const rows = ranks.map(({ ops, classes: own }) => {
    const last = new Map<number, number>();
    return Array.from({ length: ops }, (_, index): OrderedOp => {
      const of = own[places[at] >> 1];
      if (classes[of] === undefined) throw new Error("no such class");
      const turn = turns[at] + (last.get(of) ?? -1) + 1;
      last.set(of, turn);
      const joined = (places[at] & 1) === 1 && index > 0;
      at += 1;
      return { of, microbatch: Math.floor(natural(turn) / slices), slice: turn % slices, joined };
    });
  });
  return { title, unit, chunks, copies, slices, memory: memoryOf(memory, rows.length), classes, rows };
}

function classesOf(columns: Header["classes"]): OpClass[] {
  const [kinds, ...numbers] = columns;
  if (numbers.length !== FIELDS.length - 1 || numbers.some((column) => column.length !== kinds.length))
    throw new Error("columns differ");
  if (!kinds.every((kind) => /^[FBIWR]$/.test(String(kind))) || !numbers.flat().every(Number.isFinite))
    throw new Error("no such class");
  return kinds.map(
    (kind, at) =>
      Object.fromEntries(
        FIELDS.map((field, column) => [field, column === 0 ? kind : columns[column][at]]),
      ) as unknown as OpClass,
  );
}

function memoryOf(memory: OrderMemory | null, ranks: number): OrderMemory | null {
  if (memory === null) return null;
  const { unit, base, limit } = memory;
  const whole = (values: readonly number[]) => values.length === ranks && values.every(Number.isFinite);
  if (!["activations", "bytes"].includes(unit) || !whole(base) || (limit !== null && !whole(limit)))
    throw new Error("no memory");
  return { unit, base, limit };
}

function natural(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new Error("no count");
  return value;
}

/** Bytes of numbers, seven bits each, the lowest first. */
class Bytes {
  private readonly bytes: number[] = [];

  get array(): Uint8Array<ArrayBuffer> {
    return Uint8Array.from(this.bytes);
  }

  add(value: number): void {
    let rest = value;
    while (rest >= 128) {
      this.bytes.push((rest % 128) + 128);
      rest = Math.floor(rest / 128);
    }
    this.bytes.push(rest);
  }

  addSigned(value: number): void {
    this.add(value < 0 ? -2 * value - 1 : 2 * value);
  }
}

class Reader {
  private at = 0;

  constructor(private readonly data: Uint8Array) {}

  next(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 50; scale *= 128) {
      const byte = this.data[this.at++];
      if (byte === undefined) break;
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
    throw new Error("no number");
  }

  nextSigned(): number {
    const value = this.next();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  }

  bytes(count: number): Uint8Array {
    this.at += count;
    return this.data.subarray(this.at - count, this.at);
  }
}

async function through(blob: Blob, stream: CompressionStream | DecompressionStream): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Response(blob.stream().pipeThrough(stream)).arrayBuffer());
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
}
