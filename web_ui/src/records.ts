/** What the server answers. Made from its records by `make web-ui`; do not edit it. */

import type { TimelineData } from "./data.js";

export type Value = number | string | boolean | readonly (number | string)[];
export type Settings = Readonly<Record<string, Value>>;

export const KIND_TITLES: Readonly<Record<string, string>> = {
  "F": "forward",
  "B": "backward",
  "I": "backward for inputs",
  "W": "backward for weights",
  "R": "recompute",
  "SEND_F": "send forward",
  "RECV_F": "receive forward",
  "SEND_B": "send backward",
  "RECV_B": "receive backward",
  "UNSHARD": "unshard",
  "RESHARD": "reshard",
  "REDUCE_GRAD": "reduce gradients",
  "OFFLOAD": "offload to the host",
  "RELOAD": "reload from the host",
  "WAIT_SEND_F": "wait for a send forward",
  "WAIT_SEND_B": "wait for a send backward",
  "WAIT_REDUCE_GRAD": "wait for reduced gradients"
};

export const REASON_TITLES: Readonly<Record<string, string>> = {
  "start-up": "start-up",
  "compute": "waits for compute",
  "transfer": "waits for a transfer",
  "imbalance": "slower stage",
  "memory": "held back by memory",
  "drain": "drain",
  "overhead": "gap between ops",
  "offload": "waits for a copy to the host",
  "reload": "waits for a copy back"
};

/** Best configuration, and its flags by trainer. */
export type BestConfiguration = {
  readonly step_time_s: number;
  readonly peak_memory_gib: number;
  readonly peak_memory_by_rank_gib: readonly number[];
  readonly breakdown: StepBreakdown;
  readonly memory_breakdown_by_rank_gib: readonly MemoryBreakdown[];
  readonly tokens_per_s: number;
  readonly flops: number;
  readonly mfu: number;
  readonly error_bar: ErrorBarRecord | null;
  readonly costs_from: Readonly<Record<string, string>>;
  readonly assumed: readonly string[];
  readonly configuration: ConfigurationRecord;
  readonly words: string;
  readonly layout: string;
  readonly recompute: string;
  readonly document: Readonly<Record<string, unknown>>;
  readonly flags: Readonly<Record<string, FlagsRecord>>;
};

/** Idle time as three ratios; see :class:`~pipeplan.model.timeline.Bubble`. */
export type BubbleRecord = {
  readonly idle_over_total: number;
  readonly over_ideal: number;
  readonly span: number;
};

/** Costs that come with pipeplan. */
export type BundledCosts = {
  readonly name: string;
  readonly origin: "measured" | "planned";
  readonly about: string;
};

/** One configuration of one's own, and its flags by trainer. */
export type ChosenConfiguration = {
  readonly step_time_s: number;
  readonly peak_memory_gib: number;
  readonly peak_memory_by_rank_gib: readonly number[];
  readonly breakdown: StepBreakdown;
  readonly memory_breakdown_by_rank_gib: readonly MemoryBreakdown[];
  readonly tokens_per_s: number;
  readonly flops: number;
  readonly mfu: number;
  readonly error_bar: ErrorBarRecord | null;
  readonly costs_from: Readonly<Record<string, string>>;
  readonly assumed: readonly string[];
  readonly configuration: ConfigurationRecord;
  readonly flags: Readonly<Record<string, FlagsRecord>>;
};

/** One configuration: its estimate as a row of `pipeplan estimate --json` with `flags` by trainer, and its timeline. */
export type ChosenReply = {
  readonly estimate: ChosenConfiguration;
  readonly timeline: TimelineData | null;
  readonly idle: number;
  readonly compare: CostsOfPlan;
};

/** GPUs, nodes, and the links inside of a node and between them; `joined` GPUs have the fast links. */
export type ClusterRecord = {
  readonly per_node: number;
  readonly nodes: number;
  readonly gpus: number;
  readonly joined: number;
  readonly inside: Link;
  readonly between: Link;
  readonly gpu: GpuRecord;
};

/** Schedules side by side: whose timelines are `drawn`, and which are too large to draw. */
export type CompareReply = {
  readonly results: readonly Result[];
  readonly refused: readonly RefusedSchedule[];
  readonly warnings: readonly string[];
  readonly least_bound: LeastBound;
  readonly drawn: readonly string[];
  readonly undrawn: readonly string[];
  readonly timeline: TimelineData | null;
};

/** Settings and schedules of a config file; `notes` say what cannot be taken over. */
export type ConfigReply = {
  /** By the names of the settings of a request. */
  readonly settings: Settings;
  readonly schedules: readonly string[];
  readonly notes: readonly string[];
};

/** What a configuration chooses, with the GPUs and microbatches that makes. */
export type ConfigurationRecord = {
  readonly sequence: number;
  readonly global_batch: number;
  readonly microbatch_size: number;
  readonly tensor: number;
  readonly pipeline: number;
  readonly context: number;
  readonly data: number;
  readonly expert: number;
  readonly expert_tensor: number;
  readonly chunks: number;
  readonly schedule: string;
  readonly group_size: number | null;
  readonly in_flight: number | null;
  readonly layers: readonly number[] | null;
  readonly sequence_parallel: boolean;
  readonly zero: 0 | 1 | 2 | 3;
  readonly precision: "bf16" | "fp16" | "fp8" | "mxfp8" | "nvfp4";
  readonly recompute: readonly string[];
  readonly recompute_by_stage: readonly (readonly string[])[] | null;
  readonly offload: number | readonly number[];
  readonly software: string;
  readonly op_gap: number | null;
  readonly gpus: number;
  readonly microbatches: number;
};

/** What compares schedules on a configuration's costs. */
export type CostsOfPlan = {
  /** By the names of the settings of a request. */
  readonly settings: Settings;
  readonly schedule: string;
};

/** Numbers of configurations that the planner considered. */
export type Counts = {
  readonly legal: number;
  readonly over_memory: number;
  readonly too_slow: number;
  readonly estimated: number;
};

/** What a search was free to decide and what it decided; `recomputed` and `offloaded` count microbatches by stage. */
export type Decided = {
  readonly choices: readonly ("offload" | "overlap" | "recompute" | "split" | "weight-order")[];
  readonly recomputed: readonly number[];
  readonly offloaded: readonly number[];
  readonly full_backwards: number;
  readonly split_backwards: number;
  readonly overlapped_pairs: number;
  readonly prices: Readonly<Record<string, Price>>;
  readonly microbatches: number;
};

/** What an edit begins with. */
export type EditBegin = {
  readonly name: string;
  readonly rows: string;
  readonly shape: EditedShape;
  readonly ops: number;
};

/** Verdict on a text, with what the last change did, whether trainers run it, and its timeline. */
export type EditReply = {
  readonly valid: boolean;
  readonly flaws: readonly Flaw[];
  readonly more: number;
  readonly over: readonly Flaw[];
  readonly notes: readonly string[];
  readonly shape: EditedShape | null;
  readonly result: Result | null;
  readonly stopped: StoppedRun | null;
  readonly changed: string;
  readonly trainers: readonly TrainerReply[] | null;
  readonly timeline: TimelineData | null;
};

/** The shape of the schedule that is edited: the rank of each stage for each copy of the model, microbatches and slices. */
export type EditedShape = {
  readonly placement: readonly (readonly number[])[];
  readonly microbatches: number;
  readonly slices: number;
};

/** Range of measured over predicted time in similar published runs, as factors and step times. */
export type ErrorBarRecord = {
  readonly low: number;
  readonly high: number;
  readonly step_time_s: readonly [number, number];
  readonly runs: readonly string[];
  readonly coverage: number;
};

/** A mixture of experts. */
export type Experts = {
  readonly count: number;
  readonly top_k: number;
  readonly width: number;
  readonly shared_width: number;
  readonly shared_gate: boolean;
  readonly leading_dense_layers: number;
  readonly every: number;
  readonly router_bias: boolean;
  readonly expert_bias: boolean;
  readonly nodes_a_token: number | null;
};

/** Figures of one schedule, and why its ranks idle. */
export type Explanation = {
  readonly schedule: string;
  readonly ranks: number;
  readonly chunks: number;
  readonly stages: number;
  readonly microbatches: number;
  readonly slices: number;
  readonly placement: readonly (number | readonly number[])[];
  readonly ops: number;
  readonly time_unit: string;
  readonly makespan: number;
  readonly spans: readonly number[];
  readonly work: readonly number[];
  readonly idle: readonly number[];
  readonly bubble: BubbleRecord;
  readonly peak_activation: readonly number[];
  readonly peak_bytes: readonly number[] | null;
  readonly fits: boolean;
  readonly over: OverLimitRecord | null;
  readonly lower_bound: number;
  readonly bound_reason: string;
  readonly gap: number | null;
  readonly warnings: readonly string[];
  readonly notes: readonly string[];
  readonly least_gap?: number | null;
  readonly step?: StepRecord;
  readonly found_by?: string;
  readonly optimal?: boolean;
  readonly evaluations?: number;
  readonly seconds?: number;
  readonly interrupted?: boolean;
  readonly compiled_after?: number | null;
  readonly placements?: readonly PlacementRecord[];
  readonly objective?: ObjectiveRecord;
  readonly jitter?: JitterRecord | null;
  readonly slow_rank?: SlowRankRecord | null;
  readonly communication?: "blocking" | "contended" | "edge";
  readonly decided?: Decided;
  readonly best_published?: PublishedSchedule | null;
  readonly gain?: number | null;
  readonly best_published_anywhere?: PublishedSchedule | null;
  readonly gain_anywhere?: number | null;
  readonly explain: Reasons;
};

/** One thing that is wrong: the setting or part of the request at fault, empty where none is, and a sentence. */
export type Fault = {
  readonly field: string;
  readonly message: string;
};

/** Why a request was refused. */
export type Faults = {
  readonly errors: readonly Fault[];
};

/** A setting as a field of a form. */
export type FieldOut = {
  readonly name: string;
  readonly kind: "count" | "number" | "per_stage" | "choice" | "text" | "flag" | "limit" | "stages" | "layers" | "layout" | "size" | "pairs" | "names" | "schedules" | "model" | "object" | "file" | "files";
  readonly title: string;
  readonly group: string;
  readonly unit: string;
  readonly help: string;
  /** What holds where nobody says, in a word or two. */
  readonly default: string;
  readonly hint: string;
  /** The words that it can be, its default first. */
  readonly choices: readonly string[];
  /** From, to and step. */
  readonly slider: readonly [number, number, number] | null;
  /** Settings whose value it takes where nobody says, the first that is given, each times a factor. */
  readonly follows: readonly (readonly [string, number])[];
  /** Values that people often give. */
  readonly suggestions: readonly string[];
};

/** Flags of one trainer, the files that they name, and warnings on what they cannot express. */
export type FlagsRecord = {
  readonly text: string;
  readonly files: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
};

/** One thing that is wrong. */
export type Flaw = {
  readonly rule: string;
  readonly message: string;
  readonly places: readonly Place[];
};

/** All groups and fields, in their order. */
export type FormOut = {
  readonly groups: readonly GroupOut[];
  readonly fields: readonly FieldOut[];
};

/** A file format: whether it is `written` and `read`, and whether a file of it holds `several` schedules. */
export type FormatEntry = {
  readonly name: string;
  readonly title: string;
  readonly ending: string;
  readonly written: boolean;
  readonly read: boolean;
  readonly several: boolean;
};

/** One line of a search under several limits: `progress`, each `point`, then the `front`; or `errors`. */
export type FrontLine = {
  readonly progress?: SearchStatus;
  readonly best?: string;
  readonly point?: FrontPointReply;
  readonly front?: FrontReply;
  readonly errors?: readonly Fault[];
};

/** Published schedule beside a front: its name, the peak of its worst rank, its objective. */
export type FrontMark = {
  readonly schedule: string;
  readonly peak: number;
  readonly value: number;
};

/** Best schedule under one limit, as pipeplan's JSON; `limit` is null without one. */
export type FrontPointReply = {
  readonly limit: number | null;
  readonly peak: number;
  readonly value: number;
  readonly text: string;
};

/** Time against memory beside published schedules, and what was gained over these. */
export type FrontReply = {
  readonly memory: "activations" | "bytes";
  readonly time_unit: string;
  readonly points: readonly FrontPointReply[];
  readonly published: readonly FrontMark[];
  readonly said: string;
};

/** A GPU as its data sheet has it; FLOP/s by format, bytes, bytes/s. */
export type GpuRecord = {
  readonly name: string;
  readonly peak: Readonly<Record<string, number>>;
  readonly memory_bytes: number;
  readonly memory_bandwidth: number;
  readonly host_bandwidth: number;
  readonly price: number | null;
  readonly source: string;
  readonly generation: string;
  readonly multiprocessors: number;
  readonly sustained: number;
};

/** A group of fields. */
export type GroupOut = {
  readonly name: string;
  readonly title: string;
  /** Whether its fields always show. */
  readonly open: boolean;
};

/** The objective when op times vary, and that of the best published schedule. */
export type JitterRecord = {
  readonly deviation: number;
  readonly mean: number;
  readonly p95: number;
  readonly published_p95: number | null;
};

/** Multi-head latent attention (MLA, DeepSeek-V2, arXiv 2405.04434 section 2.1). */
export type LatentAttention = {
  readonly query_rank: number | null;
  readonly key_value_rank: number;
  readonly nope_dim: number;
  readonly rope_dim: number;
  readonly value_dim: number;
};

/** Least lower bound of all placements that were compared: no schedule of any of them can be shorter. */
export type LeastBound = {
  readonly value: number;
  readonly reason: string;
  readonly placement: string;
  readonly chunks: number;
  readonly slices: number;
  readonly recomputing: boolean;
};

/** The link by which GPUs reach each other. */
export type Link = {
  readonly bandwidth: number;
  readonly latency: number;
  readonly peer_bandwidth: number | null;
};

/** Parts of a rank's peak memory, in GiB, which add up to it. */
export type MemoryBreakdown = {
  readonly weights: number;
  readonly gradients: number;
  readonly optimizer: number;
  readonly activations: number;
  readonly transient: number;
  readonly buffers: number;
};

/** Closest configuration if none fits: how far it is over the memory limit, and a remedy. */
export type MissRecord = {
  readonly step_time_s: number;
  readonly peak_memory_gib: number;
  readonly peak_memory_by_rank_gib: readonly number[];
  readonly breakdown: StepBreakdown;
  readonly memory_breakdown_by_rank_gib: readonly MemoryBreakdown[];
  readonly tokens_per_s: number;
  readonly flops: number;
  readonly mfu: number;
  readonly error_bar: ErrorBarRecord | null;
  readonly costs_from: Readonly<Record<string, string>>;
  readonly assumed: readonly string[];
  readonly configuration: ConfigurationRecord;
  readonly words: string;
  readonly layout: string;
  readonly recompute: string;
  readonly document: Readonly<Record<string, unknown>>;
  readonly over_by_gib: number;
  readonly change: string;
};

/** The shape of a decoder-only transformer. */
export type ModelShape = {
  readonly name: string;
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly vocabulary: number;
  readonly kv_heads: number | null;
  readonly head_dim: number | null;
  readonly ffn: number | null;
  readonly gated: boolean;
  readonly tied_embeddings: boolean;
  readonly norm: "layer" | "layer-no-bias" | "rms";
  readonly norms_a_layer: number;
  readonly bias_qkv: boolean;
  readonly bias_out: boolean;
  readonly bias_all: boolean;
  readonly qk_norm: boolean;
  readonly qk_norm_whole: boolean;
  readonly learned_positions: number | null;
  readonly attention_sinks: boolean;
  readonly sliding_window: number | null;
  readonly sliding_every: number;
  readonly chunked_windows: boolean;
  readonly latent: LatentAttention | null;
  readonly experts: Experts | null;
  readonly mtp_layers: number;
  readonly trained_sequence: number | null;
  readonly source: string;
  readonly norm_epsilon: number | null;
  readonly rope_theta: number | null;
};

/** What a search minimised, and its lower bound. */
export type ObjectiveRecord = {
  readonly name: "makespan" | "span";
  readonly of: "p95" | "plan" | "worst";
  readonly value: number;
  readonly lower_bound: number;
  readonly bound_reason: string;
  readonly gap: number;
};

/** Rank that is furthest over its memory limit: its peak and its limit; and how many other ranks are over theirs. */
export type OverLimitRecord = {
  readonly rank: number;
  readonly peak: number;
  readonly limit: number;
  readonly unit: "activations" | "bytes";
  readonly others: number;
};

/** Time on the critical path by kind of op and by stage, in gaps between ops, and in transfers and waiting. */
export type PathShares = {
  readonly by_kind: Readonly<Record<string, number>>;
  readonly by_stage: readonly number[];
  readonly overhead: number;
  readonly transfer: number;
  readonly ops: number;
};

/** A word of a text: the number of its line and its number there, from 0. */
export type Place = readonly [number, number];

/** What a search knows of a placement: the best proven bound, and the best value found; null where it cannot win. */
export type PlacementRecord = {
  readonly placement: string;
  readonly chunks: number;
  readonly lower_bound: number;
  readonly value: number | null;
};

/** The configuration to train a model with on a cluster, and why it is that one. */
export type Plan = {
  readonly heading: string;
  readonly miss: string;
  readonly model: ModelShape;
  readonly cluster: ClusterRecord;
  readonly objective: string;
  readonly memory_limit_gib: number;
  readonly best: BestConfiguration | null;
  readonly runners_up: readonly RunnerUpRecord[];
  readonly front: readonly PlannedConfiguration[];
  readonly sensitivity: readonly Sensitivity[];
  readonly closest_miss: MissRecord | null;
  readonly searched: SearchedRecord | null;
  readonly counts: Counts;
  readonly seconds: number;
  readonly complete: boolean;
  readonly optimality_gap: number | null;
  readonly left_out: readonly string[];
};

/** All groups and fields, in their order, and what time is spent on and memory held by. */
export type PlanFormOut = {
  readonly groups: readonly GroupOut[];
  readonly fields: readonly FieldOut[];
  readonly time: readonly ShareOut[];
  readonly memory: readonly ShareOut[];
};

/** One line while a plan is made: `progress`, then the `plan`; or `errors`. */
export type PlanLine = {
  readonly progress?: PlanStatus;
  readonly plan?: Plan;
  readonly errors?: readonly Fault[];
};

/** How far a plan is, as a share and in words, and the step time of its best configuration so far. */
export type PlanStatus = {
  readonly share: number;
  readonly said: string;
  readonly best_s: number | null;
};

/** A configuration of a plan: what is predicted of it, and how people and files say it. */
export type PlannedConfiguration = {
  readonly step_time_s: number;
  readonly peak_memory_gib: number;
  readonly peak_memory_by_rank_gib: readonly number[];
  readonly breakdown: StepBreakdown;
  readonly memory_breakdown_by_rank_gib: readonly MemoryBreakdown[];
  readonly tokens_per_s: number;
  readonly flops: number;
  readonly mfu: number;
  readonly error_bar: ErrorBarRecord | null;
  readonly costs_from: Readonly<Record<string, string>>;
  readonly assumed: readonly string[];
  readonly configuration: ConfigurationRecord;
  readonly words: string;
  readonly layout: string;
  readonly recompute: string;
  readonly document: Readonly<Record<string, unknown>>;
};

/** By which share recomputing or offloading makes the step longer, and what it saves on the rank that saves the most. */
export type Price = {
  readonly time: number;
  readonly memory: number;
  readonly rank: number;
  readonly in_bytes: boolean;
};

/** A published schedule that a search has to beat: its name, that of its placement, and its objective. */
export type PublishedSchedule = {
  readonly schedule: string;
  readonly placement: string;
  readonly value: number;
};

/** The best published schedule, and its objective. */
export type PublishedValue = {
  readonly name: string;
  readonly value: number;
};

/** Idle time by reason, a list by rank for each reason; then remedies, in figures and in words. */
export type Reasons = {
  readonly reasons: Readonly<Record<string, readonly number[]>>;
  readonly longest_waits: readonly (Wait | null)[];
  readonly per_microbatch: number;
  readonly critical_path: PathShares;
  readonly windows: readonly WindowRecord[];
  readonly what_ifs: readonly Remedy[];
  readonly sentences: readonly string[];
  readonly advice: string;
};

/** A schedule that cannot be had, and why. */
export type RefusedSchedule = {
  readonly field: string;
  readonly message: string;
  readonly schedule: string;
};

/** One change, and the step with it. */
export type Remedy = {
  readonly change: string;
  readonly kind: "chunks" | "costs" | "memory" | "microbatches" | "offload" | "recomputation" | "schedule";
  readonly makespan: number;
  readonly microbatches: number;
  readonly per_microbatch: number;
  readonly peak_activation: number;
  readonly peak_bytes: number | null;
  readonly fits: boolean;
  readonly gain: number;
  readonly helps: boolean;
};

/** Figures of one schedule on one set of costs. */
export type Result = {
  readonly schedule: string;
  readonly ranks: number;
  readonly chunks: number;
  readonly stages: number;
  readonly microbatches: number;
  readonly slices: number;
  readonly placement: readonly (number | readonly number[])[];
  readonly ops: number;
  readonly time_unit: string;
  readonly makespan: number;
  readonly spans: readonly number[];
  readonly work: readonly number[];
  readonly idle: readonly number[];
  readonly bubble: BubbleRecord;
  readonly peak_activation: readonly number[];
  readonly peak_bytes: readonly number[] | null;
  readonly fits: boolean;
  readonly over: OverLimitRecord | null;
  readonly lower_bound: number;
  readonly bound_reason: string;
  readonly gap: number | null;
  readonly warnings: readonly string[];
  readonly notes: readonly string[];
  readonly least_gap?: number | null;
  readonly step?: StepRecord;
  readonly found_by?: string;
  readonly optimal?: boolean;
  readonly evaluations?: number;
  readonly seconds?: number;
  readonly interrupted?: boolean;
  readonly compiled_after?: number | null;
  readonly placements?: readonly PlacementRecord[];
  readonly objective?: ObjectiveRecord;
  readonly jitter?: JitterRecord | null;
  readonly slow_rank?: SlowRankRecord | null;
  readonly communication?: "blocking" | "contended" | "edge";
  readonly decided?: Decided;
  readonly best_published?: PublishedSchedule | null;
  readonly gain?: number | null;
  readonly best_published_anywhere?: PublishedSchedule | null;
  readonly gain_anywhere?: number | null;
};

/** Another configuration, and why it is not the best. */
export type RunnerUpRecord = {
  readonly step_time_s: number;
  readonly peak_memory_gib: number;
  readonly peak_memory_by_rank_gib: readonly number[];
  readonly breakdown: StepBreakdown;
  readonly memory_breakdown_by_rank_gib: readonly MemoryBreakdown[];
  readonly tokens_per_s: number;
  readonly flops: number;
  readonly mfu: number;
  readonly error_bar: ErrorBarRecord | null;
  readonly costs_from: Readonly<Record<string, string>>;
  readonly assumed: readonly string[];
  readonly configuration: ConfigurationRecord;
  readonly words: string;
  readonly layout: string;
  readonly recompute: string;
  readonly document: Readonly<Record<string, unknown>>;
  readonly lost_because: string;
};

/** One line of a search: `progress`, the `best` schedule so far as pipeplan's JSON, the result, or `errors`. */
export type SearchLine = {
  readonly progress?: SearchStatus;
  readonly best?: string;
  readonly found?: SearchReply;
  readonly errors?: readonly Fault[];
};

/** Result of a search, and what it gained over published schedules, a sentence each. */
export type SearchReply = {
  readonly schedule: string;
  readonly ranks: number;
  readonly chunks: number;
  readonly stages: number;
  readonly microbatches: number;
  readonly slices: number;
  readonly placement: readonly (number | readonly number[])[];
  readonly ops: number;
  readonly time_unit: string;
  readonly makespan: number;
  readonly spans: readonly number[];
  readonly work: readonly number[];
  readonly idle: readonly number[];
  readonly bubble: BubbleRecord;
  readonly peak_activation: readonly number[];
  readonly peak_bytes: readonly number[] | null;
  readonly fits: boolean;
  readonly over: OverLimitRecord | null;
  readonly lower_bound: number;
  readonly bound_reason: string;
  readonly gap: number | null;
  readonly warnings: readonly string[];
  readonly notes: readonly string[];
  readonly least_gap?: number | null;
  readonly step?: StepRecord;
  readonly found_by?: string;
  readonly optimal?: boolean;
  readonly evaluations?: number;
  readonly seconds?: number;
  readonly interrupted?: boolean;
  readonly compiled_after?: number | null;
  readonly placements?: readonly PlacementRecord[];
  readonly objective?: ObjectiveRecord;
  readonly jitter?: JitterRecord | null;
  readonly slow_rank?: SlowRankRecord | null;
  readonly communication?: "blocking" | "contended" | "edge";
  readonly decided?: Decided;
  readonly best_published?: PublishedSchedule | null;
  readonly gain?: number | null;
  readonly best_published_anywhere?: PublishedSchedule | null;
  readonly gain_anywhere?: number | null;
  readonly said: readonly string[];
};

/** How far a search is: the share of its budget that is spent, what it found and proved so far. */
export type SearchStatus = {
  readonly share: number;
  readonly value: number;
  readonly bound: number;
  readonly found_by: string;
  readonly evaluations: number;
  readonly seconds: number;
  readonly published: PublishedValue | null;
};

/** A finalist with a better order of ops than the published ones. */
export type SearchedRecord = {
  readonly step_time_s: number;
  readonly peak_memory_gib: number;
  readonly peak_memory_by_rank_gib: readonly number[];
  readonly breakdown: StepBreakdown;
  readonly memory_breakdown_by_rank_gib: readonly MemoryBreakdown[];
  readonly tokens_per_s: number;
  readonly flops: number;
  readonly mfu: number;
  readonly error_bar: ErrorBarRecord | null;
  readonly costs_from: Readonly<Record<string, string>>;
  readonly assumed: readonly string[];
  readonly configuration: ConfigurationRecord;
  readonly words: string;
  readonly layout: string;
  readonly recompute: string;
  readonly document: Readonly<Record<string, unknown>>;
  readonly instead_of_s: number;
  readonly found_by: string;
  readonly optimality_gap: number;
};

/** Effect of one changed input on the chosen plan. */
export type Sensitivity = {
  readonly input: string;
  readonly factor: number;
  readonly step_time: number;
  readonly changes: boolean;
  readonly instead: string;
};

/** A schedule on one shape where a forward takes 1, each half of a backward too, and transfers nothing. */
export type ShapeTiming = {
  readonly ranks: number;
  readonly microbatches: number;
  readonly makespan: number | null;
  readonly idle: number | null;
  readonly peak: number | null;
  readonly refused: string | null;
};

/** A part of a bar. */
export type ShareOut = {
  /** As in `breakdown`, without its unit. */
  readonly key: string;
  readonly title: string;
  /** Its colour on a light page. */
  readonly light: string;
  readonly dark: string;
};

/** The objective when one rank is slower by a share, each in turn, and that of the best published schedule. */
export type SlowRankRecord = {
  readonly share: number;
  readonly mean: number;
  readonly worst: number;
  readonly published_worst: number | null;
};

/** Parts of a step's time, in seconds, which add up to it. */
export type StepBreakdown = {
  readonly compute_s: number;
  readonly recompute_s: number;
  readonly tensor_s: number;
  readonly context_s: number;
  readonly expert_s: number;
  readonly bubble_s: number;
  readonly overhead_s: number;
  readonly data_s: number;
  readonly optimizer_s: number;
};

/** Time of a step with what it adds behind its last op: with a barrier at its end, and without one. */
export type StepRecord = {
  readonly with_barrier: number;
  readonly without_barrier: number;
};

/** As far as a schedule runs, and behind it what never does: how many ops run until when, and where ranks stop. */
export type StoppedRun = {
  readonly until: number;
  readonly ran: number;
  readonly ops: number;
  readonly waiting: readonly Waiting[];
};

/** Description of a strategy: shapes, published bubble and memory, paper; timings only for a single strategy. */
export type StrategyRecord = {
  readonly name: string;
  readonly title: string;
  readonly placement: string;
  readonly chunks: number | null;
  readonly default_chunks: number;
  readonly accepts: string;
  readonly bubble: string;
  readonly memory: string;
  readonly paper: string;
  readonly aliases: readonly string[];
  readonly variants: readonly string[];
  readonly timings?: readonly ShapeTiming[];
};

/** Whether a trainer runs a text, in which format, and the reason if it does not. */
export type TrainerReply = {
  readonly trainer: string;
  readonly format: string;
  readonly runs: boolean;
  readonly reason: string;
};

/** Longest idle gap of a rank that ends when what it waits for arrives. */
export type Wait = {
  readonly rank: number;
  readonly start: number;
  readonly end: number;
  readonly op: string;
  readonly from_rank: number | null;
};

/** Place where a rank stops: its first op that never runs, that op's words, and a sentence on what it waits for. */
export type Waiting = {
  readonly rank: number;
  readonly position: number;
  readonly op: string;
  readonly message: string;
  readonly places: readonly Place[];
};

/** Stretch of time in which a memory limit keeps round trips apart. */
export type WindowRecord = {
  readonly rank: number | null;
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly idle: number;
  readonly least_length: number;
  readonly least_idle: number;
};
