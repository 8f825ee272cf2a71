/** One view, ready to draw: columns as typed arrays, and each lane's bars in tracks that can be searched by time. */

import { floats, integers, type PairsJson, VERSION, type ViewJson, type WindowsJson } from "./data.js";
import { Links } from "./links.js";
import { Part } from "./part.js";

/** Top and bottom of each part as shares of a lane's height; the same as in the static pictures. */
export const EDGES: readonly (readonly [number, number])[] = [
  [0.07, 0.93],
  [0.07, 0.5],
  [0.5, 0.93],
  [0.79, 0.93],
  [0.73, 0.83],
  [0.83, 0.93],
  [0.07, 0.21],
];

export const GAP_EDGES = [0.3, 0.7] as const;

/** Intervals of one lane and part by start; `reach[i]` is the latest end of the first `i + 1`, so both can be searched. */
export class Track {
  constructor(
    readonly part: number,
    readonly items: Int32Array,
    readonly start: Float64Array,
    readonly end: Float64Array,
    public code: Uint16Array,
    private readonly reach: Float64Array,
  ) {}

  /** Return the range (end excluded) of the intervals that are visible between two times. */
  between(from: number, to: number): [number, number] {
    return [firstAbove(this.reach, from), firstAtLeast(this.start, to)];
  }
}

export class Plot {
  readonly lanes: number;
  readonly lane: Int32Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly part: Int32Array;
  readonly kind: Int32Array;
  readonly chunk: Int32Array;
  readonly copy: Int32Array;
  readonly stage: Int32Array;
  readonly microbatch: Int32Array;
  readonly slice: Int32Array;
  readonly group: Int32Array;
  /** Colour index of each bar: kind * shades + shade, or a step of a scale. */
  code: Uint16Array;
  readonly shades: number;
  /** Tracks of each lane, strips last. */
  readonly tracks: readonly (readonly Track[])[];
  readonly memory: Memory | null;
  readonly gaps: Gaps | null;
  readonly windows: readonly IdleWindow[];
  readonly pairs: Pairs | null;
  readonly work: Float64Array;
  readonly firstStart: Float64Array;
  readonly lastEnd: Float64Array;
  readonly shortest: number;
  readonly shortestPair: number;
  private cachedLinks: Links | null = null;
  private scaled = false;

  constructor(
    readonly view: ViewJson,
    readonly index: number,
  ) {
    if (view.version !== VERSION) throw new Error(`a view of version ${view.version}; this page reads ${VERSION}`);
    const bars = view.bars;
    this.lanes = view.lanes.label.length;
    this.lane = integers(bars.lane);
    this.start = floats(bars.start);
    this.end = floats(bars.end);
    this.part = integers(bars.part);
    this.kind = integers(bars.kind);
    this.chunk = integers(bars.chunk);
    this.copy = integers(bars.copy);
    this.stage = integers(bars.stage);
    this.microbatch = integers(bars.microbatch);
    this.slice = integers(bars.slice);
    this.group = integers(bars.group);
    this.shades = view.copies * view.chunks;
    this.code = this.colourCodes();
    this.tracks = tracksOf(this);
    this.memory = view.memory === null ? null : new Memory(view.memory);
    this.gaps = view.gaps === null ? null : new Gaps(view.gaps, this.lanes);
    this.windows = windowsOf(view.windows ?? null);
    this.pairs = view.pairs === undefined ? null : new Pairs(view.pairs);
    this.work = floats(view.lanes.work);
    this.firstStart = floats(view.lanes.first_start);
    this.lastEnd = floats(view.lanes.last_end);
    this.shortest = this.shortestBar(() => true);
    this.shortestPair = this.shortestBar((bar) => this.part[bar] === Part.UPPER);
  }

  get bars(): number {
    return this.start.length;
  }

  /** Dependencies between ops; computed on first use, after the first picture. */
  get links(): Links {
    this.cachedLinks ??= new Links(this);
    return this.cachedLinks;
  }

  kindName(bar: number): string {
    return this.view.kinds[this.kind[bar]];
  }

  /** Return the bar in the op notation: `3F7`, `3F7.1`, `3UNSHARD`. */
  name(bar: number): string {
    return `${this.stage[bar]}${this.kindName(bar)}${this.number(bar)}`;
  }

  /** Return its microbatch, with its slice if that is not 0. */
  number(bar: number): string {
    if (this.microbatch[bar] < 0) return "";
    return this.slice[bar] > 0 ? `${this.microbatch[bar]}.${this.slice[bar]}` : `${this.microbatch[bar]}`;
  }

  /** Colour the bars by these codes; null restores the colours of their kinds. */
  recolour(codes: Uint16Array | null): void {
    this.scaled = codes !== null;
    this.code = codes ?? this.colourCodes();
    for (const track of this.tracks.flat()) track.code = codesOf(track.items, this.code);
  }

  private colourCodes(): Uint16Array {
    const code = new Uint16Array(this.start.length);
    for (let bar = 0; bar < code.length; bar++) {
      code[bar] = this.codeAs(bar, this.kind[bar]);
    }
    return code;
  }

  /** Return the colour code that a bar would have if it were of another kind; a scale colours all kinds alike. */
  codeAs(bar: number, kind: number): number {
    return this.scaled ? this.code[bar] : kind * this.shades + this.copy[bar] * this.view.chunks + this.chunk[bar];
  }

  private shortestBar(chosen: (bar: number) => boolean): number {
    let shortest = this.view.makespan || 1;
    for (let bar = 0; bar < this.bars; bar++) {
      const time = this.end[bar] - this.start[bar];
      if (time > 0 && time < shortest && chosen(bar)) shortest = time;
    }
    return shortest;
  }
}

/** Step curves of the memory of each lane. */
export class Memory {
  readonly unit: "activations" | "bytes";
  readonly offsets: Int32Array;
  readonly time: Float64Array;
  readonly level: Float64Array;
  readonly peak: Float64Array;
  readonly limit: Float64Array | null;
  /** Gathered parameters, as a part of the level. */
  readonly parameters: Float64Array | null;

  constructor(memory: NonNullable<ViewJson["memory"]>) {
    this.unit = memory.unit;
    this.offsets = integers(memory.offsets);
    this.time = floats(memory.time);
    this.level = floats(memory.level);
    this.peak = floats(memory.peak);
    this.limit = memory.limit === null ? null : floats(memory.limit);
    const parameters = memory.parameters ?? null; // pictures of older releases have none
    this.parameters = parameters === null ? null : floats(parameters);
  }

  /** Return the step of a lane that applies at a time. */
  stepAt(lane: number, time: number): number {
    const from = this.offsets[lane];
    const times = this.time.subarray(from, this.offsets[lane + 1]);
    return from + Math.max(0, firstAbove(times, time) - 1);
  }

  /** Return at most four lanes, in order: the first, the last, and those with the highest and the lowest peak. */
  lanesThatMatter(): number[] {
    const lanes = this.peak.length;
    if (lanes <= 4) return [...Array(lanes).keys()];
    const most = this.peak.indexOf(Math.max(...this.peak));
    const least = this.peak.indexOf(Math.min(...this.peak));
    return [...new Set([0, lanes - 1, most, least])].sort((one, other) => one - other);
  }
}

/** Idle times and their reasons, a track per lane. */
export class Gaps {
  readonly reasons: readonly string[];
  readonly lane: Int32Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly reason: Int32Array;
  readonly cause: Int32Array;
  readonly tracks: readonly Track[];
  /** Time by reason and lane. */
  readonly totals: readonly Float64Array[];

  constructor(gaps: NonNullable<ViewJson["gaps"]>, lanes: number) {
    this.reasons = gaps.reasons;
    this.lane = integers(gaps.lane);
    this.start = floats(gaps.start);
    this.end = floats(gaps.end);
    this.reason = integers(gaps.reason);
    this.cause = integers(gaps.cause);
    const code = Uint16Array.from(this.reason);
    const items: number[][] = Array.from({ length: lanes }, () => []);
    for (let gap = 0; gap < this.lane.length; gap++) items[this.lane[gap]].push(gap);
    this.totals = this.reasons.map(() => new Float64Array(lanes));
    for (let gap = 0; gap < this.lane.length; gap++) {
      this.totals[this.reason[gap]][this.lane[gap]] += this.end[gap] - this.start[gap];
    }
    this.tracks = items.map((places) => trackOf(Part.FULL, places, this.start, this.end, code));
  }
}

/** The lanes of each pair of stages, which all pairs of ops on these stages share. */
export class Pairs {
  /** Words for the communication: `all-to-all`. */
  readonly communication: string;
  readonly time: Float64Array;
  readonly exposed: Float64Array;
  readonly hidden: Float64Array;
  readonly offsets: Int32Array;
  readonly lane: Int32Array;
  readonly kind: Int32Array;
  readonly begin: Float64Array;
  readonly end: Float64Array;
  private readonly numbers: ReadonlyMap<string, number>;

  constructor(pairs: PairsJson) {
    this.communication = pairs.communication;
    [this.time, this.exposed, this.hidden] = [pairs.time, pairs.exposed, pairs.hidden].map(floats);
    [this.offsets, this.lane, this.kind] = [pairs.offsets, pairs.lane, pairs.kind].map(integers);
    [this.begin, this.end] = [pairs.begin, pairs.end].map(floats);
    const [forward, backward, inputs] = [pairs.forward, pairs.backward, pairs.inputs].map(integers);
    this.numbers = new Map([...forward].map((stage, pair) => [`${stage} ${backward[pair]} ${inputs[pair]}`, pair]));
  }

  /** Return the pair of stages of a forward and a backward, or -1. */
  of(plot: Plot, [forward, backward]: readonly [number, number]): number {
    const inputs = plot.kindName(backward) === "I" ? 1 : 0;
    return this.numbers.get(`${plot.stage[forward]} ${plot.stage[backward]} ${inputs}`) ?? -1;
  }
}

/** A window of time in which a memory limit makes a rank idle. */
export interface IdleWindow {
  readonly lane: number;
  readonly start: number;
  readonly end: number;
  readonly idle: number;
  readonly least: number;
  readonly kind: string;
}

function windowsOf(windows: WindowsJson | null): IdleWindow[] {
  if (windows === null) return [];
  const lane = integers(windows.lane);
  const [start, end, idle, least] = [windows.start, windows.end, windows.idle, windows.least].map(floats);
  return windows.kind.map((kind, at) => ({
    lane: lane[at],
    start: start[at],
    end: end[at],
    idle: idle[at],
    least: least[at],
    kind,
  }));
}

function tracksOf(plot: Plot): Track[][] {
  const items: number[][][] = Array.from({ length: plot.lanes }, () => EDGES.map(() => []));
  for (let bar = 0; bar < plot.bars; bar++) items[plot.lane[bar]][plot.part[bar]].push(bar);
  return items.map((parts) =>
    parts.flatMap((items, part) => (items.length > 0 ? [trackOf(part, items, plot.start, plot.end, plot.code)] : [])),
  );
}

function trackOf(part: number, places: number[], start: Float64Array, end: Float64Array, code: Uint16Array): Track {
  const sorted = places.every((item, at) => at === 0 || start[item] >= start[places[at - 1]]);
  if (!sorted) places.sort((one, other) => start[one] - start[other]);
  const items = Int32Array.from(places);
  const ends = Float64Array.from(items, (item) => end[item]);
  const reach = Float64Array.from(ends);
  for (let at = 1; at < reach.length; at++) reach[at] = Math.max(reach[at], reach[at - 1]);
  return new Track(
    part,
    items,
    Float64Array.from(items, (item) => start[item]),
    ends,
    codesOf(items, code),
    reach,
  );
}

function codesOf(items: Int32Array, code: Uint16Array): Uint16Array {
  return Uint16Array.from(items, (item) => code[item]);
}

/** Return the first index of a sorted array whose value is greater than this. */
export function firstAbove(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Return the first index of a sorted array whose value is at least this. */
export function firstAtLeast(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] >= value) high = middle;
    else low = middle + 1;
  }
  return low;
}
