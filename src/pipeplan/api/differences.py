"""A planned timeline against a run of it: which ops took more or less time, and what that and waiting explain.

The error of the step time has two parts. The schedule is simulated again with every op taking its measured time: the
difference is what the *costs* explain. The rest is *waiting* that was not planned: slower messages, gaps between ops, ranks
that start late. The effects of two kinds of ops can hide each other, so they need not add up.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack, final

import numpy as np
from numpy.typing import NDArray

from pipeplan.api.arguments import Given, ScheduleLike, settings_of
from pipeplan.api.departure import Departure, first_departure
from pipeplan.api.presentable import Presentable
from pipeplan.api.resimulation import KindDifference, Resimulation, kind_differences
from pipeplan.api.results import Result
from pipeplan.api.simulations import simulated
from pipeplan.api.sources import opened
from pipeplan.api.units import in_unit
from pipeplan.drawing import View, view_of
from pipeplan.errors import InputError
from pipeplan.formats import read_run
from pipeplan.model import Schedule, Timeline
from pipeplan.simulation import compute_only, critical_path

FilePath = str | os.PathLike[str]


@final
@dataclass(frozen=True, eq=False)
class Diff(Presentable):
    """A planned timeline and a run of it.

    ``to_frame()`` has a row for each kind of op on each stage.

    Attributes
    ----------
    planned, measured
        The timelines of compute ops, in the unit of the measured one, each in the order of its own schedule.
    resimulated
        The schedule simulated with every op taking its measured time.
    kinds
        The differences by kind and stage.
    departure
        The first op at which the run departs from the planned order; None where it never does.
    path_messages, path_gaps
        On the critical path of the run: time between ops of different ranks, and between ops of one rank.
    measured_of
        Of how many steps and replicas of the run the measured timeline is the one of median length, in words.
    """

    planned: Timeline
    measured: Timeline
    resimulated: Timeline
    kinds: tuple[KindDifference, ...]
    departure: Departure | None
    path_messages: float
    path_gaps: float
    measured_of: str = ""

    @property
    def error(self) -> float:
        """Measured makespan minus the planned one."""
        return self.measured.makespan - self.planned.makespan

    @property
    def relative_error(self) -> float:
        """The error as a share of the measured makespan."""
        return self.error / self.measured.makespan

    @property
    def from_costs(self) -> float:
        """The part of the error that op times explain."""
        return self.resimulated.makespan - self.planned.makespan

    @property
    def from_waiting(self) -> float:
        """The part of the error that waiting explains."""
        return self.measured.makespan - self.resimulated.makespan

    def views(self) -> list[View]:
        """What a picture of both shows: the planned timeline above the measured one, on one axis."""
        name = self.planned.schedule.name or "schedule"
        return [view_of(self.planned, title=f"{name}, planned"), view_of(self.measured, title=f"{name}, measured")]

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [asdict(kind) for kind in self.kinds]

    def __repr__(self) -> str:
        makespans = f"planned {self.planned.makespan:.6g}{self.measured.unit}, measured {self.measured.makespan:.6g}"
        return f"<Diff of {self.planned.schedule.name or 'a schedule'}: {makespans}>"

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain lists and numbers, for JSON."""
        return {
            "schedule": self.planned.schedule.name,
            "unit": self.measured.unit,
            "planned_makespan": self.planned.makespan,
            "measured_makespan": self.measured.makespan,
            "error": self.error,
            "relative_error": self.relative_error,
            "from_costs": self.from_costs,
            "from_waiting": self.from_waiting,
            "path_messages": self.path_messages,
            "path_gaps": self.path_gaps,
            "measured_of": self.measured_of,
            "kinds": [asdict(kind) for kind in self.kinds],
            "departure": None if self.departure is None else asdict(self.departure),
        }


def diff(planned: ScheduleLike, measured: FilePath | Timeline | Result, /, **settings: Unpack[Given]) -> Diff:
    """Planned against measured, op by op: how much of the error op times explain, and how much waiting.

    Parameters
    ----------
    planned
        A timeline, or a file that holds one, which stands as it is; else what :func:`pipeplan.simulate` takes.
    measured
        A timeline, a file that holds one, or the folder of a run's traces. Of several steps and replicas, the timeline of
        median length.
    **settings
        Shape and costs of a schedule that is simulated.

    Raises
    ------
    InputError
        For what cannot be read, timelines of different ops, a run whose ops take no time.
    PipeplanError
        For what :func:`pipeplan.simulate` raises it.
    """
    found = opened(planned)
    timeline = found if isinstance(found, Timeline) else simulated(found, settings_of(settings)).timeline
    if isinstance(measured, Result):
        measured = measured.timeline
    if isinstance(measured, Timeline):
        return diff_timelines(timeline, measured)
    run = read_run(measured)
    return replace(diff_timelines(timeline, run.typical), measured_of=str(run))


def diff_timelines(planned: Timeline, measured: Timeline) -> Diff:
    """Two timelines of the same compute ops; one without a unit of time has that of the other.

    Raises
    ------
    InputError
        If an op is in one of them only, or one in the run takes no time.
    """
    measured = replace(compute_only(measured), unit=measured.unit or planned.unit)
    planned = in_unit(compute_only(planned), measured.unit)
    match = _matching(planned.schedule, measured.schedule)
    before, after = planned.end - planned.start, (measured.end - measured.start)[match]
    if len(after) and after.min() <= 0:
        raise InputError(f"{planned.schedule.place(int(after.argmin()))} takes no time in the run: it was not measured")
    resimulate = Resimulation(planned)
    path_messages, path_gaps = _path_waits(measured)
    return Diff(
        planned=planned,
        measured=measured,
        resimulated=resimulate(after),
        kinds=tuple(kind_differences(planned, before, after, resimulate)),
        departure=first_departure(planned, measured, match, resimulate.transfer),
        path_messages=path_messages,
        path_gaps=path_gaps,
    )


def _matching(planned: Schedule, measured: Schedule) -> NDArray[np.int64]:
    """Where each planned op stands in the run."""
    mine, theirs = _numbers(planned, measured)
    for numbers, others, schedule, where in (
        (mine, theirs, planned, "the planned timeline"),
        (theirs, mine, measured, "the run"),
    ):
        only = np.flatnonzero(~np.isin(numbers, others))
        if only.size:
            op = schedule.op(int(only[0]))
            raise InputError(
                f"{op} is only in {where} (and {only.size - 1} more ops): these are timelines of different schedules"
            )
    order = np.argsort(theirs)
    return order[np.searchsorted(theirs, mine, sorter=order)]


def _numbers(*schedules: Schedule) -> list[NDArray[np.int64]]:
    """A number for each op of each schedule, the same for the same op."""
    microbatches, slices, stages = (
        max(getattr(schedule, name) for schedule in schedules) for name in ("microbatches", "slices", "stages")
    )
    return [
        ((each.kind.astype(np.int64) * stages + each.stage) * microbatches + each.microbatch) * slices + each.slice
        for each in (schedule.columns for schedule in schedules)
    ]


def _path_waits(measured: Timeline) -> tuple[float, float]:
    """Time on the critical path between ops of different ranks, and between ops of one rank."""
    path = np.array(critical_path(measured).ops, np.intp)
    gaps = measured.start[path[1:]] - measured.end[path[:-1]]
    crosses = measured.schedule.rank[path[1:]] != measured.schedule.rank[path[:-1]]
    return float(gaps[crosses].sum()), float(gaps[~crosses].sum())
