"""From what a user calls a schedule to the schedule that PyTorch's runtime executes."""

from __future__ import annotations

import os
from collections.abc import Sized
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from pipeplan.checking import check
from pipeplan.errors import InputError, ShapeError
from pipeplan.formats import endings, read_schedule_or_timeline
from pipeplan.model import NO_GROUP, Kind, Schedule, Timeline
from pipeplan.passes import Receives, add_unshard_reshard, insert_communication, lower_for_torch, require_expressible
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
