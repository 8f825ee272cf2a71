"""Nodes of the zero-bubble authors' runtime as text: one line per rank of ``KIND.chunk.microbatch@time``.

That runtime executes each rank's nodes in order: ops, transfers, and post-validation. It takes the optimizer step
before it knows whether the step is valid (the gradient norm over all ranks is finite and needs no clipping). It
validates the step during the warm-up of the next one, rank by rank from the last to the first. Activations that were
sent before the sender had validated may have to be computed again: their receives carry a rollback mark, ``*``.

Qi, Wan, Huang, Lin: Zero Bubble Pipeline Parallelism, ICLR 2024, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count, pairwise, takewhile

import numpy as np

from pipeplan.formats.format import Format, TimelineContent
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Kind, Schedule, Timeline, crosses_ranks, dependencies


class NodeKind(StrEnum):
    """Kinds of nodes, by the runtime's names."""

    F = "F"
    I = "I"  # noqa: E741 - the field's own letter
    W = "W"
    SEND_FORWARD = "SEND_FORWARD"
    RECV_FORWARD = "RECV_FORWARD"
    SEND_BACKWARD = "SEND_BACKWARD"
    RECV_BACKWARD = "RECV_BACKWARD"
    SEND_POST_VALIDATION = "SEND_POST_VALIDATION"
    RECV_POST_VALIDATION = "RECV_POST_VALIDATION"
    POST_VALIDATION = "POST_VALIDATION"


TRANSFERS = {
    NodeKind.F: (NodeKind.SEND_FORWARD, NodeKind.RECV_FORWARD),
    NodeKind.I: (NodeKind.SEND_BACKWARD, NodeKind.RECV_BACKWARD),
}
"""Both ends of the transfer of a kind's result."""

RECEIVES = frozenset(receive for _, receive in TRANSFERS.values())


@dataclass(frozen=True, slots=True)
class RuntimeNode:
    """One op, transfer or validation of a rank.

    Attributes
    ----------
    kind, chunk, microbatch
        Work of the node; validation nodes have chunk 0 and microbatch 0.
    time, end
        Start and end in the timeline's unit; only ops take time.
    pair
        Number shared by both ends of a transfer; each validation node has its own, ops have none.
    rollback
        True if this receive has data that were computed before the sender validated its optimizer step.
    """

    kind: NodeKind
    chunk: int
    microbatch: int
    time: float
    end: float
    pair: int | None = None
    rollback: bool = False


Rows = list[list[RuntimeNode]]


def zero_bubble_nodes(timeline: Timeline, transfer: float) -> tuple[tuple[RuntimeNode, ...], ...]:
    """Return every rank's nodes in the order in which the runtime executes them."""
    schedule = timeline.schedule
    _require_split_v(schedule)
    validations = _validations(_validation_times(timeline, transfer))
    nodes = _op_nodes(timeline)
    rows = [validations[rank] + nodes[a:b] for rank, (a, b) in enumerate(pairwise(schedule.offsets.tolist()))]
    _add_transfers(rows, schedule, nodes, first_pair=sum(len(row) for row in validations))
    return _with_rollback([_receives_ahead(sorted(row, key=_turn)) for row in rows])


def _require_split_v(schedule: Schedule) -> None:
    kinds = schedule.kinds
    if schedule.placement.name != "v" or schedule.slices > 1 or not kinds <= {Kind.F, Kind.I, Kind.W}:
        raise ShapeError(
            "the zero-bubble runtime needs a V schedule of F, I and W on whole sequences, not placement "
            f"{schedule.placement.name} with {', '.join(kind.name for kind in sorted(kinds))} and "
            f"{schedule.slices} slice(s) per sequence"
        )


def _validation_times(timeline: Timeline, transfer: float) -> list[float]:
    """Return when each rank validates.

    That is one transfer before its warm-up's last forward of chunk 0, but not before the next rank has validated.
    """
    schedule = timeline.schedule
    forwards = schedule.where(Kind.F)
    start = np.zeros(schedule.keys)
    start[schedule.key[forwards]] = timeline.start[forwards]
    ranks = np.arange(schedule.ranks)
    microbatch = np.minimum(2 * (schedule.ranks - 1 - ranks), schedule.microbatches - 1)
    own = np.maximum(start[ranks * schedule.microbatches + microbatch] - transfer, 0.0)
    times: list[float] = np.maximum.accumulate(own[::-1])[::-1].tolist()
    return times


def _validations(times: list[float]) -> Rows:
    """Return each rank's validation nodes, numbered from the last rank to the first: receive, send, validate."""
    last = len(times) - 1
    rows: Rows = [[] for _ in times]
    pairs = count()
    for rank in range(last, -1, -1):
        kinds = [NodeKind.RECV_POST_VALIDATION] * (rank < last) + [NodeKind.SEND_POST_VALIDATION] * (rank > 0)
        for kind in (*kinds, NodeKind.POST_VALIDATION):
            rows[rank].append(RuntimeNode(kind, 0, 0, times[rank], times[rank], next(pairs)))
    return rows


def _op_nodes(timeline: Timeline) -> list[RuntimeNode]:
    chunk_of = timeline.schedule.placement.chunk_of[0]
    times = zip(timeline.start.tolist(), timeline.end.tolist(), strict=True)
    return [
        RuntimeNode(NodeKind[op.kind.name], chunk_of[op.stage], op.microbatch, start, end)
        for op, (start, end) in zip(timeline.schedule.columns, times, strict=True)
    ]


def _add_transfers(rows: Rows, schedule: Schedule, nodes: list[RuntimeNode], first_pair: int) -> None:
    """Add a send and a receive at the end of every op whose result another rank needs, numbered in the order of senders."""
    source = dependencies(schedule).arrival
    consumers = np.flatnonzero(crosses_ranks(schedule, source))
    consumers = consumers[np.argsort(source[consumers])]
    for pair, consumer in enumerate(consumers.tolist(), first_pair):
        producer = int(source[consumer])
        sent, needed = nodes[producer], nodes[consumer]
        send, receive = TRANSFERS[sent.kind]
        time = sent.end
        rows[schedule.rank[producer]].append(RuntimeNode(send, sent.chunk, sent.microbatch, time, time, pair))
        rows[schedule.rank[consumer]].append(RuntimeNode(receive, needed.chunk, needed.microbatch, time, time, pair))


def _turn(node: RuntimeNode) -> tuple[float, float]:
    """Return the sort key of a node: time, then pair number; ops come last."""
    return node.time, math.inf if node.pair is None else node.pair


def _receives_ahead(row: list[RuntimeNode]) -> list[RuntimeNode]:
    """Move receives that are due during the previous op before that op, so that the two overlap."""
    for place in range(1, len(row)):
        before, node = row[place - 1], row[place]
        if before.pair is None and node.kind in RECEIVES and node.time <= before.end:
            row[place - 1], row[place] = node, before
    return row


def _with_rollback(rows: Rows) -> tuple[tuple[RuntimeNode, ...], ...]:
    """Return the rows with those receives marked whose send precedes the validation of the sender."""
    unvalidated = [_sent_before_validation(row) for row in rows]
    marked = [tuple(rows[0])]
    for sent, row in zip(unvalidated, rows[1:], strict=False):
        marked.append(tuple(replace(node, rollback=node.kind in RECEIVES and node.pair in sent) for node in row))
    return tuple(marked)


def _sent_before_validation(row: list[RuntimeNode]) -> set[int | None]:
    before = takewhile(lambda node: node.kind != NodeKind.POST_VALIDATION, row)
    return {node.pair for node in before if node.kind == NodeKind.SEND_FORWARD and node.chunk == 0}


def format_zb_nodes(rows: Iterable[Sequence[RuntimeNode]]) -> str:
    """Return one line per rank, each with a newline. Whole times are written as integers."""
    return "".join(" ".join(map(_word, row)) + "\n" for row in rows)


def _word(node: RuntimeNode) -> str:
    time = int(node.time) if float(node.time).is_integer() else node.time
    return f"{node.kind}.{node.chunk}.{node.microbatch}@{time}" + "*" * node.rollback


def _write(outcome: TimelineContent) -> str:
    transfer = 0.0 if outcome.costs is None else outcome.costs.transfer.time()
    return format_zb_nodes(zero_bubble_nodes(outcome.timeline, transfer))


FORMATS = (
    Format(
        name="zb-nodes",
        title="Zero-bubble runtime nodes",
        help="Ops, transfers and post-validation of a V schedule, as the zero-bubble authors' runtime executes them.",
        ending=".zb.txt",
        media="text/plain; charset=utf-8",
        write_timeline=_write,
    ),
)
