/** Conversion between the texts of fields and the values of a request. */

import type { Settings, Value } from "./api.js";
import type { Field } from "./fields.js";
import { bytesOf, sizeText } from "./sizes.js";

/** Typed values by the names of the settings, without empty fields. */
export type Typed = Readonly<Record<string, string>>;

/** Return the settings of a request. Invalid numbers are sent unchanged, and the server reports the error. */
export function settingsOf(typed: Typed, fields: readonly Field[]): Settings {
  return Object.fromEntries(fields.flatMap((field) => entryOf(field, typed[field.name] ?? "")));
}

function entryOf(field: Field, text: string): [string, Value][] {
  const plain = text.trim();
  if (plain === "") return [];
  if (field.kind === "flag") return [[field.name, plain === "1"]];
  if (field.kind === "choice" || field.kind === "text" || field.kind === "stages") return [[field.name, plain]];
  if (field.kind === "pairs") return [[field.name, plain.split(/\s+/)]];
  if (field.kind === "names") return [[field.name, partsOf(plain)]];
  if (field.kind === "per_microbatch" || field.kind === "lengths") return [[field.name, perMicrobatch(plain)]];
  if (field.kind === "segments" || (field.kind === "pair_times" && plain.startsWith("["))) {
    return [[field.name, fromFile(plain)]];
  }
  const read = field.unit === "bytes" ? sizeOr : numberOr;
  const parts = partsOf(plain.replace(/(\d)\s+(?=[KMGT]i?B\b)/g, "$1"));
  return [[field.name, parts.length > 1 ? parts.map(read) : read(parts[0] ?? "")]];
}

/** Return the numbers of the microbatches, or the JSON value that a file has in their place. */
function perMicrobatch(text: string): Value {
  return /^[[{]/.test(text) ? fromFile(text) : partsOf(text).map(numberOr);
}

/** Return a JSON value such as files have; an invalid text is sent unchanged. */
function fromFile(text: string): Value {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Split values at commas, semicolons, tabs, line ends or blanks, as in lists and in cells of spreadsheets. */
export function partsOf(text: string): string[] {
  return text.split(/[\s,;]+/).filter((part) => part !== "");
}

function numberOr(text: string): number | string {
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

function sizeOr(text: string): number | string {
  return bytesOf(text) ?? numberOr(text);
}

/** Return the number that an empty field stands for; NaN if the default is described in words. */
export function impliedNumber(field: Field, typed: Typed, fields: readonly Field[]): number {
  for (const [name, factor] of field.follows) {
    const [first] = partsOf(typed[name] ?? "");
    if (first !== undefined && Number.isFinite(Number(first))) return factor * Number(first);
  }
  const [name, factor] = field.follows.at(-1) ?? ["", 1];
  const followed = fields.find((other) => other.name === name);
  return followed === undefined ? Number(field.default) : factor * Number(followed.default);
}

/** Return the texts of the fields for settings. */
export function typedOf(settings: Settings, fields: readonly Field[]): Typed {
  const byName = new Map(fields.map((field) => [field.name, field]));
  const entries = Object.entries(withRanks(settings)).filter(([name, value]) => byName.has(name) && value !== false);
  return Object.fromEntries(entries.map(([name, value]) => [name, textOf(value, byName.get(name)?.unit === "bytes")]));
}

function textOf(value: Value, inBytes: boolean): string {
  if (value === true) return "1";
  if (!isPlain(value)) return JSON.stringify(value);
  if (typeof value === "object") return value.map((item) => textOf(item, inBytes)).join(", ");
  return inBytes && typeof value === "number" ? sizeText(value) : String(value);
}

/** Return whether a value contains no nested list or record; only files have those, such as the documents of each microbatch. */
function isPlain(value: Value): boolean {
  return typeof value !== "object" || (Array.isArray(value) && value.every((item) => typeof item !== "object"));
}

/** Derive the ranks of a file that sets only the stages. */
function withRanks(settings: Settings): Settings {
  const { stages, ...rest } = settings;
  if (typeof stages !== "number" || rest.ranks !== undefined) return rest;
  const chunks = typeof rest.chunks === "number" ? rest.chunks : 1;
  return { ...rest, ranks: Math.max(1, Math.floor(stages / chunks)) };
}
