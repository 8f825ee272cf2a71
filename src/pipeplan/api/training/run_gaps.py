"""What a run lost between its ops: how long messages took, and what ops and messages took from their ranks.

Between the end of an op and the start of the next one of its rank lie, where the rank waits for nothing, the gap before an
op and what the messages in between take from the rank: those that the first op sends, and those that the second receives.
Where it waits, between the two ops of a message lie what the message takes from both ranks, the transfer and the gap. So
gaps without messages tell the first, gaps with messages the second, and what is then left of the waits is the transfer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Spread
from pipeplan.model import Floats, Timeline, crosses_ranks, dependencies


@dataclass(frozen=True, slots=True)
class Gaps:
    """What lay between ops, each None where no op tells it.

    Attributes
    ----------
    transfer
        From the end of an op to when another rank has its result, as far as nobody's rank is taken.
    op
        What every op takes from its rank before it starts.
    message
        What a message takes from the rank at either end.
    """

    transfer: Spread | None
    op: Spread | None
    message: Spread | None


def gaps_of(timelines: Sequence[Timeline]) -> Gaps:
    """What lay between the ops of timelines of compute ops."""
    cells = [_cells(timeline) for timeline in timelines]
    table = np.concatenate(cells) if cells else np.empty((0, 5))
    gap, waited, ready, before, after = table.T
    # A message is known to have been there only if it would have been in time even at the usual pace.
    waits = np.isfinite(waited) & (waited <= gap)
    pace = float(np.median(waited[waits])) if waits.any() else 0.0
    free = np.isfinite(gap) & (ready >= pace)
    messages = before + after
    op = _spread(gap[free & (messages == 0)])
    own = 0.0 if op is None else max(op.median, 0.0)
    busy = free & (messages > 0)
    # What ranks do in a gap may pass while they would wait: both ends together take no more than a wait shows.
    message = _spread(np.minimum((gap[busy] - own) / messages[busy], max(pace - own, 0.0) / 2))
    each = 0.0 if message is None else max(message.median, 0.0)
    return Gaps(_spread(waited[waits] - own - each * (1 + after[waits])), op, message)


def _spread(times: Floats) -> Spread | None:
    return Spread.of(times) if len(times) else None


def _cells(timeline: Timeline) -> NDArray[np.float64]:
    """A row for each op but an idle rank's first, an overlapped pair being one.

    It holds the time since the op before it on its rank ended; the time since the op whose message it needs ended; how long
    before the former the latter was; how many messages the op before it sends, and how many it receives. Infinite where
    there is none.
    """
    schedule = timeline.schedule
    arrival = dependencies(schedule).arrival
    crossing = np.flatnonzero(crosses_ranks(schedule, arrival))
    cell = np.cumsum(~schedule.joined) - 1
    count = int(cell[-1]) + 1 if len(cell) else 0
    sent, received = np.zeros(count), np.zeros(count)
    np.add.at(sent, cell[arrival[crossing]], 1)
    np.add.at(received, cell[crossing], 1)
    told = np.full(count, -np.inf)
    np.maximum.at(told, cell[crossing], timeline.end[arrival[crossing]])
    first = np.flatnonzero(~schedule.joined)
    start, end, rank = timeline.start[first], timeline.end[first], schedule.rank[first]
    begins = np.append(True, rank[1:] != rank[:-1])[:count]
    before = np.where(begins, -np.inf, np.append(-np.inf, end[:-1])[:count])
    sends = np.where(begins, 0, np.append(0, sent[:-1])[:count])
    with np.errstate(invalid="ignore"):
        ready = before - told
    return np.column_stack([start - before, start - told, ready, sends, received])
