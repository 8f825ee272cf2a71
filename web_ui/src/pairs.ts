/** Overlapped pairs of ops: what their compute lane and their communication lane do, and how they look when zoomed in. */

import { type Frame, spanOf } from "./frame.js";
import type { Row } from "./layout.js";
import { Part } from "./part.js";
import { EDGES, type Pairs, type Plot, Track } from "./plot.js";

/** Width in pixels of the shortest pair, and height of a row, from which on the lanes of pairs are drawn. */
const NARROWEST = 40;
const LOWEST = 36;

/** Top and bottom of both ops of a pair above its lanes, and of its lanes: computation, then communication. */
const ABOVE: Readonly<Record<number, readonly [number, number]>> = {
  [Part.UPPER]: [0.07, 0.365],
  [Part.LOWER]: [0.365, 0.66],
};
const LANES: readonly (readonly [number, number])[] = [
  [0.7, 0.8],
  [0.83, 0.93],
];

/** Return the forward and the backward of the pair that a bar belongs to, or null. */
export function pairOf(plot: Plot, bar: number): readonly [number, number] | null {
  const other = [bar - 1, bar + 1].find(
    (near) => plot.group[bar] >= 0 && plot.group[near] === plot.group[bar] && plot.lane[near] === plot.lane[bar],
  );
  if (other === undefined) return null;
  return plot.part[bar] === Part.UPPER ? [bar, other] : [other, bar];
}

/** Return whether a row shows the lanes of its pairs. */
export function showsLanes(frame: Frame, { plot, height }: Row): boolean {
  if (plot.pairs === null || height < LOWEST) return false;
  return frame.x(plot.shortestPair) - frame.x(0) >= NARROWEST;
}

/** Return top and bottom of a part as shares of a row: the ops of pairs are higher up if their lanes are drawn. */
export function edgesOf(frame: Frame, row: Row, part: number): readonly [number, number] {
  return (showsLanes(frame, row) ? ABOVE[part] : undefined) ?? EDGES[part];
}

/** Return the visible pieces of a row, a track for each lane, with its top and bottom. */
export function laneTracks(frame: Frame, row: Row): { track: Track; edges: readonly [number, number] }[] {
  const { plot } = row;
  const upper = plot.tracks[row.lane].find(({ part }) => part === Part.UPPER);
  if (plot.pairs === null || upper === undefined || !showsLanes(frame, row)) return [];
  const pieces: Piece[][] = [[], []];
  const [first, stop] = upper.between(...spanOf(frame));
  for (const bar of upper.items.subarray(first, stop)) {
    for (const piece of piecesOf(plot, plot.pairs, bar)) pieces[piece.lane].push(piece);
  }
  return pieces.map((own, lane) => ({ track: trackOf(own), edges: LANES[lane] }));
}

interface Piece {
  readonly lane: number;
  readonly start: number;
  readonly end: number;
  readonly code: number;
}

/** Return the pieces of the pair of a forward, in the time that the pair takes. */
function piecesOf(plot: Plot, pairs: Pairs, forward: number): Piece[] {
  const ops = pairOf(plot, forward);
  const pair = ops === null ? -1 : pairs.of(plot, ops);
  if (ops === null || pair < 0) return [];
  const start = plot.start[forward];
  const scale = (plot.end[forward] - start) / pairs.time[pair];
  const pieces: Piece[] = [];
  for (let at = pairs.offsets[pair]; at < pairs.offsets[pair + 1]; at++) {
    const of = plot.view.kinds[pairs.kind[at]] === "F" ? ops[0] : ops[1];
    pieces.push({
      lane: pairs.lane[at],
      start: start + scale * pairs.begin[at],
      end: start + scale * pairs.end[at],
      code: plot.codeAs(of, pairs.kind[at]),
    });
  }
  return pieces;
}

function trackOf(pieces: readonly Piece[]): Track {
  const end = Float64Array.from(pieces, (piece) => piece.end); // a lane runs one piece at a time, so ends increase
  return new Track(
    Part.FULL,
    Int32Array.from(pieces, (_, at) => at),
    Float64Array.from(pieces, (piece) => piece.start),
    end,
    Uint16Array.from(pieces, (piece) => piece.code),
    end,
  );
}
