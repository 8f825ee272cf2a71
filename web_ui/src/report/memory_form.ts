/** Format of all memory values of a comparison, in one unit. */

import { fixed, memoryScale } from "../format.js";
import type { ComparisonFacts } from "../records.js";

export interface MemoryForm {
  /** `GiB`, or `activations`. */
  readonly unit: string;
  /** The unit in a heading. */
  readonly short: string;
  /** Bytes or activations per unit. */
  readonly divisor: number;
  number(value: number): string;
  text(value: number): string;
}

export function memoryForm({ rows, memory_unit }: Pick<ComparisonFacts, "rows" | "memory_unit">): MemoryForm {
  const { unit, divisor } = memoryScale(memory_unit, Math.max(...rows.map(({ peak }) => peak)));
  const number = (value: number) => {
    const scaled = value / divisor;
    return memory_unit === "bytes" ? fixed(scaled, 1) : String(Number(scaled.toPrecision(4)));
  };
  const short = memory_unit === "bytes" ? unit : "act.";
  return { unit, short, divisor, number, text: (value) => `${number(value)} ${unit}` };
}
