"""How far a schedule gets that is not right: what runs, where each rank stops, and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeplan.checking import Problem
from pipeplan.costs import Costs, Settings
from pipeplan.drawing import View, view_of
from pipeplan.errors import PipeplanError
from pipeplan.model import (
    MISSING,
    Bools,
    Dependencies,
    Floats,
    Progress,
    Schedule,
    Timeline,
    dependencies,
    farthest,
)
from pipeplan.simulation import simulate as simulate_schedule


@dataclass(frozen=True, slots=True)
class Waiting:
    """Where a rank stops.

    Attributes
    ----------
    rank, position
        Which one, and its first op that never runs.
    message
        What it waits for, in a sentence.
    """

    rank: int
    position: int
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class StoppedRun:
    """As far as a schedule runs, and behind it what never does.

    Attributes
    ----------
    timeline
        All ops. Those that run have their times; the others stand behind ``until``, each behind the one before it on its
        rank, so that they can be seen and moved.
    ran
        Which ops run, shape (ops,).
    until
        When the last of them ends.
    waiting
        Where ranks stop.
    """

    timeline: Timeline
    ran: Bools
    until: float
    waiting: Sequence[Waiting]

    def view(self) -> View:
        """What a picture shows."""
        return view_of(self.timeline)


def stopped_run(schedule: Schedule, settings: Settings, wrong: Sequence[Problem]) -> StoppedRun | None:
    """How far a schedule gets; None where that cannot be said, as of one that is hardly there.

    Parameters
    ----------
    settings
        Costs. Messages between ranks delay, whatever the settings say of how they block.
    wrong
        What is wrong with it; an op that a problem points at never runs.

    Raises
    ------
    PipeplanError
        For settings that cannot be.
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
    return StoppedRun(timeline, ran, float(end[ran].max(initial=0.0)), _waiting(schedule, needs, run))


def _blocked(schedule: Schedule, needs: Dependencies, wrong: Sequence[Problem]) -> Bools:
    """The ops that can never run, whatever other ranks do."""
    blocked = np.zeros(len(schedule), np.bool_)
    at_fault = [each.position for each in wrong if each.position is not None and each.rule not in _OF_SEVERAL]
    blocked[at_fault] = True
    position = np.arange(len(schedule), dtype=np.int32)
    for sources in needs.all:
        here = schedule.rank[np.maximum(sources, 0)] == schedule.rank
        late = here & (sources >= position - schedule.joined)
        # What its own stage must have done is on another rank only where one of the two is on a wrong one.
        elsewhere = (sources >= 0) & ~here & (sources is not needs.arrival)
        blocked |= (sources == MISSING) | late | elsewhere
    return blocked


_OF_SEVERAL = ("deadlock", "rendezvous", "channel", "buffers")
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


def _waiting(schedule: Schedule, needs: Dependencies, run: Progress) -> list[Waiting]:
    return [
        Waiting(rank, int(at), _in_words(schedule, needs, run, int(at)))
        for rank, at in enumerate(run.reached)
        if at < schedule.offsets[rank + 1]
    ]


def _in_words(schedule: Schedule, needs: Dependencies, run: Progress, position: int) -> str:
    rank = int(schedule.rank[position])
    stops = f"rank {rank} stops before {schedule.op(position)}"
    pair = position + 1 < len(schedule) and bool(schedule.joined[position + 1])
    for at in (position, position + 1) if pair else (position,):
        for sources in needs.all:
            source = int(sources[at])
            if source == MISSING:
                return f"{stops}: what it waits for is not there"
            if source >= 0 and not run.step[source]:
                there = int(schedule.rank[source])
                where = "which comes later there" if there == rank else f"which rank {there} never comes to"
                return f"{stops}: it waits for {schedule.op(source)}, {where}"
    return f"{stops}, which it cannot run"
