/** What Python hands over to the page of a report: `report_data` in pipeplan.drawing.html, with facts by the answers. */

import type { Column, TimelineData } from "../data.js";

interface Common {
  readonly title: string;
  /** Each as `archive.ts` opens it, in the order of the facts' rows. */
  readonly views: readonly string[];
  readonly themes: TimelineData["themes"];
}

export interface ComparisonData extends Common {
  readonly kind: "comparison";
  readonly facts: Comparison;
}

export type ReportData = ComparisonData | DifferenceData;

export interface Comparison {
  readonly ranks: number;
  readonly microbatches: number;
  /** Of times; may be empty. */
  readonly unit: string;
  readonly memory_unit: "activations" | "bytes";
  /** The memory limit that the schedules were made for, in `memory_unit`. */
  readonly limit: number | null;
  readonly costs: Costs;
  /** Those within the limit first, the shortest first. */
  readonly rows: readonly Row[];
  readonly refused: readonly { readonly schedule: string; readonly message: string }[];
  readonly notes: readonly string[];
  /** What would change which one leads, a sentence each, where that was found out. */
  readonly changes?: readonly string[];
}

/** What a rank does and holds for one microbatch, on average over the ranks where they are not `even`. */
export interface Costs {
  readonly forward: number;
  readonly backward: number;
  readonly backward_input: number;
  readonly backward_weight: number;
  readonly even: boolean;
  readonly transfer: number;
  /** In bytes, where they are known. */
  readonly activation: number | null;
}

export interface Row {
  readonly schedule: string;
  readonly placement: string;
  readonly chunks: number;
  readonly makespan: number;
  /** Idle time as a share of all time. */
  readonly bubble: number;
  /** The most that a rank holds, in `memory_unit`, and which rank does. */
  readonly peak: number;
  readonly fullest: number;
  /** Within the limit that it was made for. */
  readonly fits: boolean;
  readonly bound: number;
  readonly bound_reason: string;
  /** Whether its rule looks at costs and limits: under another limit it may be another schedule. */
  readonly from_costs: boolean;
}

export interface DifferenceData extends Common {
  readonly kind: "difference";
  readonly facts: Difference;
}

/** A run beside its plan; the views are the plan and the run. */
export interface Difference {
  readonly unit: string;
  /** Of how many steps the run is one; empty for a single one. */
  readonly of: string;
  /** What came out, the headline first. */
  readonly sentences: readonly string[];
  /** Of the columns of `texts`. */
  readonly headings: readonly string[];
  /** Below the table. */
  readonly legend: string;
  readonly rows: readonly KindRow[];
  readonly ranks: readonly RankRow[];
  readonly notes: readonly string[];
  /** Where the scale of the ratios ends. */
  readonly reach: number;
  /** Measured over planned time of each op, in the order of the bars of either view. */
  readonly ratios: readonly [Column, Column];
}

/** The ops of one kind on one stage: how they are written in the table, and the numbers behind it. */
export interface KindRow {
  readonly texts: readonly string[];
  /** `3B`: what finds them in the timeline. */
  readonly notation: string;
  readonly kind: string;
  readonly stage: number;
  readonly ops: number;
  readonly planned: number;
  readonly measured: number;
  readonly ratio: number | null;
  /** What the step changes by if these ops alone take their measured times. */
  readonly effect: number;
}

export interface RankRow {
  readonly rank: number;
  readonly busy_planned: number;
  readonly busy_measured: number;
  readonly idle_planned: number;
  readonly idle_measured: number;
}
