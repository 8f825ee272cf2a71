/** Link from a configuration to the page that compares schedules on its costs. */

import { toQuery } from "../app/address.js";
import type { Value } from "../app/api.js";
import { sizeText } from "../app/sizes.js";
import type { CandidateDetails } from "./api.js";

/** Schedules to compare with the configuration's own one. */
const OTHERS = ["1f1b", "interleaved-1f1b", "zb-h1", "zbv", "v-half"];

export function compareAddress({ settings, schedule }: CandidateDetails["compare"]): string {
  const typed = Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, textOf(name, value)]));
  const schedules = [...new Set([...OTHERS, schedule])];
  return `/?${toQuery({ typed, schedules, allow: [], visible: [], open: "" })}`;
}

function textOf(name: string, value: Value): string {
  return typeof value === "number" && name.endsWith("_bytes") ? sizeText(value) : String(value);
}
