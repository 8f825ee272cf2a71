/** Error messages with the titles of the form's fields. */

import type { Fault } from "./api.js";
import type { Field } from "./fields.js";

/** Return a fault's message with the titles of fields in place of their names. */
export function inWords(fault: Fault, fields: readonly Field[]): string {
  const own = fields.find((field) => field.name === fault.field);
  const named = fields
    .filter((field) => field.name.includes("_"))
    .reduce((text, field) => text.replace(wholeWord(field.name), field.title), fault.message);
  if (own === undefined) return capital(named);
  const place = /^value (\d+): /.exec(named);
  if (place !== null) return `Value ${place[1]} of ${own.title} ${named.slice(place[0].length)}`;
  if (/^(must|is|has) /.test(named)) return `${own.title} ${named}`;
  const plain = own.name.replaceAll("_", " ");
  const rest = [own.name, plain, plain.replace(/s$/, "")].find(
    (name) => named.startsWith(`${name} `) || named.startsWith(`${name}:`),
  );
  return rest === undefined ? capital(named) : `${own.title}${named.slice(rest.length)}`;
}

/** Return the correction of a number with a decimal comma, such as `12,5GiB`; commas separate the values of a list. */
export function pointed(text: string): string[] {
  const match = /^\s*(\d+),(\d+)\s*([KMGT]i?B|act)?\s*$/.exec(text);
  return match === null ? [] : [`use a decimal point: ${match[1]}.${match[2]}${match[3] ?? ""}`];
}

function wholeWord(name: string): RegExp {
  return new RegExp(`(?<![\\w-])${name}(?![\\w-])`, "g");
}

function capital(text: string): string {
  // Names of schedules and files keep their case.
  return /^[a-z]+ /.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}
