/** Numbers as people read them. */

/** A time with at most six significant digits. */
export function timeText(value: number, unit = ""): string {
  const text = String(Number(value.toPrecision(6)));
  return unit === "" ? text : `${text} ${unit}`;
}

/** A difference with its sign. */
export function signed(value: number): string {
  const text = String(Number(Math.abs(value).toPrecision(3)));
  return text === "0" ? "\u00b10" : `${value < 0 ? "\u2212" : "+"}${text}`;
}

export function percent(share: number): string {
  const text = (100 * share).toFixed(1);
  return `${text === "-0.0" ? "0.0" : text}%`;
}

/** A prediction, which is not worth more than four digits. */
export function figure(value: number): string {
  if (value === 0) return "0";
  const decimals = 3 - Math.floor(Math.log10(Math.abs(value)));
  const digits = Math.min(Math.max(decimals, 0), 6);
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** So many of something: `1 chunk`, `2,048 chunks`. */
export function countedAs(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export interface Scale {
  divisor: number;
  unit: string;
}

/** What to divide memory by, and the unit that this gives. */
export function memoryScale(unit: "activations" | "bytes", highest: number): Scale {
  if (unit === "activations") return { divisor: 1, unit };
  const power = Math.min(Math.max(Math.floor(Math.log2(Math.max(highest, 1)) / 10), 0), BINARY.length - 1);
  return { divisor: 1024 ** power, unit: BINARY[power] };
}

export function memoryText(value: number, scale: Scale): string {
  return `${Number((value / scale.divisor).toPrecision(4))}`;
}
