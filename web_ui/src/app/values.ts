/** Between what is typed into a field and what a request says. */

import type { Settings, Value } from "./api.js";
import type { Field } from "./fields.js";
import { bytesOf, sizeText } from "./sizes.js";

/** Typed values by the names of the settings, without empty fields. */
export type Typed = Readonly<Record<string, string>>;

/** The settings of a request. What is not a number is sent unchanged, and the server says what is wrong with it. */
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
  const read = field.unit === "bytes" ? sizeOr : numberOr;
  const parts = partsOf(plain.replace(/(\d)\s+(?=[KMGT]i?B\b)/g, "$1"));
  return [[field.name, parts.length > 1 ? parts.map(read) : read(parts[0] ?? "")]];
}

/** Numbers of the microbatches, or what a file has in their place, as JSON. */
function perMicrobatch(text: string): Value {
  if (!/^[[{]/.test(text)) return partsOf(text).map(numberOr);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Values apart by commas, semicolons, tabs, line ends or blanks, as lists and columns of spreadsheets have them. */
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

/** The number that holds for a field where nothing is typed into it; not a number where words say what holds. */
export function impliedNumber(field: Field, typed: Typed, fields: readonly Field[]): number {
  for (const [name, factor] of field.follows) {
    const [first] = partsOf(typed[name] ?? "");
    if (first !== undefined && Number.isFinite(Number(first))) return factor * Number(first);
  }
  const [name, factor] = field.follows.at(-1) ?? ["", 1];
  const followed = fields.find((other) => other.name === name);
  return followed === undefined ? Number(field.default) : factor * Number(followed.default);
}

/** Texts of the fields for these settings. */
export function typedOf(settings: Settings, fields: readonly Field[]): Typed {
  const known = new Map(fields.map((field) => [field.name, field]));
  const said = Object.entries(withRanks(settings)).filter(([name, value]) => known.has(name) && value !== false);
  return Object.fromEntries(said.map(([name, value]) => [name, textOf(value, known.get(name)?.unit === "bytes")]));
}

function textOf(value: Value, inBytes: boolean): string {
  if (value === true) return "1";
  if (!isPlain(value)) return JSON.stringify(value);
  if (typeof value === "object") return value.map((each) => textOf(each, inBytes)).join(", ");
  return inBytes && typeof value === "number" ? sizeText(value) : String(value);
}

/** Whether a value has no list or record in it; others, such as the documents of each microbatch, only files have. */
function isPlain(value: Value): boolean {
  return typeof value !== "object" || (Array.isArray(value) && value.every((each) => typeof each !== "object"));
}

/** Files may set only the stages; the form has ranks. */
function withRanks(settings: Settings): Settings {
  const { stages, ...rest } = settings;
  if (typeof stages !== "number" || rest.ranks !== undefined) return rest;
  const chunks = typeof rest.chunks === "number" ? rest.chunks : 1;
  return { ...rest, ranks: Math.max(1, Math.floor(stages / chunks)) };
}
