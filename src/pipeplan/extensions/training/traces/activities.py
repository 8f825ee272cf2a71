"""Activities of a host and its GPU, and which kernels of a GPU communicate inside ops.

NCCL names kernels by collective, but an all-to-all and a message between stages are both ``SendRecv``. Such a kernel is a
message if PyTorch says so (``Collective name``), or if its stream also runs some outside ops, as the pipeline's own does. It
is also one if the host launched it before or after all computation of its op. Any other is an all-to-all.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeplan.extensions.training.traces.annotations import RESOLUTION, AnnotatedOp

COMPUTE = 0
"""Lane of computation and of messages between stages; the others are positions in ``LANES``."""

LANES = ("compute", "all_to_all", "all_gather", "reduce_scatter", "all_reduce")
"""Names of segments of ops."""

ALL_TO_ALL = LANES.index("all_to_all")

_UNNAMED = -1
"""Lane of a ``SendRecv`` that may be a message or an all-to-all."""

_DEEP_EP = re.compile(
    r"(?:(?:intranode|internode|internode_ll|hybrid_ep)::|^)(?:cached_)?(?:notify|dispatch|combine)\w*(?:[<(]|$)"
)
"""Names of the kernels of DeepEP that exchange tokens between experts, or prepare that."""


class Activity(NamedTuple):
    """Work or a message: stream, time at which the host launched it, start and end in microseconds, and lane."""

    stream: int
    launched: float
    start: float
    end: float
    lane: int = COMPUTE


class Activities:
    """Activities in the order in which the host launched them."""

    def __init__(self, activities: Iterable[Activity]) -> None:
        table = np.array(sorted(activities, key=lambda activity: activity.launched), np.float64).reshape(-1, 5)
        self.stream, self.launched, self.start, self.end, self.lane = table.T

    def __len__(self) -> int:
        return len(self.start)

    def within(self, start: float, end: float) -> NDArray[np.intp]:
        """Return the indices of the activities that the host launched between two times."""
        return np.arange(*np.searchsorted(self.launched, (start, end + RESOLUTION / 2)))


class GpuWork(NamedTuple):
    """A kernel or copy on a GPU, in microseconds.

    ``name`` is None for a copy; ``collective`` is PyTorch's name of what an NCCL kernel does, if known.
    """

    stream: int
    launched: float
    start: float
    end: float
    name: str | None
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
    messages_named = {name for name in {item.name for item in work} if name is not None and is_message(name)}
    computing = {item.stream for item in work if item.name is not None and item.name not in messages_named}
    kernels: list[Activity] = []
    messages: list[Activity] = []
    for item, lane in zip(work, _lanes(work, messages_named, marks), strict=True):
        activity = Activity(item.stream, item.launched, item.start, item.end, lane)
        if item.name in messages_named and lane != ALL_TO_ALL:
            messages.append(activity)
        elif item.stream in computing or lane == ALL_TO_ALL:
            kernels.append(activity)
    return Activities(kernels), Activities(messages)


def _lanes(work: Sequence[GpuWork], messages: Container[str | None], marks: Sequence[AnnotatedOp]) -> list[int]:
    """Return the lane of each kernel or copy; ``messages`` are the names of kernels that transfer messages."""
    names = {(item.name, item.collective) for item in work}
    of_names = {
        (name, collective): COMPUTE if name is None else lane_of(name, collective) for name, collective in names
    }
    lanes = [of_names[item.name, item.collective] for item in work]
    unnamed = [number for number, lane in enumerate(lanes) if lane == _UNNAMED]
    if not unnamed:
        return lanes
    op = _ops_launching(work, marks)
    launched = np.array([item.launched for item in work])
    computes = [number for number, item in enumerate(work) if lanes[number] == COMPUTE and item.name not in messages]
    # What no op launches counts as launched by one more op, behind the others.
    first, last = np.full(len(marks) + 1, np.inf), np.full(len(marks) + 1, -np.inf)
    np.minimum.at(first, op[computes], launched[computes])
    np.maximum.at(last, op[computes], launched[computes])
    outside = op == len(marks)
    pipeline = {work[number].stream for number in unnamed if outside[number]}
    between = ~outside & (first[op] < launched) & (launched < last[op])
    for number in unnamed:
        lanes[number] = ALL_TO_ALL if between[number] and work[number].stream not in pipeline else COMPUTE
    return lanes


def _ops_launching(work: Sequence[GpuWork], marks: Sequence[AnnotatedOp]) -> NDArray[np.intp]:
    """Return the number of the compute op in which the host launched each kernel or copy; that behind the last for none."""
    ops = [number for number, mark in enumerate(marks) if mark.computes]
    spans = np.array([marks[number].span[1:3] for number in ops], np.float64).reshape(-1, 2)
    launched = np.array([item.launched for item in work])
    which = np.searchsorted(spans[:, 0], launched, side="right") - 1
    inside = (which >= 0) & (launched <= np.append(spans[:, 1], -np.inf)[which])
    return np.where(inside, np.append(ops, len(marks))[which], len(marks)).astype(np.intp)
