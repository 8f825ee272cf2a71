/** Axes of the picture of a front, and the line that joins its points. */

export interface Axis {
  place(value: number): number;
  readonly ticks: readonly number[];
  text(value: number): string;
}

/** Approximate number of values written at an axis. */
const TICKS = 5;

/** An axis that shows all values with some room around them. */
export function axisOf(values: readonly number[], from: number, to: number): Axis {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = high > low ? 0.08 * (high - low) : 0.1 * Math.max(high, 1e-9);
  const first = Math.max(0, low - room);
  const last = high + room;
  const step = roundStep((last - first) / TICKS);
  const count = Math.floor(last / step + 1e-9) - Math.ceil(first / step - 1e-9) + 1;
  const ticks = Array.from({ length: count }, (_, at) => (Math.ceil(first / step - 1e-9) + at) * step);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return {
    place: (value) => from + ((value - first) / (last - first)) * (to - from),
    ticks,
    text: (value) => value.toFixed(digits),
  };
}

/** The next 1, 2 or 5 times a power of ten. */
function roundStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  return ([1, 2, 5].find((factor) => factor * power >= step * (1 - 1e-9)) ?? 10) * power;
}

/** A path along points from left to right that turns down where the next one is. */
export function staircase(points: readonly (readonly [number, number])[]): string {
  const sorted = [...points].sort((one, other) => one[0] - other[0]);
  return sorted
    .map(([x, y], at) => (at === 0 ? `M${x.toFixed(1)} ${y.toFixed(1)}` : `H${x.toFixed(1)}V${y.toFixed(1)}`))
    .join("");
}
