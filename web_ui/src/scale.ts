/** Places of values along a line, and the text next to it. */

export interface Scale {
  readonly low: number;
  readonly high: number;
  place(value: number): number;
  /** Return the value at a pixel, within the ends. */
  at(place: number): number;
  /** Return about `count` round values between the ends. */
  ticks(count: number): readonly number[];
}

export function scaleOf(low: number, high: number, from: number, to: number): Scale {
  const span = high > low ? high - low : 1;
  return {
    low,
    high,
    place: (value) => from + ((value - low) / span) * (to - from),
    at: (place) => Math.min(Math.max(low + ((place - from) / (to - from)) * span, low), high),
    ticks: (count) => roundValues(low, high, count),
  };
}

/** Return about `count` round values between two values. */
export function roundValues(low: number, high: number, count: number): number[] {
  if (!(high > low)) return [low];
  const step = roundStep((high - low) / count);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** Return the next larger 1, 2 or 5 times a power of ten. */
export function roundStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  return ([1, 2, 5].find((factor) => factor * power >= step * (1 - 1e-9)) ?? 10) * power;
}
