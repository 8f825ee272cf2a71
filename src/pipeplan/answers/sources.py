"""Sources of schedules: names, files, schedules and timelines, with settings."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeplan.answers.arguments import ScheduleLike
from pipeplan.answers.config_files import is_shipped
from pipeplan.answers.simulating.result import Result
from pipeplan.costs import Settings
from pipeplan.formats import is_standard_input
from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.foundation.extensions import service
from pipeplan.foundation.files import path_of
from pipeplan.foundation.readable import TIME_UNITS, units_in
from pipeplan.model import SMALLEST, Schedule, Timeline, require_flags, require_size, shortened
from pipeplan.strategies import STRATEGIES, Shape, Strategy, is_strategy, strategy

DEFAULT_MICROBATCHES = 8


Source = Strategy | Schedule | Timeline
"""A rule for a schedule, a schedule, or a timeline."""


def opened(source: ScheduleLike, *, keep_duplicates: bool = False) -> Source:
    """Return the strategy of a name, or the schedule or timeline itself, read from a file if it is one.

    A folder with the traces of a run, or one such trace, is the timeline of its step of median length. ``-`` is what
    standard input holds, which can be read once.

    Raises UnknownNameError for an unknown name; InputError, FormatError or InvalidScheduleError for a file that cannot be
    read or understood.
    """
    if isinstance(source, Result):
        return source.timeline
    if isinstance(source, Strategy | Schedule | Timeline):
        return source
    if is_standard_input(source):
        from pipeplan.formats import read_standard_input

        return read_standard_input(keep_duplicates=keep_duplicates)
    path = file_of(source)
    if path is None and not is_strategy(str(source)) and is_shipped(str(source)):
        raise InputError(f"{source} names bundled costs, not a schedule: pass it with -c (in Python: config)")
    return strategy(str(source)) if path is None else read(path, keep_duplicates=keep_duplicates)


def read(path: str | os.PathLike[str], *, keep_duplicates: bool = False) -> Schedule | Timeline:
    """Return the schedule or the timeline in a file; see :func:`read_schedule`."""
    from pipeplan.formats import read_schedule_or_timeline

    path = path_of(path, "the file")
    require_flags(keep_duplicates=keep_duplicates)
    run = timeline_of_run(path)
    return read_schedule_or_timeline(path, keep_duplicates=keep_duplicates) if run is None else run


def timeline_of_run(path: Path) -> Timeline | None:
    """Return the timeline of median length of a run's traces; None for a path that is no run, or without training."""
    runs = service("training", "runs")
    timeline: Timeline | None = runs.read_run(path).typical if runs is not None and runs.holds_run(path) else None
    return timeline


def read_schedule(path: str | os.PathLike[str], *, keep_duplicates: bool = False) -> Schedule:
    """Read the schedule in a file, or the order of ops of the timeline in it.

    Parameters
    ----------
    path
        A ``.csv`` or ``.json`` file, packed by gzip or not; or a folder with PyTorch's traces of every rank, of which the
        timeline of median length is taken, over all steps and replicas.
    keep_duplicates
        Keep a duplicate op, for :func:`pipeplan.check` to report, instead of raising.

    Raises
    ------
    InputError
        If it cannot be read.
    FormatError
        If it is empty, broken, or does not match its suffix.
    InvalidScheduleError
        If its ops make no schedule.
    """
    content = read(path, keep_duplicates=keep_duplicates)
    return content.schedule if isinstance(content, Timeline) else content


def read_timeline(path: str | os.PathLike[str]) -> Timeline:
    """Read the timeline in a file, or in the traces of a run.

    Parameters
    ----------
    path
        As for :func:`pipeplan.read_schedule`.

    Raises
    ------
    InputError
        As for :func:`pipeplan.read_schedule`, and for a file with a schedule, which has no times.
    """
    content = read(path)
    if isinstance(content, Schedule):
        raise InputError(f"{path} holds a schedule, which has no times: simulate it, or read it with read_schedule")
    return content


def resolve(
    source: ScheduleLike, settings: Settings, *, of_measured: bool = False, called: str | None = None
) -> Schedule:
    """Return the schedule of a name, a file, a schedule or a timeline.

    Parameters
    ----------
    of_measured
        Accept the order of ops of a measured timeline, for uses that neither show nor replace its times.
    called
        Name for messages; default: the source's own.
    """
    opened_source = opened(source)
    if isinstance(opened_source, Strategy):
        # Where "all" is recomputed, a strategy that recomputes by itself knows where it need not be.
        own = opened_source.recomputes and settings.recompute == "all"
        return _saving(build(opened_source, settings), settings.without("recompute") if own else settings)
    if isinstance(opened_source, Timeline):
        if opened_source.source == "measured" and not of_measured:
            raise InputError(
                f"{called or label(source)} holds a measured timeline, whose times are not simulated again: explain, export "
                "and diff take it as it was measured, and profile --from takes its costs; to simulate its order of ops, "
                "convert it to a schedule (.csv) first"
            )
        opened_source = opened_source.schedule
    return _saving(_of_given_shape(opened_source, settings), settings)


def _saving(schedule: Schedule, settings: Settings) -> Schedule:
    """Return the schedule with the recomputation and offload of the settings.

    A strategy that looks at costs has made its schedule as if all were kept: it keeps its memory limit, with room to spare.
    """
    recomputed, offloaded = settings.recomputed(schedule.stages), settings.offloaded(schedule.stages)
    if not recomputed and not offloaded:
        return schedule
    from pipeplan.passes import insert_offload, insert_recompute

    if recomputed:
        schedule = insert_recompute(schedule, recomputed)
    if not offloaded:
        return schedule
    apart = _ops_of_a_copy(schedule, settings)
    return insert_offload(schedule, offloaded, offload_behind=apart, reload_ahead=apart)


def _ops_of_a_copy(schedule: Schedule, settings: Settings) -> list[int]:
    """Return for each stage the number of ops that hide a copy to the host, at least 1.

    It is 1 if the time of a copy is unknown: an order of ops needs no times, and a simulation reports that they are missing.
    """
    costs = settings.costs(schedule.placement)
    if costs.offload is None:
        return [1] * schedule.stages
    times, ops = costs.durations(schedule), np.maximum(np.diff(schedule.offsets), 1)
    mean = np.bincount(schedule.rank, times, minlength=schedule.ranks) / ops
    shortest = np.min([mean[ranks] for ranks in schedule.placement.table], axis=0)
    lasts = np.ceil(costs.offload / schedule.slices / np.maximum(shortest, SMALLEST))
    most: list[int] = np.clip(lasts, 1, len(schedule)).astype(np.int64).tolist()
    return most


def label(source: ScheduleLike) -> str:
    """Return the name of a source for messages."""
    if is_standard_input(source):
        return "standard input"
    if isinstance(source, Result | Schedule | Strategy):
        return source.name or "the schedule"
    if isinstance(source, Timeline):
        return source.schedule.name or "the timeline"
    return str(source)


def file_of(source: ScheduleLike) -> Path | None:
    """Return the file of a source; None if it is not a file. A known schedule's name is never a file.

    Raises InputError for a path that no file can have, and for a folder's that is not there.
    """
    if isinstance(source, Strategy | Schedule | Timeline | Result) or is_standard_input(source):
        return None
    if isinstance(source, str) and not _is_file(source):
        return None
    require_schedule(source)
    return path_of(source, "the schedule's file")


def require_schedule(source: object) -> None:
    """Raise InputError for a value that is neither a schedule nor the name or file of one."""
    if isinstance(source, str | os.PathLike | Strategy | Schedule | Timeline | Result):
        return
    remedy = "; compare takes several" if isinstance(source, list | tuple) else ""
    raise InputError(
        f"a schedule is a name, a file, a strategy, a schedule or a timeline, not {shortened(repr(source), 60)}{remedy}",
        field="schedule",
    )


def _is_file(name: str) -> bool:
    """Return whether a text is the path of a file; the look-up of plugins comes last."""
    from pipeplan.formats import is_readable

    if STRATEGIES.knows(name):
        return False
    return os.sep in name or is_readable(name) or (os.path.exists(name) and not is_strategy(name))


def build(named: Strategy, settings: Settings) -> Schedule:
    """Return the schedule of a strategy."""
    shape = shape_of(named, settings)
    if not named.looks_at_costs:
        return named(shape)
    placement = named.placed(shape)
    return named(shape, settings.costs(placement), settings.limits(placement))


def shape_of(named: Strategy, settings: Settings) -> Shape:
    """Return the shape of the settings, with a strategy's own defaults; no schedule is generated."""
    chunks = named.chunks if settings.chunks is None else settings.chunks
    require_size(chunks=chunks)
    return named.shape(
        settings.pipeline_ranks(chunks),
        settings.microbatch_count or DEFAULT_MICROBATCHES,
        settings.chunks,
        group_size=settings.group_size,
        slices=settings.slices,
        variant=settings.variant,
    )


def _of_given_shape(schedule: Schedule, settings: Settings) -> Schedule:
    """Return the schedule. Raises ShapeError if the settings contradict its shape."""
    own = {
        "ranks": schedule.ranks,
        "stages": schedule.stages,
        "microbatches": schedule.microbatches,
        "chunks": schedule.placement.chunks,
        "slices": schedule.slices,
    }
    for name, value in own.items():
        requested = getattr(settings, name)
        if requested is not None and requested != value:
            raise ShapeError(f"the schedule {schedule.name or 'given'} has {value} {name}, not {requested}", field=name)
    return schedule


def same_ranks(settings: Settings) -> Settings:
    """Return settings that give schedules of different chunk counts the same ranks: ``stages`` alone becomes ``ranks``."""
    if settings.stages is None:
        return settings
    return replace(settings, ranks=settings.pipeline_ranks(settings.chunks or 1), stages=None)


def as_taken_by(named: Strategy, settings: Settings) -> Settings:
    """Return the settings without the options that this strategy lacks, to compare it with strategies that have them."""
    lacks = {
        "chunks": named.fixed_chunks,
        "slices": named.slices <= 1,
        "variant": settings.variant not in named.variants,
        "group_size": not named.grouped,
    }
    return settings.without(*(name for name, lacking in lacks.items() if lacking))


def settings_for(entrant: Source, settings: Settings) -> Settings:
    """Return the settings of one schedule: a schedule object has its own chunks, groups and slices."""
    if isinstance(entrant, Strategy):
        return as_taken_by(entrant, settings)
    return settings.without("chunks", "group_size", "slices", "variant")


def in_unit(timeline: Timeline, unit: str) -> Timeline:
    """Return a timeline in another unit of time; if either unit is unknown, its numbers stay."""
    scale = units_in(timeline.unit, unit) if timeline.unit in TIME_UNITS and unit in TIME_UNITS else 1.0
    occupied = None if timeline.occupied is None else timeline.occupied * scale
    return replace(timeline, start=timeline.start * scale, end=timeline.end * scale, occupied=occupied, unit=unit)
