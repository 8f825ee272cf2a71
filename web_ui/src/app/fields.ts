/** The fields of the form: one for each of the server's settings. */

export type Kind =
  | "count"
  | "number"
  | "per_stage"
  | "choice"
  | "text"
  | "flag"
  | "limit"
  | "stages"
  | "size"
  | "pairs";

export interface Field {
  /** The setting's name, as everywhere else. */
  readonly name: string;
  readonly kind: Kind;
  readonly title: string;
  readonly group: string;
  /** Of its numbers, in words; empty for counts and words. */
  readonly unit: string;
  /** What holds where nothing is said, in a word or two. */
  readonly default: string;
  readonly hint: string;
  /** The words that it can be, its default first. */
  readonly choices: readonly string[];
  /** The slider's smallest value, its largest one as long as the value is not larger, and its step. */
  readonly slider: readonly [number, number, number] | null;
  /** Fields whose value it takes where nothing is said, the first that is given, each times a factor. */
  readonly follows: readonly (readonly [string, number])[];
  /** Values that people often give. */
  readonly suggestions?: readonly string[];
}

export interface Group {
  readonly name: string;
  readonly title: string;
  /** Whether its fields always show. */
  readonly open: boolean;
}

/** What the form is made of. */
export interface FormFields {
  readonly groups: readonly Group[];
  readonly fields: readonly Field[];
}
