"""Pieces of an op: computation and the communication that it waits for, in order, from the kernels of a GPU.

Communication counts while no kernel computes: what computation hides costs an op nothing. The rest of the op's time, with
the gaps between its kernels, is computation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import LANES, Segment
from pipeplan.extensions.training.traces.activities import COMPUTE
from pipeplan.model import Floats

LAUNCH_GAP = 5.0
"""Longest gap between two kernels that counts as computation, in microseconds, although communication goes on in it."""

_WORK, _GAP, _EXPOSED = range(3)


@dataclass(frozen=True, slots=True, eq=False)
class OpPieces:
    """Communications of an op and the times between them.

    Attributes
    ----------
    lanes
        Lane of each communication, shape (n,).
    times
        Microseconds of computation and of gaps before each communication and after the last one, and microseconds
        in which the op waits for the communication, shape (n + 1, 3).
    """

    lanes: tuple[int, ...]
    times: Floats

    @property
    def exposed(self) -> float:
        """Microseconds in which the op communicates and does not compute."""
        return float(self.times[:, _EXPOSED].sum())


def pieces_of(start: float, end: float, kernels: Floats, lanes: NDArray[np.integer]) -> OpPieces:
    """Return the pieces of an op from the starts and ends of its kernels, shape (2, kernels), and their lanes."""
    kernels = np.clip(kernels, start, end)
    computing = _bridged(kernels[:, lanes == COMPUTE])
    which = np.flatnonzero(lanes != COMPUTE)
    which = which[np.argsort(kernels[0, which], kind="stable")]
    edges = np.unique(np.concatenate(([start, end], computing.ravel(), kernels[:, which].ravel())))
    begins, lengths = edges[:-1], np.diff(edges)
    works = np.searchsorted(computing[0], begins, side="right") > np.searchsorted(computing[1], begins, side="right")
    free = ~works
    times = np.zeros((len(which) + 1, 3))
    done = np.empty(len(which))
    for number, (first, last) in enumerate(kernels[:, which].T):
        waits = free & (begins >= first) & (begins < last)
        times[number, _EXPOSED] = lengths[waits].sum()
        # What needs a communication goes on when the last wait for it ends.
        done[number] = edges[1:][waits][-1] if waits.any() else last
        free &= ~waits
    piece = np.searchsorted(np.maximum.accumulate(done), begins, side="right")
    np.add.at(times[:, _WORK], piece[works], lengths[works])
    np.add.at(times[:, _GAP], piece[free], lengths[free])
    return _joined(lanes[which].tolist(), times)


def _bridged(kernels: Floats) -> Floats:
    """Return the starts and ends of the times in which any kernel works, without gaps between launches, shape (2, times)."""
    starts, ends = kernels[:, np.argsort(kernels[0], kind="stable")]
    if not len(starts):
        return kernels
    ends = np.maximum.accumulate(ends)
    apart = np.flatnonzero(starts[1:] > ends[:-1] + LAUNCH_GAP)
    return np.stack([starts[np.append(0, apart + 1)], ends[np.append(apart, len(ends) - 1)]])


def _joined(lanes: Sequence[int], times: Floats) -> OpPieces:
    """Return the pieces with one communication for several kernels of one lane between which nothing computes."""
    kept: list[int] = []
    rows: list[Floats] = []
    for lane, row in zip(lanes, times, strict=False):
        if kept and kept[-1] == lane and row[_WORK] == 0:
            rows[-1] += row
        else:
            kept.append(lane)
            rows.append(row)
    return OpPieces(tuple(kept), np.stack([*rows, times[-1]]))


def segments_of(ops: Sequence[OpPieces], time: float) -> tuple[tuple[Segment, ...], int]:
    """Return the segments of ops of one kind and stage, which add up to ``time``, and how many ops they describe.

    They are medians by position over the ops with the most frequent list of communications.
    """
    common, count = Counter(op.lanes for op in ops).most_common(1)[0]
    typical = np.median([op.times for op in ops if op.lanes == common], axis=0)
    parts: list[list[float]] = []  # lane and time of each
    work = gap = 0.0
    for lane, (works, idles, exposed) in zip((*common, COMPUTE), typical.tolist(), strict=True):
        work, gap = work + works, gap + idles
        if lane != COMPUTE and not exposed:
            continue
        if work or not parts or lane == COMPUTE:
            parts.append(computation := [COMPUTE, 0.0])
        computation[1] += work + gap
        work = gap = 0.0
        if lane != COMPUTE:
            parts.append([lane, exposed])
    scale = time / sum(part for _, part in parts)
    return tuple((LANES[int(lane)], scale * part) for lane, part in parts if part), count
