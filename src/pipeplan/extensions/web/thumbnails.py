"""Thumbnails: small bitmaps of timelines, which the rows of a comparison show."""

from __future__ import annotations

import zlib
from base64 import b64encode

import numpy as np

from pipeplan.extensions.web.records import Thumbnail
from pipeplan.model import Kind, Timeline

_WIDTH = 160
_MOST_HEIGHT = 64
_SPREAD = (5**0.5 - 1) / 2
"""The golden ratio, whose multiples are spread evenly over an interval."""


def thumbnail(timeline: Timeline) -> Thumbnail:
    """Return a bitmap of a timeline: the kind of op that runs at a moment of each interval of time, on each rank.

    The moments are spread over their intervals: at equal distances, they would meet only some kinds of a repeated pattern.
    Of more than 64 ranks, it shows 64 at equal distances.
    """
    schedule, makespan = timeline.schedule, timeline.makespan
    kinds = sorted(schedule.kinds)
    code_of = np.zeros(len(Kind), np.uint8)
    code_of[[int(kind) for kind in kinds]] = np.arange(1, len(kinds) + 1)
    height = min(schedule.ranks, _MOST_HEIGHT)
    columns = np.arange(_WIDTH)
    cells = np.zeros((height, _WIDTH), np.uint8)
    for row, rank in enumerate(np.arange(height) * schedule.ranks // height):
        ops = slice(int(schedule.offsets[rank]), int(schedule.offsets[rank + 1]))
        start, end = timeline.start[ops], timeline.end[ops]
        if len(start) == 0:
            continue
        times = (columns + (columns * _SPREAD + row * _SPREAD**2) % 1) * makespan / _WIDTH
        # The last op that starts before each time, if it still runs then.
        op = np.searchsorted(start, times, side="right") - 1
        running = (op >= 0) & (times < end[op])
        cells[row, running] = code_of[schedule.columns.kind[ops][op[running]]]
    return Thumbnail(
        width=_WIDTH,
        height=height,
        kinds=tuple(kind.name for kind in kinds),
        cells=b64encode(zlib.compress(cells.tobytes(), 9)).decode("ascii"),
    )
