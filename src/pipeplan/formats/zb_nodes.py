"""What the zero-bubble authors' runtime executes, as text: a line a rank of ``KIND.chunk.microbatch@time``.

That runtime runs each rank's nodes in order: ops, transfers, and post-validation. It takes the optimizer step before it
knows whether the step is sound (the gradient norm over all ranks is finite and needs no clipping) and validates it
afterwards, rank by rank from the last to the first, during the warm-up of the next step. Activations that were sent before
the sender had validated may have to be computed again: their receives carry a rollback mark, ``*``.

Qi, Wan, Huang, Lin: Zero Bubble Pipeline Parallelism, ICLR 2024, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count, pairwise, takewhile

import numpy as np

from pipeplan.errors import ShapeError
from pipeplan.formats.format import Format, Outcome
from pipeplan.model import Kind, Schedule, Timeline, crosses_ranks, dependencies


class NodeKind(StrEnum):
    """Kinds of nodes by the runtime's names for them."""

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
"""The two ends of the transfer of a kind's result."""

RECEIVES = frozenset(receive for _, receive in TRANSFERS.values())


@dataclass(frozen=True, slots=True)
class RuntimeNode:
    """A node of the runtime: one op, transfer or validation of a rank.

    Attributes
    ----------
    kind, chunk, microbatch
        What, and on what; validation nodes carry chunk 0 and microbatch 0.
    time, end
        When it starts and ends, in the timeline's unit; only ops take time.
    pair
        The number that both ends of a transfer carry; each validation node has one of its own, an op none.
    rollback
        Whether this receive carries data computed before the sender's optimizer step was validated.
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
    """Every rank's nodes in the order in which the runtime executes them.

    Parameters
    ----------
    timeline
        Of a V schedule whose backwards are all split: F, I and W only.
    transfer
        How long a message between ranks takes, in the timeline's unit.

    Raises
    ------
    ShapeError
        For another placement, other kinds of op, or sliced sequences.
    """
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
            "the zero-bubble runtime takes V schedules of F, I and W on whole sequences; this one is "
            f"{schedule.placement.name}, of {', '.join(kind.name for kind in sorted(kinds))}, "
            f"with {schedule.slices} slice(s) a sequence"
        )


def _validation_times(timeline: Timeline, transfer: float) -> list[float]:
    """Return when each rank validates: a transfer before its warm-up's last forward of chunk 0, not before the next rank."""
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
    """Return the sort key: time, then pair number, ops last."""
    return node.time, math.inf if node.pair is None else node.pair


def _receives_ahead(row: list[RuntimeNode]) -> list[RuntimeNode]:
    """Move receives that are due while the op before them still runs before that op, so that the two overlap."""
    for place in range(1, len(row)):
        before, node = row[place - 1], row[place]
        if before.pair is None and node.kind in RECEIVES and node.time <= before.end:
            row[place - 1], row[place] = node, before
    return row


def _with_rollback(rows: Rows) -> tuple[tuple[RuntimeNode, ...], ...]:
    """Return the rows with those receives marked whose send stands before the validation of the sender."""
    unvalidated = [_sent_before_validation(row) for row in rows]
    marked = [tuple(rows[0])]
    for sent, row in zip(unvalidated, rows[1:], strict=False):
        marked.append(tuple(replace(node, rollback=node.kind in RECEIVES and node.pair in sent) for node in row))
    return tuple(marked)


def _sent_before_validation(row: list[RuntimeNode]) -> set[int | None]:
    before = takewhile(lambda node: node.kind != NodeKind.POST_VALIDATION, row)
    return {node.pair for node in before if node.kind == NodeKind.SEND_FORWARD and node.chunk == 0}


def format_zb_nodes(rows: Iterable[Sequence[RuntimeNode]]) -> str:
    """One line a rank, each ended by a newline. Whole times are written as integers."""
    return "".join(" ".join(map(_word, row)) + "\n" for row in rows)


def _word(node: RuntimeNode) -> str:
    time = int(node.time) if float(node.time).is_integer() else node.time
    return f"{node.kind}.{node.chunk}.{node.microbatch}@{time}" + "*" * node.rollback


def _write(outcome: Outcome) -> str:
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
