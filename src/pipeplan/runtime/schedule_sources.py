"""From what a user calls a schedule to the schedule that PyTorch's runtime executes."""

from __future__ import annotations

import os
from collections.abc import Sized
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pipeplan.checking import check
from pipeplan.errors import InputError, ShapeError
from pipeplan.formats import endings, read_schedule_or_timeline
from pipeplan.model import NO_GROUP, Kind, Placement, Schedule, Timeline, from_ops
from pipeplan.passes import Receives, add_unshard_reshard, insert_communication, lower_for_torch, require_expressible
from pipeplan.runtime import torch_internals
from pipeplan.runtime.requirements import require_torch
from pipeplan.strategies import is_strategy, strategy


class HasTimeline(Protocol):
    """An answer with a timeline, such as :func:`pipeplan.simulate` and :func:`pipeplan.search` give."""

    @property
    def timeline(self) -> Timeline:
        """The timeline whose schedule is meant."""


ScheduleSource = str | os.PathLike[str] | Schedule | Timeline | HasTimeline
"""A strategy's name, a file, a schedule, or an answer that holds one."""


def resolved(
    source: ScheduleSource,
    *,
    ranks: int,
    microbatches: int | None,
    held: Sized,
    receives: Receives = "early",
    checked: bool = True,
) -> Schedule:
    """The schedule that is meant, as PyTorch's runtime executes it.

    Parameters
    ----------
    source
        What the user gave.
    ranks
        Of the pipeline's process group.
    microbatches
        Needed for a strategy's name; must not contradict anything else.
    held
        This rank's stages: how many they are tells the chunks of a strategy that can have several.
    receives
        Where inserted receives stand.
    checked
        Refuse a schedule that is not right.

    Raises
    ------
    InputError
        For a schedule of another number of ranks or microbatches, or a name without microbatches.
    UnknownNameError, FormatError
        For a name that nobody knows, or a file that cannot be understood.
    InvalidScheduleError
        For a schedule that is not right, or whose ranks wait for each other.
    ShapeError
        For a shape that the strategy cannot take, or a schedule that PyTorch's runtime cannot express.
    """
    schedule = _opened(source, ranks, microbatches, len(held))
    name = schedule.name or "the schedule"
    if schedule.ranks != ranks:
        raise ShapeError(
            f"{name} is made for {schedule.ranks} ranks but the group has {ranks} process(es): start {schedule.ranks} a "
            f"pipeline, or give a schedule of {ranks} ranks",
            field="ranks",
        )
    if microbatches not in (None, schedule.microbatches):
        raise ShapeError(f"{name} has {schedule.microbatches} microbatches, not {microbatches}", field="microbatches")
    require_expressible(schedule)
    if checked:
        check(schedule).require_valid()
    return lower_for_torch(schedule, receives=receives)


def _opened(source: ScheduleSource, ranks: int, microbatches: int | None, chunks: int) -> Schedule:
    if isinstance(source, Schedule):
        return source
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
    return name.lower().endswith(endings()) or os.sep in name or os.path.exists(name)


def forwards_alone(schedule: Schedule) -> Schedule:
    """The forwards of a schedule in their order, with communication of their own: a pass that only evaluates."""
    forwards = schedule.keep(schedule.columns.kind == Kind.F)
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
"""The names of PyTorch's schedules here."""


def from_torch(
    schedule: Any,
    ranks: int | None = None,
    microbatches: int | None = None,
    chunks: int | None = None,
    *,
    communication: bool = False,
) -> Schedule:
    """Return a schedule of PyTorch's as one of ours.

    Parameters
    ----------
    schedule
        A live schedule object, which has its own shape; a schedule class; or the name of one as ``get_schedule_class``
        takes it, such as ``"ZBVZeroBubble"``.
    ranks, microbatches, chunks
        The shape, for a class or a name. Chunks per rank default to 1 for GPipe and 1F1B, else to 2.
    communication
        Keep the SENDs, RECVs and ops of whole stages of PyTorch's own lowering; without it, compute ops only.

    Raises
    ------
    UnknownNameError
        For a name that PyTorch does not know.
    InputError
        For an object that is not a pipeline schedule, a missing shape, or a shape given for a live object.
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
