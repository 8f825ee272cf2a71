"""Find the start and end of an annotated op: from its GPU work after the receive, or from its host work inside it.

An annotation has the times at which the host was at an op, but the host may wait there for messages, or run ahead of the
GPU. So the times of an op are those of its work:

* On a GPU: the kernels launched inside the annotation, by any thread, because autograd has its own. NCCL's kernels do not
  count, except an all-to-all. An op starts with the first kernel that starts after the receive has ended; earlier
  ones, such as the copies of an FSDP unshard, are not part of the op.
* Else: the annotation, because not all work of the host is an operator. It starts when the last receive in it has ended and
  FSDP has moved the parameters; if the trace has no time of arrival, with the first operator. It ends with the
  annotation, or where the host starts to send.
* An op that launches nothing on a GPU starts when its inputs are there, and takes the resolution of the profiler's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeplan.extensions.training.traces.activities import COMPUTE, Activities, span_of
from pipeplan.extensions.training.traces.annotations import RESOLUTION, AnnotatedOp
from pipeplan.extensions.training.traces.pieces import OpPieces, pieces_of
from pipeplan.model import BACKWARD_KINDS, Floats, Kind, Op

_MOVES = ("FSDP::all_gather", "FSDP::post_backward_reduce")
"""Prefixes of the annotations in which FSDP moves parameters and gradients."""


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Annotations, kernels and messages that a profiler recorded on one rank.

    Attributes
    ----------
    marks
        Annotated ops in order.
    kernels
        Compute kernels and all-to-alls of a GPU.
    messages
        Receives of the host, or messages and other collectives of a GPU.
    moves
        The :func:`moves_in` the host's annotations.
    operators
        Operators of the host; their stream is the number of the thread.
    handovers
        Times at which the host started to send or receive.
    threads
        Number of each thread.
    annotated_work
        Start and end of an annotation's GPU work by the number of the mark, for traces without kernels.
    """

    marks: Sequence[AnnotatedOp]
    kernels: Activities
    messages: Activities
    moves: Floats
    operators: Activities = field(default_factory=lambda: Activities(()))
    handovers: Floats = field(default_factory=lambda: np.empty(0))
    threads: dict[int | str, int] = field(default_factory=dict)
    annotated_work: dict[int, tuple[float, float]] = field(default_factory=dict)


def moves_data(name: str) -> bool:
    """Return True if an annotation of this name is FSDP's own transfer of parameters or gradients."""
    return name.startswith(_MOVES)


def moves_in(annotations: Iterable[tuple[str, float, float]]) -> Floats:
    """Return the starts and ends of those annotations, a name and two times each, that move data; shape (2, moves)."""
    moves = sorted((start, end) for name, start, end in annotations if moves_data(name))
    return np.array(moves, np.float64).reshape(-1, 2).T


def op_times(recorded: Recorded) -> tuple[Floats, Floats]:
    """Return the start and end of each annotated op in microseconds, shape (marks,) each."""
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


def op_pieces(recorded: Recorded, start: Floats, end: Floats) -> list[OpPieces | None]:
    """Return the pieces of each annotated op between its start and end, None for messages and ops without kernels."""
    work, others = recorded.kernels, recorded.messages

    def pieces(number: int) -> OpPieces:
        own, beside = _own_work(recorded, number, work), _own_work(recorded, number, others)
        beside = beside[others.lane[beside] != COMPUTE]
        times, ends, lanes = (
            np.append(getattr(work, of)[own], getattr(others, of)[beside]) for of in ("start", "end", "lane")
        )
        return pieces_of(float(start[number]), float(end[number]), np.stack((times, ends)), lanes)

    return [pieces(number) if mark.computes and len(work) else None for number, mark in enumerate(recorded.marks)]


def _arrivals(recorded: Recorded) -> dict[int, float]:
    """Return the end of the receive for each op that has one, by the number of the op's mark.

    For an overlapped pair, only the receive for its first op counts: the second op may wait while the first one works.
    """
    ends: dict[tuple[Kind, int, int, int], float] = {}
    arrivals: dict[int, float] = {}
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
                    arrivals[number] = end
    return arrivals


def _received_for(op: Op) -> tuple[Kind, int, int, int]:
    """Return the key that a receive and the op that it is for share with no other op."""
    kind = op.kind
    if kind == Kind.F:
        kind = Kind.RECV_F
    elif kind in BACKWARD_KINDS:
        kind = Kind.RECV_B
    return kind, op.stage, op.microbatch, op.slice


def _message_time(recorded: Recorded, mark: AnnotatedOp) -> tuple[float, float]:
    """Return the time of a message: of its GPU kernels if there are any, else of the annotation."""
    here = recorded.messages.within(mark.span.start, mark.span.end)
    if len(recorded.kernels) and len(here):
        return float(recorded.messages.start[here].min()), float(recorded.messages.end[here].max())
    return mark.span.start, mark.span.end


def _compute_time(recorded: Recorded, number: int, arrival: float, free: float) -> tuple[float, float]:
    """Return the start and end of a compute op."""
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
    """Return the start and end of a compute op on the host: its annotation without waiting and FSDP's moves at the start."""
    span, work = recorded.marks[number].span, recorded.operators
    received = recorded.messages.end[recorded.messages.within(span.start, span.end)]
    # Messages that arrived after the annotation belong to other ops.
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
    """Return the work launched inside an op's annotation, without FSDP's moves and operators of other threads."""
    span = recorded.marks[number].span
    here = work.within(span.start, _until(recorded, number))
    if work is recorded.operators:
        here = here[work.stream[here] == recorded.threads.get(span.thread, -1)]
    return here[span_of(work.launched[here], *recorded.moves) < 0]


def _turns_to_messages(recorded: Recorded, start: float, end: float) -> bool:
    """Return True if the host started to send or receive between two times."""
    first, stop = np.searchsorted(recorded.handovers, (start, end))
    return bool(stop > first)


def _until(recorded: Recorded, number: int) -> float:
    """Return the end of an op's annotation; for PyTorch's GPipe, that of the loss after a forward."""
    mark, following = recorded.marks[number], recorded.marks[number + 1 : number + 2]
    if mark.numbered or not following or mark.ops[0].kind != Kind.F:
        return mark.span.end
    after = following[0].ops[0]
    goes_on = after.kind != Kind.F or after.microbatch == mark.ops[0].microbatch + 1
    return following[0].span.start - RESOLUTION if goes_on else mark.span.end


def _arrival_inside(recorded: Recorded, number: int, here: NDArray[np.intp], work: Activities) -> float:
    """Return the latest end of the messages whose receive started inside the annotation before its first work."""
    span = recorded.marks[number].span
    until = float(work.launched[here[0]]) if len(here) else span.end
    early = recorded.messages.within(span.start, until)
    return float(recorded.messages.end[early].max(initial=-np.inf))


def _host_end(recorded: Recorded, end: float, last: float) -> float:
    """Return the end of an annotation, or the first message after the start of its last work."""
    following = np.searchsorted(recorded.handovers, last, side="right")
    return min(end, float(np.append(recorded.handovers, np.inf)[following]))
