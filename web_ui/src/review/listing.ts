/** The reviewed text with each finding below its line. */

import { make } from "../dom.js";
import type { Finding } from "./api.js";

/** Number of lines around a finding that are shown; the rest of a long text is folded. */
const AROUND = 3;

/** Maximum number of lines of a text that is shown completely. */
const WHOLE = 60;

/** A line, numbered from 1, with its text and its findings; or a number of omitted lines. */
export type ListingRow =
  | { readonly line: number; readonly text: string; readonly findings: readonly Finding[] }
  | { readonly skipped: number };

/** Return the visible lines of a text. */
export function visibleLines(text: string, findings: readonly Finding[]): ListingRow[] {
  const lines = text.replace(/\n$/, "").split("\n");
  const of = (line: number) => findings.filter((finding) => finding.line === line);
  const near = (line: number) =>
    lines.length <= WHOLE || findings.some((finding) => finding.line > 0 && Math.abs(finding.line - line) <= AROUND);
  const rows: ListingRow[] = [];
  let skipped = 0;
  for (const [at, content] of lines.entries()) {
    if (!near(at + 1)) {
      skipped += 1;
      continue;
    }
    if (skipped > 0) rows.push({ skipped });
    skipped = 0;
    rows.push({ line: at + 1, text: content, findings: of(at + 1) });
  }
  if (skipped > 0) rows.push({ skipped });
  return rows;
}

/** Return the listing; findings without a line come first. */
export function listing(text: string, findings: readonly Finding[]): HTMLElement {
  const rows = visibleLines(text, findings).flatMap((rows) => ("skipped" in rows ? [gap(rows.skipped)] : lineOf(rows)));
  const code = make(
    "div",
    { class: "listing", role: "group", tabindex: 0, "aria-label": "the text with its findings" },
    ...rows,
  );
  const loose = findings.filter((finding) => finding.line === 0).map(note);
  return make("div", {}, ...loose, code);
}

function lineOf({ line, text, findings }: Extract<ListingRow, { line: number }>): HTMLElement[] {
  const worst = findings[0] === undefined ? "" : `is-${findings[0].severity}`;
  const number = make("span", { class: "number" }, String(line));
  return [
    make("div", { class: `line ${worst}`.trim() }, number, make("code", {}, text === "" ? " " : text)),
    ...findings.map(note),
  ];
}

function gap(count: number): HTMLElement {
  return make("div", { class: "gap" }, `${count} ${count === 1 ? "line" : "lines"} without findings`);
}

/** Return a finding: severity, problem, remedy and rule. */
export function note(finding: Finding): HTMLElement {
  const { severity, message, remedy, rule, source, line, where } = finding;
  return make(
    "div",
    { class: `finding is-${severity}` },
    make("strong", {}, severity),
    ` ${sentence(message)} `,
    make("span", { class: "remedy" }, sentence(remedy)),
    make("span", { class: "rule", title: source }, line === 0 && where !== "" ? `${rule}, ${where}` : rule),
  );
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
