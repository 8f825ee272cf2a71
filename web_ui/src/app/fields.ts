/** The fields of the form: a setting each, with what it is called and between what its slider moves. */

export type Group = "shape" | "times" | "details" | "memory" | "more";

export interface Field {
  /** The setting's name, as everywhere else. */
  readonly name: string;
  readonly label: string;
  readonly group: Group;
  /** What holds where nothing is said. */
  readonly fallback: string;
  readonly hint?: string;
  /** Whether there may be one value per stage. */
  readonly perStage?: boolean;
  /** The slider's smallest value, its largest one as long as the value is not larger, and its step. */
  readonly slider?: readonly [number, number, number];
  readonly choices?: readonly string[];
  readonly flag?: boolean;
}

export const FIELDS: readonly Field[] = [
  { name: "ranks", label: "Ranks", group: "shape", fallback: "4", slider: [1, 64, 1] },
  { name: "microbatches", label: "Microbatches", group: "shape", fallback: "8", slider: [1, 256, 1] },
  { name: "chunks", label: "Chunks a rank", group: "shape", fallback: "own", slider: [1, 8, 1] },
  time("forward_times", "Forward, F", "1"),
  time("backward_input_times", "Backward for inputs, I", "1"),
  time("backward_weight_times", "Backward for weights, W", "1"),
  { name: "p2p_time", label: "Transfer", group: "times", fallback: "0", slider: [0, 2, 0.05] },
  {
    name: "backward_times",
    label: "Full backward, B",
    group: "details",
    fallback: "I + W",
    perStage: true,
    hint: "With I and W empty, each is half of it.",
  },
  {
    name: "overlap_times",
    label: "Overlapped F and B",
    group: "details",
    fallback: "their sum",
    perStage: true,
  },
  {
    name: "times_per",
    label: "One number is for",
    group: "details",
    fallback: "rank",
    choices: ["rank", "stage"],
    hint: "All the chunks of a rank together, or each stage.",
  },
  {
    name: "communication",
    label: "A transfer",
    group: "details",
    fallback: "edge",
    choices: ["edge", "blocking", "contended"],
    hint: "edge: delays what waits for it; blocking: occupies both ranks; contended: one at a time on a link.",
  },
  { name: "p2p_bytes", label: "Bytes of a transfer", group: "details", fallback: "0" },
  { name: "p2p_bandwidth", label: "Bandwidth, bytes a time", group: "details", fallback: "unlimited" },
  { name: "time_unit", label: "Unit of the times", group: "details", fallback: "none", hint: "Such as us or ms." },
  {
    name: "pad_times",
    label: "Make lists fit",
    group: "details",
    fallback: "",
    flag: true,
    hint: "Repeat the last value of a list that is too short, cut a longer one.",
  },
  {
    name: "memory_limit",
    label: "Limit of every rank",
    group: "memory",
    fallback: "none",
    hint: "12GiB, bytes or 8act.",
  },
  { name: "activation_bytes", label: "Activation bytes", group: "memory", fallback: "none", perStage: true },
  {
    name: "weight_activation_bytes",
    label: "The part that only W frees",
    group: "memory",
    fallback: "all of it",
    perStage: true,
  },
  { name: "static_bytes", label: "Static bytes", group: "memory", fallback: "0", perStage: true },
  { name: "group_size", label: "Group size", group: "more", fallback: "the ranks", hint: "Of interleaved schedules." },
  { name: "slices", label: "Slices", group: "more", fallback: "2", hint: "Of a sequence, for seq1f1b." },
  { name: "variant", label: "Variant", group: "more", fallback: "the first" },
];

export const GROUPS: Readonly<Record<Group, string>> = {
  shape: "Shape",
  times: "Times",
  details: "More about times and transfers",
  memory: "Memory",
  more: "More about shapes",
};

function time(name: string, label: string, fallback: string): Field {
  return { name, label, group: "times", fallback, perStage: true, slider: [0.05, 5, 0.05] };
}
