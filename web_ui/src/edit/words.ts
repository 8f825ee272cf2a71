/** The words of a schedule's text: a line per rank, ops separated by blanks. The server splits at the same characters. */

const WORD = /[^ ,\t\f\v\u00a0]+/g;
const PAIR = /^\(([^();]*);([^();]*)\)OVERLAP_F_B$/;
const KIND = /^\d+([A-Z_]+?)(?:\d+(?:\.\d+)?)?$/;

/** Place of a word: the index of its line, and its index in the line, from 0. */
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

/** Return the lines of a text with the line ends of any system. */
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

/** Return the ops that a word names: one, or the two of an overlapped pair. */
export function opsOf(word: string): string[] {
  const pair = PAIR.exec(word);
  return pair === null ? [word] : [pair[1], pair[2]];
}

/** Return the kind of the first op that a word names, such as `F`; empty if it names none. */
export function kindOf(word: string): string {
  return KIND.exec(opsOf(word)[0])?.[1] ?? "";
}

/** Return the index of the word at a column of a line, or right before it; -1 for none. */
export function wordAt(line: string, column: number): number {
  return wordsOf(line).findIndex(({ from, to }) => from <= column && column <= to);
}

/** Return the line with one word moved to index `to`, and with single blanks between words. */
export function withMoved(line: string, word: number, to: number): string {
  const words = wordsOf(line).map(({ text }) => text);
  const [moved] = words.splice(word, 1);
  if (moved === undefined) return line;
  words.splice(Math.min(Math.max(to, 0), words.length), 0, moved);
  return words.join(" ");
}

/**
 * Return the line of each rank, without blank lines at the end. If a text has as many lines as ranks, each is a rank; of
 * any other text, the lines that are not blank.
 */
export function rowLines(lines: readonly string[], ranks: number | null): number[] {
  const filled = lines.map((line) => wordsOf(line).length > 0);
  let count = lines.length;
  while (count > (ranks ?? 0) && !filled[count - 1]) count -= 1;
  const numbers = [...Array(count).keys()];
  return count === ranks ? numbers : numbers.filter((line) => filled[line]);
}

/** Return the text as PyTorch's CSV: commas between ops. */
export function asCsv(text: string): string {
  const rows = linesOf(text).map((line) => wordsOf(line).map((word) => word.text));
  return `${rows
    .filter((row) => row.length > 0)
    .map((row) => row.join(","))
    .join("\n")}\n`;
}
