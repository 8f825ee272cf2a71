"""Sources of schedules: names, files and answers, converted to one that PyTorch's runtime executes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sized
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch.distributed as dist

from pipeplan.checking import check
from pipeplan.formats import is_readable, read_schedule_or_timeline
from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.model import NO_GROUP, Kind, Schedule, Timeline
from pipeplan.passes import Receives, add_unshard_reshard, insert_communication, lower_for_torch, require_expressible
from pipeplan.strategies import Strategy, is_strategy, strategy


class HasTimeline(Protocol):
    """Any answer with a timeline, such as those of :func:`pipeplan.simulate` and :func:`pipeplan.search`."""

    @property
    def timeline(self) -> Timeline:
        """Return the timeline, whose schedule is used."""


ScheduleSource = str | os.PathLike[str] | Strategy | Schedule | Timeline | HasTimeline
"""A strategy or its name, a file, a schedule, or an answer that holds one."""


def stages_of(
    schedule: ScheduleSource, rank: int | None = None, *, ranks: int | None = None, chunks: int | None = None
) -> tuple[int, ...]:
    """Return the numbers of the stages that a rank holds, in order: those to build for :class:`Pipeline`.

    Parameters
    ----------
    schedule
        As :class:`Pipeline` takes it.
    rank
        Rank of the pipeline; None: this process's, of all processes.
    ranks, chunks
        Number of ranks, and of stages on each, for a strategy or its name. None: the number of processes, and the
        strategy's default.

    Raises
    ------
    InputError
        If ``rank`` or the ``ranks`` of a strategy are missing and ``init_process_group`` has not been called.
    ShapeError
        If the schedule has no such rank, or the strategy does not support the shape.
    PipeplanError
        If the schedule is unknown or unreadable.

    Examples
    --------
    >>> stages_of("zbv", 0, ranks=4)
    (0, 7)
    """
    source = _opened(schedule)
    if isinstance(source, Strategy):
        shape = source.shape(_processes(ranks, dist.get_world_size, "ranks"), 1, chunks)
        placement = source.placed(shape)
    else:
        placement = source.placement
        for name, value, own in (("ranks", ranks, placement.ranks), ("chunks", chunks, placement.chunks)):
            if value not in (None, own):
                raise ShapeError(f"{source.name or 'the schedule'} has {own} {name}, not {value}", field=name)
    rank = _processes(rank, dist.get_rank, "rank")
    if not 0 <= rank < placement.ranks:
        raise ShapeError(f"there is no rank {rank}: the ranks are 0 to {placement.ranks - 1}", field="rank")
    return tuple(placement.stages_on(rank))


def _processes(value: int | None, of_job: Callable[[], int], name: str) -> int:
    """Return a number, or that of the running job if it is None."""
    if value is None and not dist.is_initialized():
        raise InputError(f"{name} is required before init_process_group: stages_of(schedule, {name}=...)", field=name)
    return of_job() if value is None else value


def resolved(
    source: ScheduleSource,
    *,
    ranks: int,
    microbatches: int | None,
    held: Sized,
    receives: Receives = "early",
    checked: bool = True,
) -> Schedule:
    """Return the schedule of a source, in the form that PyTorch's runtime executes.

    Parameters
    ----------
    source
        The schedule as the user passes it.
    ranks
        Number of processes of the pipeline's group.
    microbatches
        Number of microbatches; required with a strategy's name, otherwise it must agree with the schedule.
    held
        This rank's stages; their number is the chunks of a strategy that allows several.
    receives
        Place of inserted receives: early or late.
    checked
        True to refuse an invalid schedule.

    Raises
    ------
    InputError
        If a strategy's name comes without microbatches.
    UnknownNameError, FormatError
        If the name is unknown, or the file cannot be read.
    InvalidScheduleError
        If the schedule is invalid or its ranks deadlock.
    ShapeError
        If the numbers of ranks or microbatches differ, the strategy does not support the shape, or PyTorch's runtime cannot
        express the schedule.
    """
    schedule = _built(_opened(source), ranks, microbatches, len(held))
    name = schedule.name or "the schedule"
    if schedule.ranks != ranks:
        raise ShapeError(
            f"{name} is made for {schedule.ranks} ranks but the group has {ranks} process(es): start {schedule.ranks} per "
            f"pipeline, or pass a schedule of {ranks} ranks",
            field="ranks",
        )
    if microbatches not in (None, schedule.microbatches):
        raise ShapeError(
            f"{name} has {schedule.microbatches} microbatches, but microbatches={microbatches}: drop microbatches or use "
            "another schedule",
            field="microbatches",
        )
    require_expressible(schedule)
    if checked:
        check(schedule).require_valid()
    return lower_for_torch(schedule, receives=receives)


def _built(source: Strategy | Schedule, ranks: int, microbatches: int | None, chunks: int) -> Schedule:
    if isinstance(source, Schedule):
        return source
    if microbatches is None:
        raise InputError(f"{source.name} needs its microbatches: Pipeline(..., microbatches=8)", field="microbatches")
    return source(source.shape(ranks, microbatches, None if source.fixed_chunks else chunks))


def _opened(source: ScheduleSource) -> Strategy | Schedule:
    if isinstance(source, Strategy | Schedule):
        return source
    # A name that is neither a strategy nor looks like a file is reported as an unknown strategy.
    if isinstance(source, str) and (is_strategy(source) or not _is_file(source)):
        return strategy(source)
    if isinstance(source, str | os.PathLike):
        source = read_schedule_or_timeline(Path(source))
        return source if isinstance(source, Schedule) else source.schedule
    timeline = source if isinstance(source, Timeline) else getattr(source, "timeline", None)
    if not isinstance(timeline, Timeline):
        raise InputError(f"a schedule is a strategy's name, a file, or a schedule; this is a {type(source).__name__}")
    return timeline.schedule


def _is_file(name: str) -> bool:
    return is_readable(name) or os.sep in name or os.path.exists(name)


def forwards_alone(schedule: Schedule) -> Schedule:
    """Return the forwards of a schedule in their order, with their own communication, for evaluation."""
    forwards = schedule.keep(schedule.columns.kind == Kind.F)
    # Without their backwards, forwards of overlapped pairs are single ops.
    single = np.full(len(forwards), NO_GROUP, np.int32)
    forwards = replace(forwards, columns=replace(forwards.columns, group=single))
    return insert_communication(add_unshard_reshard(forwards))
