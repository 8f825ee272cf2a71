/** Between what is typed into a field and what a request says. */

import type { Settings, Value } from "./api.js";
import { FIELDS, type Field } from "./fields.js";

/** What is typed, by the names of the settings; fields that are empty are not in it. */
export type Typed = Readonly<Record<string, string>>;

/** The settings of a request. What is no number is sent as it stands, and the server says what is wrong with it. */
export function settingsOf(typed: Typed): Settings {
  return Object.fromEntries(FIELDS.flatMap((field) => entryOf(field, typed[field.name] ?? "")));
}

function entryOf(field: Field, text: string): [string, Value][] {
  const plain = text.trim();
  if (plain === "") return [];
  if (field.flag) return [[field.name, plain === "1"]];
  if (field.choices !== undefined || field.name === "variant" || field.name === "time_unit")
    return [[field.name, plain]];
  const parts = partsOf(plain);
  return [[field.name, parts.length > 1 ? parts.map(numberOr) : numberOr(parts[0] ?? "")]];
}

/** Values apart by commas, semicolons, tabs, line ends or blanks, as lists and columns of spreadsheets have them. */
export function partsOf(text: string): string[] {
  return text.split(/[\s,;]+/).filter((part) => part !== "");
}

function numberOr(text: string): number | string {
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

/** What would have been typed for these settings. */
export function typedOf(settings: Settings): Typed {
  const known = new Set(FIELDS.map((field) => field.name));
  const said = Object.entries(withRanks(settings)).filter(([name, value]) => known.has(name) && value !== false);
  return Object.fromEntries(said.map(([name, value]) => [name, textOf(value)]));
}

function textOf(value: Value): string {
  if (value === true) return "1";
  return typeof value === "object" ? value.join(", ") : String(value);
}

/** Files may give the stages alone; the form has ranks. */
function withRanks(settings: Settings): Settings {
  const { stages, ...rest } = settings;
  if (typeof stages !== "number" || rest.ranks !== undefined) return rest;
  const chunks = typeof rest.chunks === "number" ? rest.chunks : 1;
  return { ...rest, ranks: Math.max(1, Math.floor(stages / chunks)) };
}
