/** The words of a text of rows: a line a rank, ops apart by blanks. The server cuts texts at the same signs. */

const WORD = /[^ ,\t\f\v\u00a0]+/g;
const PAIR = /^\(([^();]*);([^();]*)\)OVERLAP_F_B$/;
const KIND = /^\d+([A-Z_]+?)(?:\d+(?:\.\d+)?)?$/;

/** A word by the number of its line and its number there, from 0. */
export interface Place {
  readonly line: number;
  readonly word: number;
}

/** Position of a word in its line. */
export interface Span {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** The lines of a text; line ends of any system. */
export function linesOf(text: string): string[] {
  return text.replaceAll("\r\n", "\n").replaceAll("\r", "\n").split("\n");
}

export function wordsOf(line: string): Span[] {
  return [...line.matchAll(WORD)].map((match) => ({
    from: match.index,
    to: match.index + match[0].length,
    text: match[0],
  }));
}

/** The ops that a word names: one, or the two of an overlapped pair. */
export function opsOf(word: string): string[] {
  const pair = PAIR.exec(word);
  return pair === null ? [word] : [pair[1], pair[2]];
}

/** The kind of the first op that a word names, such as `F`; empty where it names none. */
export function kindOf(word: string): string {
  return KIND.exec(opsOf(word)[0])?.[1] ?? "";
}

/** The word at a column of a line, or right before it; -1 where there is none. */
export function wordAt(line: string, column: number): number {
  return wordsOf(line).findIndex(({ from, to }) => from <= column && column <= to);
}

/** The line with one word taken out and put back as the `to`-th of its words; the blanks between other words are unchanged. */
export function withMoved(line: string, word: number, to: number): string {
  const words = wordsOf(line).map(({ text }) => text);
  const [taken] = words.splice(word, 1);
  if (taken === undefined) return line;
  words.splice(Math.min(Math.max(to, 0), words.length), 0, taken);
  return words.join(" ");
}

/**
 * The line of each rank. Blank lines at the end are none; a text with as many lines as there are ranks has one for each, of
 * any other text the lines that hold something count.
 */
export function rowLines(lines: readonly string[], ranks: number | null): number[] {
  const filled = lines.map((line) => wordsOf(line).length > 0);
  let count = lines.length;
  while (count > (ranks ?? 0) && !filled[count - 1]) count -= 1;
  const numbers = [...Array(count).keys()];
  return count === ranks ? numbers : numbers.filter((line) => filled[line]);
}

/** The text as PyTorch's CSV has it: commas between ops. */
export function asCsv(text: string): string {
  const rows = linesOf(text).map((line) => wordsOf(line).map((word) => word.text));
  return `${rows
    .filter((row) => row.length > 0)
    .map((row) => row.join(","))
    .join("\n")}\n`;
}
