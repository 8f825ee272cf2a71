"""The checker: all problems of a schedule, found independently of the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pipeplan.checking.findings import Finding, Report
from pipeplan.checking.memory import check_buffers, check_memory
from pipeplan.checking.messages import check_channels, check_messages, check_streams, has_messages
from pipeplan.checking.structure import check_order, check_progress, check_rendezvous, check_structure
from pipeplan.checking.torch_rules import (
    check_losses,
    check_progress_of_waits,
    check_reduce_grad,
    check_sharding,
    check_torch_form,
    check_waits,
    note_no_reduce_grad,
    note_no_waits,
)
from pipeplan.model import MemoryRule, Schedule, Streams, dependencies

Sends = Literal["buffered", "blocking"]


def check(
    schedule: Schedule,
    *,
    memory: MemoryRule | None = None,
    sends: Sends = "buffered",
    streams: Streams | None = None,
    reduce_grad: bool | None = None,
    buffers: int | None = None,
    waits: bool | None = None,
    pytorch: bool = False,
) -> Report:
    """Report all problems of a schedule: first of its structure and then, if that is valid, of its order and messages.

    Parameters
    ----------
    memory
        Memory per stage and limits per rank; None: no limit.
    sends
        ``buffered`` sends return at once, ``blocking`` ones wait for their receive. With ``buffered``, a deadlock that
        occurs only with blocking sends is a note.
    streams
        Communication streams on which messages run in order; a deadlock of messages on them is a problem, and ``sends`` has
        no effect. None: the runtime has none, or they are unknown.
    reduce_grad
        True if every stage needs a REDUCE_GRAD; None: only if the schedule has any stage-wide op.
    buffers
        Maximum number of received messages that wait for their ops on a rank. None: a generous number, and exceeding it
        is a note.
    waits
        True if the runtime requires ops that wait for sends and reduced gradients, False if it rejects them. None: a
        schedule with some of them must have all of them, and a schedule with communication but without them gets a
        note.
    pytorch
        True for the rules of PyTorch's runtime that all of its releases have; it takes the k-th loss for microbatch k.
        False: losses out of order are a note.
    """
    notes: list[Finding] = []
    problems = list(check_structure(schedule))
    if not problems:
        required = waits if has_messages(schedule) or waits is False else None
        reduce_grad = True if pytorch and has_messages(schedule) and schedule.microbatches > 1 else reduce_grad
        problems += _check_content(schedule, reduce_grad, required, streams)
        problems += (*check_losses(schedule), *check_torch_form(schedule)) if pytorch else ()
    if not problems and not pytorch:
        notes += check_losses(schedule)
    if not problems and has_messages(schedule):
        needs = dependencies(schedule)
        if streams is None:
            (problems if sends == "blocking" else notes).extend(check_rendezvous(schedule, needs))
        (notes if buffers is None else problems).extend(check_buffers(schedule, needs, limit=buffers))
        notes += () if reduce_grad else note_no_reduce_grad(schedule)
        notes += note_no_waits(schedule) if waits is None else ()
    if memory is not None:
        problems += check_memory(schedule, memory)
    return Report(schedule, tuple(problems), tuple(notes))


def _check_content(
    schedule: Schedule, reduce_grad: bool | None, waits: bool | None, streams: Streams | None
) -> Iterator[Finding]:
    yield from check_sharding(schedule)
    yield from check_reduce_grad(schedule, required=reduce_grad)
    lost = list(check_messages(schedule)) if has_messages(schedule) else []
    lost += check_waits(schedule, required=waits)
    yield from lost
    if not lost:
        yield from _check_run(schedule, streams)


def _check_run(schedule: Schedule, streams: Streams | None) -> Iterator[Finding]:
    needs = dependencies(schedule)
    disordered = list(check_order(schedule, needs))
    yield from disordered
    if not disordered and streams is not None and has_messages(schedule):
        yield from check_streams(schedule, needs, streams)
        yield from check_channels(schedule, needs, by_direction=streams == "direction")
    elif not disordered:
        stuck = list(check_progress(schedule, needs))
        yield from stuck
        if has_messages(schedule):
            if not stuck:
                yield from check_progress_of_waits(schedule, needs)
            yield from check_channels(schedule, needs)
