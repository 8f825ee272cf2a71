"""A planned timeline against a run of it: which ops took more or less time, and what that and waiting explain.

The error of the step time has two parts. The schedule is simulated again with every op taking its measured time: the
difference is what the *costs* explain. The rest is *waiting* that was not planned: slower messages, gaps between ops, ranks
that start late. The effects of two kinds of ops can hide each other, so they need not add up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack, final

import numpy as np
from numpy.typing import NDArray

from pipeplan.api.arguments import Given, ScheduleLike, settings_of
from pipeplan.api.differing.departure import Departure, first_departure
from pipeplan.api.differing.difference_words import sentences_of
from pipeplan.api.differing.op_differences import (
    OpDifference,
    RankDifference,
    WholeKind,
    rank_differences,
    ratios_of,
    scale_of,
    slowest_ops,
    whole_kinds,
)
from pipeplan.api.presentable import Presentable
from pipeplan.api.resimulation import KindDifference, Resimulation, kind_differences
from pipeplan.api.results import Result
from pipeplan.api.simulations import simulated
from pipeplan.api.sources import as_taken_by, opened
from pipeplan.api.units import in_unit
from pipeplan.costs import Settings
from pipeplan.drawing import Ratios, View, view_of
from pipeplan.errors import InputError
from pipeplan.formats import MeasuredRun, read_run
from pipeplan.model import TIME_UNITS, Floats, Schedule, Timeline, counted, dependencies, require_order
from pipeplan.readable import Times, change
from pipeplan.simulation import compute_only, critical_path
from pipeplan.strategies import strategy

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.formats import Content, Format

FilePath = str | os.PathLike[str]

_SCALED = (
    "the planned times have no unit: 1 counts as {scale:.4g} {unit}, with which all ops take as long in sum as in the run; "
    "give the plan its costs with a time unit to compare them as they are"
)


@final
@dataclass(frozen=True, eq=False)
class Diff(Presentable):
    """A planned timeline and a run of it.

    ``sentences`` says in words what came out; ``to_frame()`` has a row for each kind of op on each stage.

    Attributes
    ----------
    planned, measured
        The timelines of compute ops, in the unit of the measured one, each in the order of its own schedule.
    replanned, resimulated
        The schedule simulated with every op taking its planned time, which is the planned timeline unless that was
        measured, and with every op taking its measured time.
    kinds
        The differences by kind and stage.
    whole_kinds, ranks, slowest
        Those of each kind on all stages, those by rank, and the ops that took the most beyond their plan.
    match
        Where each planned op stands in the run, shape (ops,).
    departure
        The first op at which the run departs from the planned order; None where it never does.
    path_messages, path_gaps
        On the critical path of the run: time between ops of different ranks, and between ops of one rank.
    planned_path_messages, planned_path_gaps
        The same of the plan.
    measured_of
        Of how many steps and replicas of the run the measured timeline is the one of median length, in words.
    measured_from
        The file or folder that the run was read from; empty where it was none.
    notes
        What the plan was made of where nobody said it, a sentence each.
    scale
        Factor on the times of a plan without a unit of time, which makes its ops take as long in sum as the run's.
    """

    planned: Timeline
    measured: Timeline
    replanned: Timeline
    resimulated: Timeline
    kinds: tuple[KindDifference, ...]
    whole_kinds: tuple[WholeKind, ...]
    ranks: tuple[RankDifference, ...]
    slowest: tuple[OpDifference, ...]
    match: NDArray[np.intp]
    departure: Departure | None
    path_messages: float
    path_gaps: float
    planned_path_messages: float
    planned_path_gaps: float
    measured_of: str = ""
    measured_from: str = ""
    notes: tuple[str, ...] = ()
    scale: float = 1.0

    @property
    def error(self) -> float:
        """Measured makespan minus the planned one."""
        return self.measured.makespan - self.planned.makespan

    @property
    def relative_error(self) -> float:
        """The error as a share of the measured makespan."""
        return self.error / self.measured.makespan

    @property
    def several(self) -> bool:
        """Whether the measured timeline was chosen among several steps or replicas."""
        return bool(self.measured_of) and not self.measured_of.startswith("1 step, ")

    @property
    def change(self) -> float:
        """How much longer than planned the run took, as a share of the plan; below 0 where it was shorter."""
        return self.error / self.planned.makespan

    @property
    def from_costs(self) -> float:
        """The part of the error that op times explain."""
        return self.resimulated.makespan - self.replanned.makespan

    @property
    def from_waiting(self) -> float:
        """The part of the error that waiting explains."""
        return self.error - self.from_costs

    @property
    def sentences(self) -> tuple[str, ...]:
        """What came out, in words: how long the run took, what made the difference, what to do."""
        return sentences_of(self)

    @cached_property
    def ratios(self) -> Floats:
        """Measured over planned time of each op, shape (ops,), in the planned timeline's order; 10 if none was planned."""
        measured = self.measured.end - self.measured.start
        return ratios_of(self.planned.end - self.planned.start, measured[self.match])

    @property
    def ratios_in_run(self) -> Floats:
        """The same in the order of the measured timeline."""
        ratios = np.empty_like(self.ratios)
        ratios[self.match] = self.ratios
        return ratios

    @property
    def ratio_limit(self) -> float:
        """A scale of colours for the ratios goes from ``1 / ratio_limit`` (shorter) over 1 to this."""
        return scale_of(self.ratios)

    def views(self) -> list[View]:
        """What a picture of both shows: the planned timeline above the measured one, its ops coloured by their ratios."""
        name = self.planned.schedule.name or "schedule"
        ratios = Ratios(values=self.ratios_in_run, reach=self.ratio_limit)
        measured = view_of(self.measured, title=f"{name}, measured")
        return [view_of(self.planned, title=f"{name}, planned"), replace(measured, ratios=ratios)]

    def contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Its record, its page, and the picture of plan and run."""
        from pipeplan.api.comparing.reports import difference_report

        return {
            "record": lambda _: self.to_dict(),
            "pictures": lambda _: self.views(),
            "report": lambda _: difference_report(self),
        }

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.differences import diff_parts  # late: tables load rich

        return diff_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [asdict(kind) for kind in self.kinds]

    def __repr__(self) -> str:
        planned, measured = self.planned.makespan, self.measured.makespan
        times = Times.of((planned, measured), self.measured.unit)
        name = self.planned.schedule.name or "a schedule"
        return (
            f"<Diff of {name}: {times.text(measured)}, {change(self.change)} against the planned {times.text(planned)}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain lists and numbers, for JSON."""
        return {
            "schedule": self.planned.schedule.name,
            "unit": self.measured.unit,
            "planned_makespan": self.planned.makespan,
            "measured_makespan": self.measured.makespan,
            "error": self.error,
            "relative_error": self.relative_error,
            "change": self.change,
            "sentences": list(self.sentences),
            "from_costs": self.from_costs,
            "from_waiting": self.from_waiting,
            "path_messages": self.path_messages,
            "path_gaps": self.path_gaps,
            "planned_path_messages": self.planned_path_messages,
            "planned_path_gaps": self.planned_path_gaps,
            "measured_of": self.measured_of,
            "notes": list(self.notes),
            "kinds": [asdict(kind) for kind in self.kinds],
            "whole_kinds": [asdict(kind) for kind in self.whole_kinds],
            "ranks": [asdict(rank) for rank in self.ranks],
            "slowest": [asdict(op) for op in self.slowest],
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
        Shape and costs of a schedule that is simulated; a name takes the run's shape where none is given.

    Raises
    ------
    InputError
        For what cannot be read, timelines of different ops, a run whose ops take no time.
    PipeplanError
        For what :func:`pipeplan.simulate` raises it.
    """
    found = opened(planned)
    run, source = _run(measured)
    given = settings_of(settings)
    notes: tuple[str, ...] = ()
    if isinstance(found, Timeline):
        plan = found
    else:
        result = simulated(found, of_run(found, given, run) if isinstance(found, str) else given)
        plan, notes = result.timeline, (*result.notes, *result.warnings)
    answer = diff_timelines(plan, run.typical)
    answer = replace(answer, measured_from=source, notes=(*notes, *answer.notes))
    return answer if isinstance(measured, Timeline | Result) else replace(answer, measured_of=str(run))


def of_run(name: str, settings: Settings, run: MeasuredRun) -> Settings:
    """The settings with the shape of a run where a strategy's name comes without its own."""
    schedule = run.timelines[0].schedule
    placement, alone = schedule.placement, settings.ranks is None and settings.stages is None
    return as_taken_by(
        strategy(name),
        replace(
            settings,
            ranks=placement.ranks if alone else settings.ranks,
            microbatches=schedule.microbatches if settings.microbatches is None else settings.microbatches,
            chunks=placement.chunks if alone and settings.chunks is None else settings.chunks,
            slices=schedule.slices if settings.slices is None else settings.slices,
        ),
    )


def _run(measured: FilePath | Timeline | Result) -> tuple[MeasuredRun, str]:
    """What was measured, and the file or folder that it was read from."""
    if isinstance(measured, Result):
        measured = measured.timeline
    if isinstance(measured, Timeline):
        return MeasuredRun((measured,), steps=1, replicas=1, files=1), ""
    return read_run(measured), os.fspath(measured)


def diff_timelines(planned: Timeline, measured: Timeline) -> Diff:
    """Two timelines of the same compute ops.

    A plan without a unit of time is scaled to a run that has one, so that all its ops take as long in sum as the run's: the
    rest of the difference is that of the ops to each other, and of waiting. A run without a unit has that of the plan.

    Raises
    ------
    InputError
        If an op is in one of them only, or one in the run takes no time.
    InvalidScheduleError
        For ops in an order in which nothing can have run, or of which some are missing.
    """
    for timeline in (planned, measured):
        require_order(timeline.schedule, dependencies(timeline.schedule))
    measured = replace(compute_only(measured), unit=measured.unit or planned.unit)
    paceless = measured.unit in TIME_UNITS and planned.unit not in TIME_UNITS
    planned = in_unit(compute_only(planned), measured.unit)
    match = _matching(planned.schedule, measured.schedule)
    scale = _work(measured) / _work(planned) if paceless and _work(planned) else 1.0
    planned = replace(planned, start=scale * planned.start, end=scale * planned.end)
    before, after = planned.end - planned.start, (measured.end - measured.start)[match]
    if len(after) and after.min() <= 0:
        raise InputError(f"{planned.schedule.place(int(after.argmin()))} takes no time in the run: it was not measured")
    resimulate = Resimulation(planned)
    path_messages, path_gaps = _path_waits(measured)
    planned_path_messages, planned_path_gaps = _path_waits(planned)
    kinds = tuple(kind_differences(planned, before, after, resimulate))
    return Diff(
        planned=planned,
        measured=measured,
        replanned=resimulate(before),
        resimulated=resimulate(after),
        kinds=kinds,
        whole_kinds=tuple(whole_kinds(planned, before, after, kinds, resimulate)),
        ranks=tuple(rank_differences(planned, measured)),
        slowest=tuple(slowest_ops(planned, before, after, measured.start[match])),
        match=match,
        departure=first_departure(planned, measured, match, resimulate.transfer),
        path_messages=path_messages,
        path_gaps=path_gaps,
        planned_path_messages=planned_path_messages,
        planned_path_gaps=planned_path_gaps,
        notes=() if scale == 1 else (_SCALED.format(unit=measured.unit, scale=scale),),
        scale=scale,
    )


def _work(timeline: Timeline) -> float:
    """The time of all ops in sum."""
    return float((timeline.end - timeline.start).sum())


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
            more = f" (and {only.size - 1} more ops)" if only.size > 1 else ""
            raise InputError(
                f"{op} is only in {where}{more}: these are timelines of different schedules. {_apart(planned, measured)}"
            )
    order = np.argsort(theirs)
    return order[np.searchsorted(theirs, mine, sorter=order)]


def _apart(planned: Schedule, measured: Schedule) -> str:
    """How two schedules of other ops differ, and what to do."""
    nouns = {"ranks": "rank", "stages": "stage", "microbatches": "microbatch", "slices": "slice"}
    names = [name for name in nouns if getattr(planned, name) != getattr(measured, name)]
    if not names:
        return "Their shape is the same: name the schedule that ran"
    plan, run = (
        " and ".join(counted(getattr(each, name), nouns[name]) for name in names) for each in (planned, measured)
    )
    given = "the shape" if "stages" in names else " and ".join(names)
    return f"The plan has {plan}, the run {run}: leave out {given}, and a schedule's name takes the run's"


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
