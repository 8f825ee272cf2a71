"""Planned against measured, op by op."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

import numpy as np
from msgspec import UnsetType
from numpy.typing import NDArray

from pipeplan.answers.answers import AnswerRecord, FilePath
from pipeplan.answers.arguments import ScheduleLike, options_and_settings
from pipeplan.answers.simulating.result import Result
from pipeplan.answers.simulating.simulate import simulated
from pipeplan.answers.sources import as_taken_by, in_unit, opened
from pipeplan.costs import Options, Segments, Settings, option
from pipeplan.extensions.training.diff.difference import Diff
from pipeplan.extensions.training.diff.op_differences import (
    Exposed,
    Resimulation,
    exposed_of,
    first_departure,
    kind_differences,
    rank_differences,
    slowest_ops,
    whole_kinds,
)
from pipeplan.extensions.training.diff.sentences import advice_of, headline_of, sentences_of
from pipeplan.extensions.training.traces import MeasuredRun, read_run
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.extensions import required_service
from pipeplan.foundation.readable import TIME_UNITS, Times
from pipeplan.foundation.records import holding, replaced
from pipeplan.model import Schedule, Timeline, counted, dependencies, require_order
from pipeplan.simulation import compute_only, critical_ops
from pipeplan.strategies import Strategy

if TYPE_CHECKING:
    from pipeplan.extensions.training.keywords import DiffKeywords

_SCALED = (
    "the planned times have no unit: 1 counts as {scale:.4g} {unit}, with which all ops take as long in sum as in the run; "
    "pass the plan's costs with a time unit to compare times as they are"
)

_OVERHEAD = "the first op of the plan starts at {}; its times count from there, as those of a run do"


@dataclass(frozen=True, kw_only=True)
class DiffOptions(Options):
    """Calibration that a run updates."""

    configuration: FilePath | None = option(
        kind="file", group="calibration", help="Configuration that ran, in the format of `pipeplan estimate`."
    )
    calibration: FilePath | None = option(
        kind="file",
        group="calibration",
        help="Calibration file to update with the ratio of measured to expected stage times; created if missing.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.configuration is None) != (self.calibration is None):
            missing = "configuration" if self.configuration is None else "calibration"
            raise InputError(f"configuration and calibration belong together: {missing} is missing", field=missing)


def diff(planned: ScheduleLike, measured: FilePath | Timeline | Result, /, **options: Unpack[DiffKeywords]) -> Diff:
    """Compare a plan with a measured run, op by op: how much of the error op times explain, and how much waiting.

    Times of both count from their first start: a gap before the first op of the plan is no part of its makespan.

    Parameters
    ----------
    planned
        A timeline, or a file that holds one, which keeps its times; else a schedule as in :func:`pipeplan.simulate`.
    measured
        A timeline, a file that holds one, or the folder of a run's traces. Of several steps and replicas, the timeline of
        median length.
    **options
        Shape and costs of a schedule that is simulated; a name takes the run's shape where none is given.

    Other Parameters
    ----------------
    configuration
        Configuration that ran, in the format of `pipeplan estimate`.
    calibration
        Calibration file to update with the ratio of measured to expected stage times; created if missing.
    settings, config
        Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All
        are keywords, too: ``docs/reference/options.md`` lists them.

    Returns
    -------
    Diff
        Its ``calibration`` is the updated one, which ``diff.calibration.save(path)`` writes.

    Raises
    ------
    InputError
        For what cannot be read, timelines of different ops, a run whose ops take no time.
    PipeplanError
        For what :func:`pipeplan.simulate` raises it.
    """
    chosen, settings = options_and_settings(DiffOptions, options)
    return differences(planned, measured, chosen, settings)


def differences(
    planned: ScheduleLike, measured: FilePath | Timeline | Result, options: DiffOptions, settings: Settings
) -> Diff:
    """See :func:`diff`."""
    calibration = None if options.configuration is None else _calibration(options, measured)
    return holding(_differences(planned, measured, settings), calibration=calibration)


def _calibration(options: DiffOptions, measured: FilePath | Timeline | Result) -> AnswerRecord:
    assert options.configuration is not None
    assert options.calibration is not None
    if isinstance(measured, Timeline | Result):
        raise InputError("a calibration needs the run's files, not a timeline", field="configuration")
    existing = options.calibration if os.path.exists(options.calibration) else None
    calibrate_on_run = required_service("planning", "calibrate_on_run")
    updated: AnswerRecord = calibrate_on_run(os.fspath(options.configuration), measured, calibration=existing)
    return updated


def _differences(planned: ScheduleLike, measured: FilePath | Timeline | Result, settings: Settings) -> Diff:
    plan_source = opened(planned)
    run, source = _run(measured)
    notes: tuple[str, ...] = ()
    segments = None
    if isinstance(plan_source, Timeline):
        plan = plan_source
    else:
        result = simulated(
            plan_source, of_run(plan_source, settings, run) if isinstance(plan_source, Strategy) else settings
        )
        plan, notes, segments = result.timeline, (*result.notes, *result.warnings), result.costs.segments
        if settings.step_time is not None:
            notes = (*notes, "step time has no effect: a diff compares ops, and a step ends after them")
    shifted = plan.from_first_start()
    if overhead := plan.makespan - shifted.makespan:
        notes = (*notes, _OVERHEAD.format(Times.of((overhead,), plan.unit).text(overhead)))
    measured_of = "" if isinstance(measured, Timeline | Result) else str(run)
    return diff_timelines(
        shifted,
        run.typical,
        notes=notes,
        measured_of=measured_of,
        measured_from=source,
        segments=segments,
        measured_exposed=run.typical_exposed,
    )


def of_run(rule: Strategy, settings: Settings, run: MeasuredRun) -> Settings:
    """Return the settings with the run's shape, if a strategy comes without one."""
    schedule = run.timelines[0].schedule
    placement, alone = schedule.placement, settings.ranks is None and settings.stages is None
    return as_taken_by(
        rule,
        replace(
            settings,
            ranks=placement.ranks if alone else settings.ranks,
            microbatches=settings.microbatch_count or schedule.microbatches,
            chunks=placement.chunks if alone and settings.chunks is None else settings.chunks,
            slices=schedule.slices if settings.slices is None else settings.slices,
        ),
    )


def _run(measured: FilePath | Timeline | Result) -> tuple[MeasuredRun, str]:
    """Return the measured run, and the file or folder that it was read from."""
    if isinstance(measured, Result):
        measured = measured.timeline
    if isinstance(measured, Timeline):
        return MeasuredRun((measured.from_first_start(),), steps=1, replicas=1, files=1), ""
    return read_run(measured), os.fspath(measured)


def diff_timelines(
    planned: Timeline,
    measured: Timeline,
    *,
    notes: tuple[str, ...] = (),
    measured_of: str = "",
    measured_from: str = "",
    segments: Segments | None = None,
    measured_exposed: Exposed = (),
) -> Diff:
    """Compare two timelines of the same compute ops.

    ``segments`` are those of the plan, ``measured_exposed`` the exposed communication of each rank of the run.

    A plan without a unit of time is scaled to a run that has one, so that all its ops take as long in sum as the run's: the
    rest of the difference is that of the ops to each other, and of waiting. A run without a unit has that of the plan.
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
    replanned, resimulated = resimulate(before), resimulate(after)
    exposed = exposed_of(planned, segments, measured_exposed)
    error, from_costs = measured.makespan - planned.makespan, resimulated.makespan - replanned.makespan
    difference = holding(
        Diff(
            headline="",
            schedule=planned.schedule.name,
            unit=measured.unit,
            planned_makespan=planned.makespan,
            measured_makespan=measured.makespan,
            error=error,
            relative_error=error / measured.makespan,
            change=error / planned.makespan,
            sentences=(),
            advice=(),
            from_costs=from_costs,
            from_waiting=error - from_costs,
            path_messages=path_messages,
            path_gaps=path_gaps,
            planned_path_messages=planned_path_messages,
            planned_path_gaps=planned_path_gaps,
            measured_of=measured_of,
            notes=notes if scale == 1 else (*notes, _SCALED.format(unit=measured.unit, scale=scale)),
            kinds=kinds,
            whole_kinds=tuple(whole_kinds(planned, before, after, kinds, resimulate)),
            ranks=tuple(rank_differences(planned, measured, exposed)),
            slowest=tuple(slowest_ops(planned, before, after, measured.start[match])),
            departure=first_departure(planned, measured, match, resimulate.transfer),
            planned_exposed=_sum_of(exposed[0]),
            measured_exposed=_sum_of(exposed[1]),
        ),
        planned=planned,
        measured=measured,
        replanned=replanned,
        resimulated=resimulated,
        match=match,
        measured_from=measured_from,
        scale=scale,
    )
    return replaced(
        difference,
        headline=headline_of(difference),
        sentences=sentences_of(difference),
        advice=advice_of(difference),
    )


def _sum_of(ranks: Exposed) -> float | UnsetType | None:
    """Return the time of all ranks, or what stands for that of any rank without one."""
    known = [time for time in ranks if isinstance(time, float)]
    return sum(known) if len(known) == len(ranks) else next(time for time in ranks if not isinstance(time, float))


def _work(timeline: Timeline) -> float:
    return float((timeline.end - timeline.start).sum())


def _matching(planned: Schedule, measured: Schedule) -> NDArray[np.int64]:
    """Return the position in the run of each planned op, shape (ops,)."""
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
    """Return how the shapes of two schedules differ, and a remedy."""
    nouns = {"ranks": "rank", "stages": "stage", "microbatches": "microbatch", "slices": "slice"}
    names = [name for name in nouns if getattr(planned, name) != getattr(measured, name)]
    if not names:
        return "Their shape is the same: pass the schedule that ran as the plan"
    plan, run = (
        " and ".join(counted(getattr(schedule, name), nouns[name]) for name in names)
        for schedule in (planned, measured)
    )
    options = "the shape" if "stages" in names else " and ".join(names)
    return f"The plan has {plan}, the run {run}: pass a schedule's name without {options} as the plan, which takes the run's"


def _numbers(*schedules: Schedule) -> list[NDArray[np.int64]]:
    """Return a number for each op of each schedule, equal for equal ops."""
    microbatches, slices, stages = (
        max(getattr(schedule, name) for schedule in schedules) for name in ("microbatches", "slices", "stages")
    )
    return [
        ((columns.kind.astype(np.int64) * stages + columns.stage) * microbatches + columns.microbatch) * slices
        + columns.slice
        for columns in (schedule.columns for schedule in schedules)
    ]


def _path_waits(measured: Timeline) -> tuple[float, float]:
    """Return the time on the critical path between ops of different ranks, and between ops of one rank."""
    path = np.array(critical_ops(measured), np.intp)
    gaps = measured.start[path[1:]] - measured.end[path[:-1]]
    crosses = measured.schedule.rank[path[1:]] != measured.schedule.rank[path[:-1]]
    return float(gaps[crosses].sum()), float(gaps[~crosses].sum())
