"""The checker: everything that is wrong with a schedule. Independent of the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pipeplan.checking.buffers import check_buffers
from pipeplan.checking.channels import check_channels, check_messages, communicates
from pipeplan.checking.memory import check_memory
from pipeplan.checking.order import check_order, check_progress
from pipeplan.checking.problem import Problem, Report
from pipeplan.checking.rendezvous import check_rendezvous
from pipeplan.checking.stage_wide import check_reduce_grad, check_sharding, note_no_reduce_grad
from pipeplan.checking.structure import check_structure
from pipeplan.model import MemoryRule, Schedule, dependencies

Sends = Literal["buffered", "blocking"]


def check(
    schedule: Schedule,
    *,
    memory: MemoryRule | None = None,
    sends: Sends = "buffered",
    reduce_grad: bool | None = None,
    buffers: int | None = None,
) -> Report:
    """All problems of a schedule: structure first, and where that is right, whether it runs and on the right data.

    Parameters
    ----------
    memory
        What stages hold and ranks may; None: as much as they like.
    sends
        What the runtime's sends do: ``buffered`` ones return at once, ``blocking`` ones wait for their receive. With
        ``buffered``, a deadlock that only blocking sends run into is a note.
    reduce_grad
        Whether every stage needs a REDUCE_GRAD; None: where the schedule has any op of a whole stage.
    buffers
        How many received messages may wait for their ops on a rank. None: a generous number, and more is only a note.
    """
    problems = list(check_structure(schedule)) or list(_check_content(schedule, reduce_grad))
    notes: list[Problem] = []
    if not problems and communicates(schedule):
        needs = dependencies(schedule)
        (problems if sends == "blocking" else notes).extend(check_rendezvous(schedule, needs))
        (notes if buffers is None else problems).extend(check_buffers(schedule, needs, limit=buffers))
        notes += note_no_reduce_grad(schedule)
    if memory is not None:
        problems += check_memory(schedule, memory)
    return Report(schedule, tuple(problems), tuple(notes))


def _check_content(schedule: Schedule, reduce_grad: bool | None) -> Iterator[Problem]:
    yield from check_sharding(schedule)
    yield from check_reduce_grad(schedule, wanted=reduce_grad)
    lost = list(check_messages(schedule)) if communicates(schedule) else []
    yield from lost
    if not lost:
        yield from _check_run(schedule)


def _check_run(schedule: Schedule) -> Iterator[Problem]:
    needs = dependencies(schedule)
    disordered = list(check_order(schedule, needs))
    yield from disordered
    if not disordered:
        yield from check_progress(schedule, needs)
        if communicates(schedule):
            yield from check_channels(schedule, needs)
