"""Activities of a host and its GPU, and which kernels of a GPU communicate inside ops.

NCCL names kernels by collective, but an all-to-all and a message between stages are both ``SendRecv``. Such a kernel is a
message if PyTorch says so (``Collective name``), or if its stream also runs some outside ops, as the pipeline's own does. It
is also one if the host launched it before or after all computation of its op. Any other is an all-to-all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import LANES
from pipeplan.extensions.training.traces.annotations import RESOLUTION, AnnotatedOp
from pipeplan.model import Floats

COMPUTE = 0
"""Lane of computation and of messages between stages; the others are positions in ``LANES``."""

ALL_TO_ALL = LANES.index("all_to_all")

_UNNAMED = -1
"""Lane of a ``SendRecv`` that may be a message or an all-to-all."""

_DEEP_EP = re.compile(
    r"(?:(?:intranode|internode|internode_ll|hybrid_ep)::|^)(?:cached_)?(?:notify|dispatch|combine)\w*(?:[<(]|$)"
)
"""Names of the kernels of DeepEP that exchange tokens between experts, or prepare that."""


class Activities:
    """Activities in the order in which the host launched them.

    A row is a stream, and the times in microseconds at which the host launched the activity, it started and it ended.
    """

    def __init__(self, rows: Sequence[tuple[float, ...]] | Floats, lanes: NDArray[np.intp] | int = COMPUTE) -> None:
        table = np.array(rows, np.float64).reshape(-1, 4)
        order = np.argsort(table[:, 1], kind="stable")
        self.stream, self.launched, self.start, self.end = table[order].T
        self.lane = np.broadcast_to(lanes, len(table))[order]

    def __len__(self) -> int:
        return len(self.start)

    def within(self, start: float, end: float) -> NDArray[np.intp]:
        """Return the indices of the activities that the host launched between two times."""
        return np.arange(*np.searchsorted(self.launched, (start, end + RESOLUTION / 2)))


class GpuWork(NamedTuple):
    """A kernel or copy on a GPU, in microseconds.

    ``name`` is empty for a copy; ``collective`` is PyTorch's name of what an NCCL kernel does, if known.
    """

    stream: int
    launched: float
    start: float
    end: float
    name: str
    collective: str = ""


def is_message(kernel: str) -> bool:
    """Return True if a kernel of this name transfers messages: NCCL, or its counterparts for other GPUs."""
    return kernel.lower().startswith(("nccl", "rccl", "mscclkernel"))


def lane_of(kernel: str, collective: str = "") -> int:
    """Return the lane of a kernel; that of a ``SendRecv`` without the name of its collective is negative."""
    if not is_message(kernel):
        return ALL_TO_ALL if _DEEP_EP.search(kernel) else COMPUTE
    if collective in ("send", "recv"):
        return COMPUTE
    letters = re.sub("[^a-z]", "", f"{collective} {kernel}".lower())
    named = (lane for lane, name in enumerate(LANES) if name.replace("_", "") in letters)
    return next(named, _UNNAMED if "sendrecv" in letters else COMPUTE)


def gpu_activities(work: Sequence[GpuWork], marks: Sequence[AnnotatedOp]) -> tuple[Activities, Activities]:
    """Return the work of a GPU, and its messages and other collectives.

    Its work is computation and all-to-alls. Copies count only on streams that also compute: a stream with copies alone
    moves data.
    """
    of_names = {names: (lane_of(*names), is_message(names[0])) for names in {item[4:] for item in work}}
    kinds = np.array([of_names[item[4:]] for item in work], np.intp).reshape(-1, 2)
    lanes, messages = kinds[:, 0], kinds[:, 1] > 0
    rows = np.array([item[:4] for item in work], np.float64).reshape(-1, 4)
    stream, launched = rows[:, 0], rows[:, 1]
    computing = stream[np.array([item.name != "" for item in work], np.bool_) & ~messages]
    unnamed = lanes == _UNNAMED
    spans = np.array([mark.span[1:3] for mark in marks if mark.computes], np.float64).reshape(-1, 2)
    op = span_of(launched, *spans.T)
    # What no op launches counts as launched by one more op, behind the others.
    first, last = np.full(len(spans) + 1, np.inf), np.full(len(spans) + 1, -np.inf)
    computes = (lanes == COMPUTE) & ~messages
    np.minimum.at(first, op[computes], launched[computes])
    np.maximum.at(last, op[computes], launched[computes])
    of_pipeline = np.isin(stream, stream[unnamed & (op < 0)])
    exchanges = (first[op] < launched) & (launched < last[op]) & ~of_pipeline
    lanes = np.where(unnamed, np.where(exchanges, ALL_TO_ALL, COMPUTE), lanes)
    beside = messages & (lanes != ALL_TO_ALL)
    own = ~beside & (np.isin(stream, computing) | (lanes == ALL_TO_ALL))
    return Activities(rows[own], lanes[own]), Activities(rows[beside], lanes[beside])


def span_of(times: Floats, starts: Floats, ends: Floats) -> NDArray[np.intp]:
    """Return the number of the span that each time is in, -1 in none. Spans are sorted and do not overlap."""
    which = np.searchsorted(starts, times, side="right") - 1
    return np.where(times <= np.append(ends, -np.inf)[which], which, -1)
