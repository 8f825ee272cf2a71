/** Sizes in bytes as text with a unit: `40GiB`. */

const UNITS: readonly (readonly [string, number])[] = [
  ["TiB", 2 ** 40],
  ["GiB", 2 ** 30],
  ["MiB", 2 ** 20],
  ["KiB", 2 ** 10],
  ["TB", 1e12],
  ["GB", 1e9],
  ["MB", 1e6],
  ["KB", 1e3],
  ["B", 1],
];

/** Maximum number of digits of a size that is written with a unit. */
const DIGITS = 6;

/** The bytes of `1.5GiB`; null for text that is not a size with a unit. */
export function bytesOf(text: string): number | null {
  const match = /^([0-9.]+(?:e[+-]?\d+)?)\s*([KMGT]i?B|B)$/i.exec(text.trim());
  if (match === null) return null;
  const unit = UNITS.find(([name]) => name.toLowerCase() === match[2].toLowerCase());
  const number = Number(match[1]);
  return unit === undefined || !Number.isFinite(number) ? null : number * unit[1];
}

/** The shortest way to write this many bytes exactly: `3.46875GiB`, or all digits if no unit needs fewer. */
export function sizeText(bytes: number): string {
  for (const [name, size] of UNITS.slice(0, 4)) {
    const count = bytes / size;
    if (count >= 1 && count === Number(count.toPrecision(DIGITS))) return `${count}${name}`;
  }
  return String(bytes);
}
