/** Choices of the interactive demo, the current choice, and the equivalent command. */

import type { ComparisonFacts } from "../records.js";
import { memoryForm } from "../report/memory_form.js";

/** Data that `docs/build/demo.py` writes into the page. */
export interface Choices {
  /** Computed combinations of ranks and microbatches. */
  readonly shapes: readonly (readonly [number, number])[];
  readonly presets: readonly Preset[];
  readonly transfers: readonly { readonly key: string; readonly title: string; readonly factor: number }[];
  readonly version: string;
}

export interface Preset {
  readonly key: string;
  readonly title: string;
  readonly origin: string;
  /** The options of a command line that set its costs, each with its value. */
  readonly options: readonly (readonly [string, number | string])[];
}

export interface Choice {
  readonly ranks: number;
  readonly microbatches: number;
  readonly costs: string;
  readonly transfer: string;
}

const FIRST_SHAPE = [8, 32] as const;
const TRANSFER = "--p2p-time";

/** Initial choice. */
export function first({ shapes, presets, transfers }: Choices): Choice {
  const [ranks, microbatches] = shapes.find(([p, m]) => p === FIRST_SHAPE[0] && m === FIRST_SHAPE[1]) ?? shapes[0];
  return { ranks, microbatches, costs: presets[0].key, transfer: transfers[0].key };
}

/** Return the choice of a fragment; missing parts and those that were not computed have their initial values. */
export function fromFragment(fragment: string, choices: Choices): Choice {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const begin = first(choices);
  const preset = choices.presets.find(({ key }) => key === parts.get("costs"));
  const transfer = choices.transfers.find(({ key }) => key === parts.get("transfer"));
  const requested = [parts.get("ranks"), parts.get("microbatches")].map(Number);
  const shape = choices.shapes.find(([p, m]) => p === requested[0] && m === requested[1]);
  return {
    ranks: shape?.[0] ?? begin.ranks,
    microbatches: shape?.[1] ?? begin.microbatches,
    costs: preset?.key ?? begin.costs,
    transfer: transfer?.key ?? begin.transfer,
  };
}

export function toParts({ ranks, microbatches, costs, transfer }: Choice): URLSearchParams {
  return new URLSearchParams({
    ranks: String(ranks),
    microbatches: String(microbatches),
    costs,
    transfer,
  });
}

/** Return the name of the file with the computed comparison. */
export function fileOf({ ranks, microbatches, costs, transfer }: Choice): string {
  return `${ranks}x${microbatches}-${costs}-${transfer}`;
}

/** Return the choice with other ranks, and the nearest computed number of microbatches. */
export function withRanks(choice: Choice, ranks: number, { shapes }: Choices): Choice {
  const distance = (microbatches: number) => Math.abs(Math.log(microbatches / choice.microbatches));
  const [, microbatches] = shapes
    .filter(([p]) => p === ranks)
    .reduce((best, length) => (distance(length[1]) < distance(best[1]) ? length : best));
  return { ...choice, ranks, microbatches };
}

/** Return the command that computes the same comparison, under the current limit. */
export function commandOf(choice: Choice, choices: Choices, comparison: ComparisonFacts, limit: number | null): string {
  const preset = choices.presets.find(({ key }) => key === choice.costs);
  const factor = choices.transfers.find(({ key }) => key === choice.transfer)?.factor ?? 1;
  const options = (preset?.options ?? []).flatMap(([name, value]): string[] => {
    const scaled = name === TRANSFER ? Number(value) * factor : value;
    return scaled === 0 ? [] : [`${name} ${scaled}`];
  });
  const shape = `--ranks ${choice.ranks} --microbatches ${choice.microbatches}`;
  const parts = ["pipeplan compare", shape, ...options];
  if (limit !== null) parts.push(`--memory-limit ${limitText(comparison, limit)}`);
  return [...parts, "--output comparison.html"].join(" ");
}

function limitText(comparison: ComparisonFacts, limit: number): string {
  const { divisor, unit } = memoryForm(comparison);
  const value = Number((limit / divisor).toPrecision(6));
  return unit === "activations" ? `${value}act` : `${value}${unit}`;
}
