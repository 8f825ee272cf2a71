"""From a name, a file or a schedule, and settings, to the schedule that is meant."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pipeplan.api.catalogue import Entry, entry, fixed_chunks, is_name
from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.formats import endings, read_schedule
from pipeplan.model import Placement, Schedule
from pipeplan.model.size import require_size
from pipeplan.strategies.heuristics import Heuristic
from pipeplan.strategies.strategy import Shape, Strategy

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
    return build(entry(str(source)), settings)


def file_of(source: Source) -> Path | None:
    """The file that is meant, or None for a schedule or a name. A known name is never a file."""
    if isinstance(source, Schedule):
        return None
    path = Path(source)
    if isinstance(source, str):
        looks_like_file = source.lower().endswith(endings()) or os.sep in source or path.is_file()
        return path if looks_like_file and not is_name(source) else None
    return path


def build(found: Entry, settings: Settings) -> Schedule:
    """The schedule of a strategy or a heuristic. See :func:`plan` for what it raises."""
    shape = shape_of(found, settings)
    return found(shape) if isinstance(found, Strategy) else _build_heuristic(found, settings, shape)


def shape_of(found: Entry, settings: Settings) -> Shape:
    """The shape that is meant by settings, with an entry's own numbers where they say nothing; nothing is made of it yet.

    Raises
    ------
    ShapeError
        For a shape that the entry cannot have, that contradicts itself, or that is too large to be planned.
    UnknownNameError
        For a variant that it does not know.
    """
    chunks = found.chunks if settings.chunks is None else settings.chunks
    require_size(chunks=chunks)
    ranks = settings.pipeline_ranks(chunks)
    microbatches = DEFAULT_MICROBATCHES if settings.microbatches is None else settings.microbatches
    if not isinstance(found, Strategy):
        return Shape(ranks, microbatches, chunks)
    return found.shape(
        ranks,
        microbatches,
        settings.chunks,
        group_size=settings.group_size,
        slices=settings.slices,
        variant=settings.variant,
    )


def _build_heuristic(found: Heuristic, settings: Settings, shape: Shape) -> Schedule:
    if settings.chunks not in (None, found.chunks):
        raise ShapeError(f"{found.name} has {found.chunks} chunk(s) a rank, not {settings.chunks}")
    for name in ("group_size", "variant", "slices"):
        if (value := getattr(settings, name)) is not None:
            raise ShapeError(f"{found.name} has no {name.replace('_', ' ')} ({value} asked for)")
    placement = Placement.wave(shape.ranks, found.chunks)
    return found(shape.ranks, shape.microbatches, settings.costs(placement), settings.limits(placement))


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


def as_taken_by(found: Entry, settings: Settings) -> Settings:
    """The settings without the options that an entry does not have, for comparing it with those that have them."""
    strategy = found if isinstance(found, Strategy) else None
    chunks = settings.chunks if fixed_chunks(found) is None else None
    slices = settings.slices if strategy is not None and strategy.slices > 1 else None
    variant = settings.variant if strategy is not None and settings.variant in strategy.variants else None
    group_size = settings.group_size if strategy is not None and strategy.grouped else None
    return replace(settings, chunks=chunks, slices=slices, variant=variant, group_size=group_size)
