/** Views as `archived` in pipeplan.drawing.html writes them: deflated columns, mostly differences from row to row. */

import type { Column, ViewJson } from "../data.js";

/** Decode a view from its text. */
export async function opened(text: string): Promise<ViewJson> {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return viewIn(await inflated(packed));
}

/** Decode a view from inflated bytes. */
export function viewIn(bytes: Uint8Array): ViewJson {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as { times: Column; view: ViewJson };
  const body = bytes.subarray(4 + length);
  const times = columnOf(head.times, body, new Float64Array());
  const { title, unit } = head.view; // texts of the user, which are never columns
  return { ...(filled(head.view, body, times) as ViewJson), title, unit };
}

export async function inflated(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Return the same value with every column decoded. */
function filled(value: unknown, body: Uint8Array, times: ArrayLike<number>): unknown {
  if (typeof value === "string" && value.startsWith("@")) return columnOf(value, body, times);
  if (Array.isArray(value) || typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, own]) => [name, filled(own, body, times)]));
}

const CODING = /^@(\d+):(\d+):([itf])([1248])(?:\/(\d+))?$/;

function columnOf(column: Column, body: Uint8Array, times: ArrayLike<number>): ArrayLike<number> {
  if (typeof column !== "string") return column;
  const [, offset, count, coding, width, parts] = CODING.exec(column) ?? [];
  if (coding === undefined) throw new Error(`no such column: ${column.slice(0, 32)}`);
  const values = ofPlanes(body.subarray(Number(offset)), Number(count), Number(width));
  if (coding === "f") return width === "4" ? new Float32Array(values.buffer) : new Float64Array(values.buffer);
  const steps = { 1: Int8Array, 2: Int16Array, 4: Int32Array }[width];
  if (steps === undefined) throw new Error(`no such column: ${column}`);
  const sums = summed(new steps(values.buffer), Number(parts ?? 1));
  return coding === "t" ? sums.map((place) => times[place]) : sums;
}

/** Return bytes in the order of numbers, from planes of bytes with the lowest first. */
function ofPlanes(bytes: Uint8Array, count: number, width: number): Uint8Array<ArrayBuffer> {
  const values = new Uint8Array(count * width);
  for (let at = 0; at < count; at++) {
    for (let plane = 0; plane < width; plane++) values[at * width + plane] = bytes[plane * count + at];
  }
  return values;
}

function summed(steps: ArrayLike<number>, parts: number): Float64Array {
  const sums = new Float64Array(steps.length);
  let sum = 0;
  for (let at = 0; at < sums.length; at++) {
    sum += steps[at];
    sums[at] = sum / parts;
  }
  return sums;
}
