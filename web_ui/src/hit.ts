/** Hit test: the bar under a point of the picture. */

import { type Frame, toPicture } from "./frame.js";
import { AXIS, type Row } from "./layout.js";
import { edgesOf } from "./pairs.js";
import { Part } from "./part.js";
import { EDGES, type Plot, type Track } from "./plot.js";

export interface Hit {
  readonly plot: Plot;
  readonly lane: number;
  readonly x: number;
  readonly y: number;
  /** A bar, or -1. */
  readonly bar: number;
  /** A gap, or -1. */
  readonly gap: number;
}

/** Maximum distance of the pointer from a very narrow bar, in pixels. */
const REACH = 3;

export function hitAt(frame: Frame, x: number, y: number): Hit | null {
  if (x < frame.left || x > frame.width || y < AXIS) return null;
  const row = frame.content.rows.find((place) => {
    const top = toPicture(frame, place.top);
    return y >= top && y < top + place.height;
  });
  if (row === undefined) return null;
  const time = frame.x.invert(x);
  const reach = frame.x.invert(x + REACH) - time;
  const bar = barAt(frame, row, y, time, reach);
  return { plot: row.plot, lane: row.lane, x, y, bar, gap: bar < 0 ? gapAt(row, time) : -1 };
}

/** Return the bar of a lane at a time, or the nearest one within reach; strips take precedence over the bars below them. */
function barAt(frame: Frame, row: Row, y: number, time: number, reach: number): number {
  const share = (y - toPicture(frame, row.top)) / row.height;
  const tracks = row.plot.tracks[row.lane].filter(({ part }) => {
    const [top, bottom] = edgesOf(frame, row, part);
    // The lanes of a pair belong to its backward, which is above them.
    return share >= top && share <= (part === Part.LOWER ? EDGES[part][1] : bottom);
  });
  for (const track of tracks.reverse()) {
    const index = nearest(track, time, reach);
    if (index >= 0) return track.items[index];
  }
  return -1;
}

function gapAt(row: Row, time: number): number {
  const track = row.plot.gaps?.tracks[row.lane];
  if (track === undefined) return -1;
  const index = nearest(track, time, 0);
  return index < 0 ? -1 : track.items[index];
}

function nearest(track: Track, time: number, reach: number): number {
  const [first, stop] = track.between(time - reach, time + reach);
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  for (let at = first; at < stop; at++) {
    const away = Math.max(track.start[at] - time, time - track.end[at], 0);
    if (away < least && away <= reach) [best, least] = [at, away];
  }
  return best;
}
