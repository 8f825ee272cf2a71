/** What Python hands over to the page of a report: `report_data` in pipeplan.drawing.html, with facts by pipeplan.api.reports. */

import type { TimelineData } from "../data.js";

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

export type ReportData = ComparisonData;

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
