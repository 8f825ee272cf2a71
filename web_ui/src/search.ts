/** Finding ops by their notation: `3F7`, `3F7.1`; a part may be left out: `F7` on every stage, `3F` every microbatch. */

import type { Plot } from "./plot.js";

export interface BarRef {
  view: number;
  bar: number;
}

export interface Query {
  stage: number | null;
  kind: string | null;
  microbatch: number | null;
  slice: number | null;
}

const NOTATION = /^(\d+)?([A-Z_]+)?(\d+)?(?:\.(\d+))?$/;

/** Parse a query; null for text that names no op. */
export function parseQuery(text: string): Query | null {
  const match = NOTATION.exec(text.trim().toUpperCase());
  if (match === null || match[2] === undefined) return null;
  const number = (digits: string | undefined) => (digits === undefined ? null : Number(digits));
  return { stage: number(match[1]), kind: match[2], microbatch: number(match[3]), slice: number(match[4]) };
}

/** Return the bars that match a query, in the order of views and of time. */
export function findBars(plots: readonly Plot[], query: Query): BarRef[] {
  return plots.flatMap((plot) => {
    const kind = plot.view.kinds.indexOf(query.kind ?? "");
    const matches: BarRef[] = [];
    for (let bar = 0; bar < plot.bars; bar++) {
      if (plot.kind[bar] === kind && fits(plot, bar, query)) matches.push({ view: plot.index, bar });
    }
    return matches.sort((one, other) => plot.start[one.bar] - plot.start[other.bar]);
  });
}

/** Return the same op in another view, -1 if it has none. */
export function sameBar(plot: Plot, bar: number, other: Plot): number {
  const kind = other.view.kinds.indexOf(plot.kindName(bar));
  for (let at = 0; at < other.bars; at++) {
    if (
      other.kind[at] === kind &&
      other.microbatch[at] === plot.microbatch[bar] &&
      other.stage[at] === plot.stage[bar] &&
      other.slice[at] === plot.slice[bar]
    )
      return at;
  }
  return -1;
}

function fits(plot: Plot, bar: number, query: Query): boolean {
  return (
    (query.stage === null || plot.stage[bar] === query.stage) &&
    (query.microbatch === null || plot.microbatch[bar] === query.microbatch) &&
    (query.slice === null || plot.slice[bar] === query.slice)
  );
}
