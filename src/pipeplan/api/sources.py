"""From a name, a file or a schedule, and settings, to the schedule that is meant."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.formats import endings, read_schedule
from pipeplan.model import Schedule
from pipeplan.model.size import require_size
from pipeplan.strategies import Shape, Strategy, is_strategy, strategy

Source = str | os.PathLike[str] | Schedule
"""A strategy's or heuristic's name, a file that holds a schedule, or a schedule."""

DEFAULT_MICROBATCHES = 8


def plan(source: Source, settings: Settings) -> Schedule:
    """The schedule that a name, a file or a schedule stands for.

    Raises
    ------
    UnknownNameError
        For a name that nobody knows.
    ShapeError
        For a shape that the strategy cannot take, or that contradicts the file.
    InputError, FormatError, InvalidScheduleError
        For a file that cannot be read or understood.
    InfeasibleError
        If a heuristic finds no schedule under the memory limit.
    """
    if isinstance(source, Schedule):
        return _of_given_shape(source, settings)
    path = file_of(source)
    if path is not None:
        return _of_given_shape(read_schedule(path), settings)
    return build(strategy(str(source)), settings)


def file_of(source: Source) -> Path | None:
    """The file that is meant, or None for a schedule or a name. A known name is never a file."""
    if isinstance(source, Schedule):
        return None
    path = Path(source)
    if isinstance(source, str):
        looks_like_file = source.lower().endswith(endings()) or os.sep in source or path.is_file()
        return path if looks_like_file and not is_strategy(source) else None
    return path


def build(found: Strategy, settings: Settings) -> Schedule:
    """The schedule of a strategy. See :func:`plan` for what it raises."""
    shape = shape_of(found, settings)
    if not found.looks_at_costs:
        return found(shape)
    placement = found.placed(shape)
    return found(shape, settings.costs(placement), settings.limits(placement))


def shape_of(found: Strategy, settings: Settings) -> Shape:
    """The shape that is meant by settings, with a strategy's own numbers where they say nothing; nothing is made of it yet.

    Raises
    ------
    ShapeError
        For a shape that the strategy cannot have, that contradicts itself, or that is too large to be planned.
    UnknownNameError
        For a variant that it does not know.
    """
    chunks = found.chunks if settings.chunks is None else settings.chunks
    require_size(chunks=chunks)
    return found.shape(
        settings.pipeline_ranks(chunks),
        DEFAULT_MICROBATCHES if settings.microbatches is None else settings.microbatches,
        settings.chunks,
        group_size=settings.group_size,
        slices=settings.slices,
        variant=settings.variant,
    )


def _of_given_shape(schedule: Schedule, settings: Settings) -> Schedule:
    """A schedule has its shape; whoever also gives one must not contradict it."""
    own = {
        "ranks": schedule.ranks,
        "stages": schedule.stages,
        "microbatches": schedule.microbatches,
        "chunks": schedule.placement.chunks,
        "slices": schedule.slices,
    }
    for name, value in own.items():
        asked = getattr(settings, name)
        if asked is not None and asked != value:
            raise ShapeError(f"the schedule {schedule.name or 'given'} has {value} {name}, not {asked}")
    return schedule


def same_ranks(settings: Settings) -> Settings:
    """Settings under which schedules of different chunk counts have the same ranks: ``stages`` alone is turned into them."""
    if settings.stages is None:
        return settings
    return replace(settings, ranks=settings.pipeline_ranks(settings.chunks or 1), stages=None)


def as_taken_by(found: Strategy, settings: Settings) -> Settings:
    """The settings without the options that a strategy does not have, for comparing it with those that have them."""
    return replace(
        settings,
        chunks=None if found.fixed_chunks else settings.chunks,
        slices=settings.slices if found.slices > 1 else None,
        variant=settings.variant if settings.variant in found.variants else None,
        group_size=settings.group_size if found.grouped else None,
    )
