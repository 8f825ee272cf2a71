"""When an annotated op worked: what it had a GPU do after its receive, or what the host did in its annotation.

An annotation says when the host was at an op, and the host waits there for messages, or runs ahead of the GPU. So what
counts is what the op had done:

* where a GPU works, the kernels that were launched inside the annotation, by any thread: autograd has its own. Kernels that
  move messages (NCCL's) do not compute. An op starts with the first kernel on its stream that starts after the receive has
  ended; what ran before, such as the copies of an FSDP unshard, was not the op's.
* else the annotation, whatever the host does in it: not all work is an operator. It starts when the last receive in it has
  ended, and FSDP has moved what the op needs; with the first operator where the trace does not say when a message had
  arrived. It ends with the annotation, or where the host turns to sending.
* An op that launches nothing on a GPU starts when what it waited for is there, and takes the shortest time that a profiler's
  clock can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeplan.formats.annotations import RESOLUTION, AnnotatedOp
from pipeplan.model import BACKWARD_KINDS, Floats, Kind, Op

_MOVES = ("FSDP::all_gather", "FSDP::post_backward_reduce")
"""Prefixes of the annotations inside which FSDP moves parameters and gradients."""


class Activity(NamedTuple):
    """Work, or a message: where it ran, when the host began it, from when to when it ran, in microseconds."""

    stream: int
    launched: float
    start: float
    end: float


class Activities:
    """Activities in the order in which the host began them."""

    def __init__(self, found: Iterable[Activity]) -> None:
        table = np.array(sorted(found, key=lambda each: each.launched), np.float64).reshape(-1, 4)
        self.stream, self.launched, self.start, self.end = table.T

    def __len__(self) -> int:
        return len(self.start)

    def within(self, start: float, end: float) -> NDArray[np.intp]:
        """The numbers of those that the host began between two times."""
        return np.arange(*np.searchsorted(self.launched, (start, end + RESOLUTION / 2)))


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """The annotations, kernels and messages that a profiler recorded of a rank.

    Attributes
    ----------
    marks
        The annotated ops in order.
    operators
        What the host computed; the stream is a number for the thread.
    kernels
        What a GPU computed.
    messages
        Receives of the host; what moved messages on a GPU.
    handovers
        When the host turned to sending or receiving.
    threads
        The number of each thread.
    moves
        When the host moved parameters or gradients: starts and ends, shape (2, moves).
    annotated_work
        By the number of a mark: start and end of work on a GPU that the annotation itself tells, where no kernel does.
    """

    marks: Sequence[AnnotatedOp]
    operators: Activities
    kernels: Activities
    messages: Activities
    handovers: Floats
    threads: dict[int | str, int]
    moves: Floats
    annotated_work: dict[int, tuple[float, float]]


def moves_data(name: str) -> bool:
    """Whether an annotation of this name is FSDP's own moving of parameters and gradients."""
    return name.startswith(_MOVES)


def is_message(kernel: str) -> bool:
    """Whether a kernel of this name moves messages: NCCL's, and those of its kin for other makers' GPUs."""
    return kernel.lower().startswith(("nccl", "rccl", "mscclkernel"))


def op_times(recorded: Recorded) -> tuple[Floats, Floats]:
    """Start and end of each annotated op in microseconds, shape (marks,) each."""
    arrivals = _arrivals(recorded)
    times = np.empty((len(recorded.marks), 2))
    free = -np.inf
    for number, mark in enumerate(recorded.marks):
        if mark.computes:
            times[number] = _compute_time(recorded, number, arrivals.get(number, -np.inf), free)
            free = times[number, 1]
        else:
            times[number] = _message_time(recorded, mark)
    return times[:, 0], times[:, 1]


def _arrivals(recorded: Recorded) -> dict[int, float]:
    """By the number of an op's mark: when what its receive's mark began had ended; of a pair, for the first of the two.

    The second one of a pair may wait while the first one works, and what passes between them is the pair's.
    """
    ends: dict[tuple[Kind, int, int, int], float] = {}
    found: dict[int, float] = {}
    for number, mark in enumerate(recorded.marks):
        for op in mark.ops:
            key = _received_for(op)
            if op.kind in (Kind.RECV_F, Kind.RECV_B):
                here = recorded.messages.within(mark.span.start, mark.span.end)
                if len(here):
                    ends[key] = float(recorded.messages.end[here].max())
            elif key in ends:
                end = ends.pop(key)
                if op is mark.ops[0]:
                    found[number] = end
    return found


def _received_for(op: Op) -> tuple[Kind, int, int, int]:
    """Return the key that a receive and the op that it is for share with no other op."""
    kind = op.kind
    if kind == Kind.F:
        kind = Kind.RECV_F
    elif kind in BACKWARD_KINDS:
        kind = Kind.RECV_B
    return kind, op.stage, op.microbatch, op.slice


def _message_time(recorded: Recorded, mark: AnnotatedOp) -> tuple[float, float]:
    """Return the time of a message: of its kernels on a GPU, else of the annotation."""
    here = recorded.messages.within(mark.span.start, mark.span.end)
    if len(recorded.kernels) and len(here):
        return float(recorded.messages.start[here].min()), float(recorded.messages.end[here].max())
    return mark.span.start, mark.span.end


def _compute_time(recorded: Recorded, number: int, arrival: float, free: float) -> tuple[float, float]:
    """Start and end of a compute op.

    Parameters
    ----------
    arrival
        When the message that it needs had arrived, as far as a receive's own mark tells it.
    free
        When the op before it ended.
    """
    span = recorded.marks[number].span
    if number in recorded.annotated_work and not len(recorded.kernels):
        return recorded.annotated_work[number]
    work = recorded.kernels
    if not len(work):
        return _host_time(recorded, number, arrival)
    here = _own_work(recorded, number, work)
    arrival = max(arrival, _arrival_inside(recorded, number, here, work))
    after = here[work.start[here] >= arrival - RESOLUTION / 2]
    if not len(after):
        after = here
    start = end = max(arrival, free, span.start)
    if len(after):
        start, end = float(work.start[after].min()), float(work.end[after].max())
    return start, max(end, start + RESOLUTION)


def _host_time(recorded: Recorded, number: int, arrival: float) -> tuple[float, float]:
    """Return start and end of a compute op of the host: its annotation without the waiting and moving at its begin."""
    span, work = recorded.marks[number].span, recorded.operators
    received = recorded.messages.end[recorded.messages.within(span.start, span.end)]
    # What arrived after the annotation was not this op's.
    start = max((end for end in (arrival, *received.tolist()) if end <= span.end), default=span.start)
    start = max(start, span.start)
    here = _own_work(recorded, number, work)
    here = here[work.start[here] >= start - RESOLUTION / 2]
    first, last = (float(work.launched[here[edge]]) for edge in (0, -1)) if len(here) else (span.end, start)
    moved = recorded.moves[1, (recorded.moves[0] >= start) & (recorded.moves[0] < first)]
    start = min(float(moved.max(initial=start)), first)
    if len(here) and _turns_to_messages(recorded, start, first):
        start = first
    end = float(work.end[here].max()) if last > span.end else _host_end(recorded, span.end, last)
    return start, max(end, start + RESOLUTION)


def _own_work(recorded: Recorded, number: int, work: Activities) -> NDArray[np.intp]:
    """Return the work that the host began inside an op's annotation, without FSDP's moves and other threads' operators."""
    span = recorded.marks[number].span
    here = work.within(span.start, _until(recorded, number))
    if work is recorded.operators:
        here = here[work.stream[here] == recorded.threads.get(span.thread, -1)]
    launched = work.launched[here]
    which = np.searchsorted(recorded.moves[0], launched, side="right") - 1
    moving = (which >= 0) & (launched <= np.append(recorded.moves[1], -np.inf)[which])
    return here[~moving]


def _turns_to_messages(recorded: Recorded, start: float, end: float) -> bool:
    """Whether the host began to send or receive between two times."""
    first, stop = np.searchsorted(recorded.handovers, (start, end))
    return bool(stop > first)


def _until(recorded: Recorded, number: int) -> float:
    """Return the end of an op's annotation; with PyTorch's GPipe that of the loss behind a forward."""
    mark, following = recorded.marks[number], recorded.marks[number + 1 : number + 2]
    if mark.numbered or not following or mark.ops[0].kind != Kind.F:
        return mark.span.end
    after = following[0].ops[0]
    goes_on = after.kind != Kind.F or after.microbatch == mark.ops[0].microbatch + 1
    return following[0].span.start - RESOLUTION if goes_on else mark.span.end


def _arrival_inside(recorded: Recorded, number: int, here: NDArray[np.intp], work: Activities) -> float:
    """Return when the messages had arrived that the host began to receive inside the annotation, before it computed."""
    span = recorded.marks[number].span
    until = float(work.launched[here[0]]) if len(here) else span.end
    early = recorded.messages.within(span.start, until)
    return float(recorded.messages.end[early].max(initial=-np.inf))


def _host_end(recorded: Recorded, end: float, last: float) -> float:
    """Return the end of an annotation, or the first message after its last work had begun."""
    following = np.searchsorted(recorded.handovers, last, side="right")
    return min(end, float(np.append(recorded.handovers, np.inf)[following]))
