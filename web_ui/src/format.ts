/** Numbers as text. */

/** Units per second, as `TIME_UNITS` in pipeplan.model. */
const TIME_UNITS: Readonly<Record<string, number>> = { s: 1, ms: 1e3, us: 1e6, ns: 1e9 };

const DIGITS = 4;
const MOST_DECIMALS = 6;

/**
 * Number format of the times of one table, sentence or axis: one unit, the same decimals, so that sums add up.
 * It equals `Times` in pipeplan.foundation.readable: `web_ui/tests/readable.json` tests both against the same texts.
 */
export class Times {
  private constructor(
    /** Empty if the times have no unit (a forward is 1). */
    readonly unit: string,
    /** Factor from a time to the unit. */
    readonly scale: number,
    readonly decimals: number,
  ) {}

  /**
   * Return the format for times in a unit: the largest is between 1 and 1000 of the displayed unit, with four digits. Times in an
   * unknown unit, or without one, keep it. Decimals that are zero for every value are omitted.
   */
  static of(values: Iterable<number>, unit: string): Times {
    const magnitudes = [...values].map(Math.abs);
    const largest = magnitudes.reduce((most, value) => Math.max(most, value), 0);
    const [display, scale] = unitFor(largest, unit);
    return new Times(display, scale, needed(magnitudes, scale, largest > 0 ? decimalsOf(largest * scale) : 0));
  }

  /** Return a format that distinguishes times that differ by `step`: it shows three digits of it. */
  static fine(values: readonly number[], step: number, unit: string): Times {
    const { unit: display, scale, decimals } = Times.of(values, unit);
    const finer = step > 0 ? Math.max(decimalsOf(step * scale) - 1, decimals) : decimals;
    return new Times(display, scale, needed(values.map(Math.abs), scale, finer));
  }

  /** Return a time without its unit: `2.02`, `1,234`. */
  number(value: number): string {
    return unsignedZero(grouped(fixed(value * this.scale, this.decimals)));
  }

  /** Return the numbers of parts, rounded so that they add up to the `number` of their sum; a part of 0 stays 0. */
  parts(values: readonly number[]): string[] {
    let [total, before] = [0, 0];
    return values.map((value) => {
      total += value;
      const after = Number(fixed(total * this.scale, this.decimals));
      const text = unsignedZero(grouped(fixed(after - before, this.decimals)));
      before = after;
      return text;
    });
  }

  /** Return a time with its unit: `2.02 s`; without one `28.2`. */
  text(value: number): string {
    return `${this.number(value)} ${this.unit}`.trimEnd();
  }

  /** Return a difference with its sign: `+0.25`, `-3`, `0`. */
  signed(value: number): string {
    const text = this.number(value);
    return value > 0 && !/^[0.,]*$/.test(text) ? `+${text}` : text;
  }
}

/** Return one time in its most readable unit: `2.019 s` for 2,019,403 us. */
export function timeText(value: number, unit = ""): string {
  return Times.of([value], unit).text(value);
}

/** Return a share of a whole: `6.0%`; `0.0%` has no sign. */
export function percent(share: number): string {
  return `${unsignedZero(fixed(100 * share, 1))}%`;
}

/** Return a relative change: `+10.6%`, `-4.3%`; `0.0%` if it rounds to zero. */
export function change(share: number): string {
  const text = unsignedZero(fixed(100 * share, 1));
  return `${share > 0 && text !== "0.0" ? "+" : ""}${text}%`;
}

/** Return a difference with its sign. */
export function signed(value: number): string {
  return Times.of([value], "").signed(value);
}

/** Return the largest unit in which a time is at least 1, and the factor from the original unit. */
function unitFor(largest: number, unit: string): [string, number] {
  const own = TIME_UNITS[unit];
  if (own === undefined || !(largest > 0)) return [unit, 1];
  for (const [name, size] of Object.entries(TIME_UNITS)) {
    if ((largest * size) / own >= 1) return [name, size / own];
  }
  return ["ns", TIME_UNITS.ns / own];
}

/** Return the number of decimals, reduced if the last ones are zero for every value. */
function needed(values: readonly number[], scale: number, decimals: number): number {
  let left = decimals;
  while (left > 0 && values.every((value) => whole(value * scale, left - 1))) left -= 1;
  return left;
}

function decimalsOf(value: number): number {
  const magnitude = Number(value.toExponential().split("e")[1]);
  return Math.min(Math.max(DIGITS - 1 - magnitude, 0), MOST_DECIMALS);
}

/** Test whether a value keeps all its significant digits with this many decimals. */
function whole(value: number, decimals: number): boolean {
  const rounded = Number(fixed(value, decimals));
  return Math.abs(value - rounded) <= Math.max(1e-9 * Math.max(Math.abs(value), Math.abs(rounded)), 1e-12);
}

/** Format with a number of decimals; ties round to even, as in Python, whereas `toFixed` rounds them up. */
export function fixed(value: number, decimals: number): string {
  const size = Math.abs(value);
  const shifted = size * 10 ** decimals;
  const tie = shifted % 1 === 0.5 && Number.isInteger(size * 2 ** (decimals + 1));
  const text = (tie && Math.floor(shifted) % 2 === 0 ? Math.floor(shifted) / 10 ** decimals : size).toFixed(decimals);
  return value < 0 ? `-${text}` : text;
}

function grouped(text: string): string {
  const [before, after] = text.split(".");
  const thousands = before.replace(/\B(?=(\d{3})+$)/g, ",");
  return after === undefined ? thousands : `${thousands}.${after}`;
}

function unsignedZero(text: string): string {
  return /^-[0.,]*$/.test(text) ? text.slice(1) : text;
}

/** Return a predicted value with four significant digits. */
export function figure(value: number): string {
  if (value === 0) return "0";
  const decimals = 3 - Math.floor(Math.log10(Math.abs(value)));
  const digits = Math.min(Math.max(decimals, 0), 6);
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Return a count with its noun: `1 chunk`, `2,048 chunks`. */
export function countedAs(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export interface Scale {
  divisor: number;
  unit: string;
}

/** Divisor and unit of memory values. */
export function memoryScale(unit: "activations" | "bytes", highest: number): Scale {
  if (unit === "activations") return { divisor: 1, unit };
  const power = Math.min(Math.max(Math.floor(Math.log2(Math.max(highest, 1)) / 10), 0), BINARY.length - 1);
  return { divisor: 1024 ** power, unit: BINARY[power] };
}

export function memoryText(value: number, scale: Scale): string {
  return `${Number((value / scale.divisor).toPrecision(4))}`;
}

/** Heading of a column with peak memory, as in the shell. */
export function peakName(unit: string): string {
  return unit === "activations" ? "peak act." : `peak memory, ${unit}`;
}
