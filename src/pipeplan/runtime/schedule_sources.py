"""Sources of schedules: names, files, answers and PyTorch's schedules, converted to one that PyTorch's runtime executes."""

from __future__ import annotations

import os
from collections.abc import Sized
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pipeplan.checking import check
from pipeplan.errors import InputError, ShapeError
from pipeplan.formats import is_readable, read_schedule_or_timeline
from pipeplan.model import NO_GROUP, Kind, Placement, Schedule, Timeline, from_ops
from pipeplan.passes import Receives, add_unshard_reshard, insert_communication, lower_for_torch, require_expressible
from pipeplan.runtime import torch_internals
from pipeplan.runtime.requirements import require_torch
from pipeplan.strategies import is_strategy, strategy


class HasTimeline(Protocol):
    """Any answer with a timeline, such as those of :func:`pipeplan.simulate` and :func:`pipeplan.search`."""

    @property
    def timeline(self) -> Timeline:
        """Return the timeline, whose schedule is used."""


ScheduleSource = str | os.PathLike[str] | Schedule | Timeline | HasTimeline
"""Name of a strategy, a file, a schedule, or an answer that holds one."""


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
    schedule = _opened(source, ranks, microbatches, len(held))
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


def _opened(source: ScheduleSource, ranks: int, microbatches: int | None, chunks: int) -> Schedule:
    if isinstance(source, Schedule):
        return source
    # A name that is neither a strategy nor looks like a file is reported as an unknown strategy.
    if isinstance(source, str) and (is_strategy(source) or not _is_file(source)):
        rule = strategy(source)
        if microbatches is None:
            raise InputError(f"{rule.name} needs its microbatches: Pipeline(..., microbatches=8)", field="microbatches")
        return rule(rule.shape(ranks, microbatches, None if rule.fixed_chunks else chunks))
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


NAMES = {
    "ScheduleGPipe": "gpipe",
    "Schedule1F1B": "1f1b",
    "ScheduleLoopedBFS": "looped-bfs",
    "ScheduleInterleaved1F1B": "interleaved-1f1b",
    "ScheduleInterleavedZeroBubble": "interleaved-zb",
    "ScheduleZBVZeroBubble": "zbv",
    "ScheduleDualPipeV": "dualpipev",
}
"""Names of PyTorch's schedule classes in pipeplan."""


def from_torch(
    schedule: Any,
    ranks: int | None = None,
    microbatches: int | None = None,
    chunks: int | None = None,
    *,
    communication: bool = False,
) -> Schedule:
    """Convert a schedule of PyTorch to a :class:`~pipeplan.model.Schedule`.

    Parameters
    ----------
    schedule
        A live schedule object, which has its own shape; a schedule class; or the name of one as for ``get_schedule_class``,
        such as ``"ZBVZeroBubble"``.
    ranks, microbatches, chunks
        The shape, for a class or a name. Chunks per rank default to 1 for GPipe and 1F1B, else to 2.
    communication
        True to keep the SENDs, RECVs and ops of whole stages of PyTorch's own lowering, instead of compute ops only.

    Raises
    ------
    UnknownNameError
        If PyTorch has no schedule of this name.
    InputError
        If the object is not a pipeline schedule, the shape is missing, or a live object comes with a shape.
    ShapeError
        If PyTorch refuses the shape.
    """
    require_torch()
    shape = (ranks, microbatches, chunks)
    if not isinstance(schedule, str | type):
        if shape != (None, None, None):
            raise InputError(f"a live {type(schedule).__name__} has its own shape; leave out {shape}")
        return _read(schedule, communication)
    cls = torch_internals.schedule_class(schedule) if isinstance(schedule, str) else schedule
    if ranks is None or microbatches is None:
        raise InputError(f"{cls.__name__} needs its shape: from_torch(..., ranks=4, microbatches=8)")
    if chunks is None:
        chunks = 1 if cls.__name__ in ("ScheduleGPipe", "Schedule1F1B") else 2
    return _read(torch_internals.instantiate(cls, ranks, microbatches, chunks), communication)


def _read(live: Any, communication: bool) -> Schedule:
    rows, rank_of, microbatches = torch_internals.rows_of(live, communication=communication)
    placement = Placement.of(tuple(rank_of[stage] for stage in sorted(rank_of)))
    name = NAMES.get(type(live).__name__, type(live).__name__)
    return Schedule.from_rows(placement, microbatches, [from_ops(row) for row in rows], name=name)
