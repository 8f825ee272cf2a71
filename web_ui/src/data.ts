/** Data from Python: the types of `timeline_data` in pipeplan.drawing.html, and the decoding of columns. */

export const VERSION = 1;

/** A list of numbers, or `TYPE:BASE64` of a little-endian numpy array, such as `f8:AAAAAAAA8D8=`. */
export type Column = ArrayLike<number> | string;

export interface LanesJson {
  label: readonly string[];
  first_start: Column;
  last_end: Column;
  work: Column;
}

export interface BarsJson {
  lane: Column;
  start: Column;
  end: Column;
  part: Column;
  kind: Column;
  chunk: Column;
  copy: Column;
  stage: Column;
  microbatch: Column;
  slice: Column;
  group: Column;
}

export interface MemoryJson {
  unit: "activations" | "bytes";
  offsets: Column;
  time: Column;
  level: Column;
  peak: Column;
  limit: Column | null;
  parameters?: Column | null;
}

export interface GapsJson {
  lane: Column;
  start: Column;
  end: Column;
  reason: Column;
  cause: Column;
  reasons: readonly string[];
}

/** Windows of time in which a memory limit makes a rank idle in any order of its ops. */
export interface WindowsJson {
  lane: Column;
  start: Column;
  end: Column;
  idle: Column;
  least: Column;
  kind: readonly string[];
}

/** Costs of each bar, with which a page computes the times of another order: rows of a table, by `index`. */
export interface OpCostsJson {
  index: Column;
  duration: Column;
  before: Column;
  behind: Column;
  delay: Column;
  held: Column;
  /** Memory that each lane holds throughout. */
  base: Column;
}

/** Compute and communication lanes of overlapped pairs, once for each pair of stages. */
export interface PairsJson {
  /** Words for the communication, such as `all-to-all`. */
  communication: string;
  /** Stages of the forward and of the backward, and 1 if the backward is an I. */
  forward: Column;
  backward: Column;
  inputs: Column;
  time: Column;
  exposed: Column;
  hidden: Column;
  /** Pieces `offsets[i]` to `offsets[i + 1]` are those of pair i. */
  offsets: Column;
  /** Lane of each piece (0: computation, 1: communication), kind of its op, and times from the start of the pair. */
  lane: Column;
  kind: Column;
  begin: Column;
  end: Column;
}

/** Marks on the timeline of an edited schedule; set by the page, not by Python. */
export interface EditMarks {
  /** End of the last op that runs; later ops never run. Null if all ops run. */
  until: number | null;
  /** Bars of invalid ops. */
  wrong: readonly number[];
  /** Bar of the selected op, -1 for none. */
  lit: number;
}

export interface ViewJson {
  version: number;
  title: string;
  unit: string;
  source: "simulated" | "measured" | "order";
  makespan: number;
  idle_over_total: number;
  chunks: number;
  copies: number;
  kinds: readonly string[];
  parts: readonly string[];
  waits: readonly string[];
  lanes: LanesJson;
  bars: BarsJson;
  links: { source: Column; target: Column; why: Column };
  memory: MemoryJson | null;
  gaps: GapsJson | null;
  /** Lower bound on schedules within the limits, and its reason. */
  bound?: string;
  windows?: WindowsJson | null;
  /** Null if a page cannot compute the times of another order. */
  order?: OpCostsJson | null;
  /** Absent without overlapped pairs whose segments are known. */
  pairs?: PairsJson;
  judged?: EditMarks;
}

export type ThemeName = "light" | "dark";

export interface ThemeJson {
  name: ThemeName;
  page: string;
  lane: string;
  grid: string;
  text: string;
  faint: string;
  limit: string;
  kinds: Record<string, { title: string; fill: readonly string[]; ink: readonly string[] }>;
  reasons: Record<string, { title: string; fill: string }>;
  curves: readonly string[];
}

/** Ratio of each op, which determines its colour, such as measured over planned time; 0 for an op without one. */
export interface ScaleJson {
  title: string;
  /** Words for ratios below 1 and above 1: `["faster", "slower"]`. */
  ends: readonly [string, string];
  /** Ratio at the upper end of the scale, above 1; null to derive it from the ratios. */
  reach: number | null;
  /** Ratios by view, in the order of its bars; null for a view that keeps the colours of its kinds. */
  values: readonly (Column | null)[];
}

export interface TimelineData {
  views: readonly ViewJson[];
  scale?: ScaleJson | null;
  /** Themes by the number of shades that a view needs: `copies * chunks`. */
  themes: Record<ThemeName, Record<string, ThemeJson>>;
}

type Numbers = Int8Array | Uint8Array | Int16Array | Int32Array | Float32Array | Float64Array;

const READERS: Record<string, (buffer: ArrayBuffer) => Numbers> = {
  i1: (buffer) => new Int8Array(buffer),
  u1: (buffer) => new Uint8Array(buffer),
  i2: (buffer) => new Int16Array(buffer),
  i4: (buffer) => new Int32Array(buffer),
  f4: (buffer) => new Float32Array(buffer),
  f8: (buffer) => new Float64Array(buffer),
};

/** Decode a column as floats. */
export function floats(column: Column): Float64Array {
  const values = typeof column === "string" ? unpack(column) : column;
  return values instanceof Float64Array ? values : new Float64Array(values);
}

/** Decode a column as integers. */
export function integers(column: Column): Int32Array {
  const values = typeof column === "string" ? unpack(column) : column;
  return values instanceof Int32Array ? values : new Int32Array(values);
}

function unpack(packed: string): Numbers {
  const reader = READERS[packed.slice(0, 2)];
  if (reader === undefined || packed[2] !== ":") throw new Error(`no such column: ${packed.slice(0, 16)}`);
  const text = atob(packed.slice(3));
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return reader(bytes.buffer);
}
