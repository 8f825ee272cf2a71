"""Partial run of an invalid schedule: the ops that run, where each rank stops, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from pipeplan.checking import Finding
from pipeplan.costs import Costs, Settings
from pipeplan.drawing import View, view_of
from pipeplan.extensions.web.editing.edit_texts import Place
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.records import Evidence, Record, holding
from pipeplan.model import (
    MISSING,
    Bools,
    Dependencies,
    Floats,
    RowProgress,
    Schedule,
    Timeline,
    dependencies,
    farthest,
)
from pipeplan.simulation import simulate as simulate_schedule


class Waiting(Record, frozen=True, kw_only=True):
    """Place where a rank stops: its first op that never runs, that op's words, and a sentence on what it waits for."""

    rank: int
    position: int
    op: str
    message: str
    places: tuple[Place, ...]


class StoppedRun(Record, frozen=True, kw_only=True, eq=False):
    """The part of a schedule that runs, and the ops after it that never do.

    It tells how many ops run, until when, and where the ranks stop.
    """

    until: float
    ops_ran: int = msgspec.field(name="ran")
    ops: int
    waiting: tuple[Waiting, ...]

    timeline = Evidence[Timeline]()
    """All ops. Those that run have their times; the others are placed after ``until``, in the order of their rank, so that
    they can be seen and moved."""

    ran = Evidence[Bools]()
    """Which ops run, shape (ops,)."""

    def view(self) -> View:
        """Return the view that a picture of all ops shows, those that never run included."""
        return view_of(self.timeline)


def stopped_run(
    schedule: Schedule, settings: Settings, wrong: Sequence[Finding], place_of: Callable[[int], Place]
) -> StoppedRun | None:
    """Return the partial run of an invalid schedule; None if too much of it is missing.

    Parameters
    ----------
    settings
        Costs. Messages between ranks delay, whatever the settings say of how they block.
    wrong
        Problems of the schedule; an op that a problem points at never runs.
    place_of
        Gives the word of an op, by the op's position.
    """
    costs = settings.costs(schedule.placement)
    try:
        needs = dependencies(schedule)
        run = farthest(schedule, needs, _blocked(schedule, needs, wrong))
        ran = run.step > 0
        start, end = _times(schedule, costs, ran)
        timeline = Timeline(schedule, start, end, costs.time_unit)
    except PipeplanError:
        return None
    return holding(
        StoppedRun(
            until=float(end[ran].max(initial=0.0)),
            ops_ran=int(ran.sum()),
            ops=len(schedule),
            waiting=tuple(_waiting(schedule, needs, run, place_of)),
        ),
        timeline=timeline,
        ran=ran,
    )


def _blocked(schedule: Schedule, needs: Dependencies, wrong: Sequence[Finding]) -> Bools:
    """Return the ops that can never run, whatever other ranks do."""
    blocked = np.zeros(len(schedule), np.bool_)
    at_fault = [
        finding.position for finding in wrong if finding.position is not None and finding.rule not in _OF_SEVERAL
    ]
    blocked[at_fault] = True
    position = np.arange(len(schedule), dtype=np.int32)
    for sources in needs.all:
        here = schedule.rank[np.maximum(sources, 0)] == schedule.rank
        late = here & (sources >= position - schedule.joined)
        # What its own stage must have done is on another rank only where one of the two is on a wrong one.
        elsewhere = (sources >= 0) & ~here & (sources is not needs.arrival)
        blocked |= (sources == MISSING) | late | elsewhere
    return blocked


_OF_SEVERAL = ("deadlock", "rendezvous", "streams", "channel", "buffers")
"""Rules that no op breaks by itself: whether it runs is seen by running."""


def _times(schedule: Schedule, costs: Costs, ran: Bools) -> tuple[Floats, Floats]:
    durations = costs.durations(schedule)
    start, end = np.zeros(len(schedule)), np.zeros(len(schedule))
    until = 0.0
    if ran.any():
        run = simulate_schedule(schedule.keep(ran), costs).timeline
        start[ran], end[ran], until = run.start, run.end, run.makespan
    taken = np.where(ran | schedule.joined, 0.0, durations)
    behind = np.cumsum(taken)
    first = np.repeat(np.concatenate(([0.0], behind))[schedule.offsets[:-1]], np.diff(schedule.offsets))
    left = ~ran
    end[left] = until + (behind - first)[left]
    start[left] = end[left] - durations[left]
    return start, end


def _waiting(
    schedule: Schedule, needs: Dependencies, run: RowProgress, place_of: Callable[[int], Place]
) -> Iterator[Waiting]:
    for rank, at in enumerate(run.reached.tolist()):
        if at < schedule.offsets[rank + 1]:
            message = _in_words(schedule, needs, run, at)
            op = str(schedule.op(at))
            yield Waiting(rank=rank, position=at, op=op, message=message, places=(place_of(at),))


def _in_words(schedule: Schedule, needs: Dependencies, run: RowProgress, position: int) -> str:
    rank = int(schedule.rank[position])
    stops = f"rank {rank} stops before {schedule.op(position)}"
    for at in (position, position + 1) if schedule.begins_pair[position] else (position,):
        for sources in needs.all:
            source = int(sources[at])
            if source == MISSING:
                return f"{stops}: its dependency is missing"
            if source >= 0 and not run.step[source]:
                there = int(schedule.rank[source])
                where = "which comes later on this rank" if there == rank else f"which rank {there} never reaches"
                return f"{stops}: it waits for {schedule.op(source)}, {where}"
    return f"{stops}, which it cannot run"
