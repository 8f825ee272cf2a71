"""Activities of a host and its GPU, and which kernels of a GPU communicate inside ops.

NCCL names kernels by collective, except that an all-to-all and a message between stages are both ``SendRecv``. Such a kernel
is a message if PyTorch says so (``Collective name``), if its stream also runs some outside ops, as that of the pipeline's
process group does, or if the host launched it before or after all computation of its op.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class GpuWork:
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
    computing = {item.stream for item in work if item.name is not None and not is_message(item.name)}
    lanes = _lanes(work, marks)
    kernels: list[Activity] = []
    messages: list[Activity] = []
    for item, lane in zip(work, lanes, strict=True):
        activity = Activity(item.stream, item.launched, item.start, item.end, lane)
        if item.name is not None and is_message(item.name) and lane != ALL_TO_ALL:
            messages.append(activity)
        elif item.stream in computing or lane == ALL_TO_ALL:
            kernels.append(activity)
    return Activities(kernels), Activities(messages)


def _lanes(work: Sequence[GpuWork], marks: Sequence[AnnotatedOp]) -> list[int]:
    """Return the lane of each kernel or copy."""
    lanes = np.array([COMPUTE if item.name is None else lane_of(item.name, item.collective) for item in work], int)
    unnamed = np.flatnonzero(lanes == _UNNAMED)
    if not unnamed.size:
        return lanes.tolist()
    launched = np.array([item.launched for item in work])
    starts, ends = (np.array([getattr(mark.span, side) for mark in marks]) for side in ("start", "end"))
    op = np.searchsorted(starts, launched, side="right") - 1
    op[(op >= 0) & ((launched > ends[op]) | ~np.array([mark.computes for mark in marks])[op])] = -1
    computes = np.array([item.name is None or not is_message(item.name) for item in work]) & (op >= 0)
    first, last = np.full(len(marks) + 1, np.inf), np.full(len(marks) + 1, -np.inf)
    np.minimum.at(first, op[computes], launched[computes])
    np.maximum.at(last, op[computes], launched[computes])
    pipeline = {work[number].stream for number in unnamed[op[unnamed] < 0].tolist()}
    between = (first[op] < launched) & (launched < last[op])
    for number in unnamed.tolist():
        inside = between[number] and work[number].stream not in pipeline
        lanes[number] = ALL_TO_ALL if inside else COMPUTE
    return lanes.tolist()
