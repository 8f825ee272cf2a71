"""Activities of a host and its GPU, and which kernels of a GPU communicate inside ops.

NCCL names kernels by collective, but an all-to-all and a message between stages are both ``SendRecv``. Such a kernel is a
message if PyTorch says so (``Collective name``), or if its stream also runs some outside ops, as the pipeline's own does. It
is also one if the host launched it before or after all computation of its op. Any other is an all-to-all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
    of_work = [of_names[item[4:]] for item in work]
    messages = [message for _, message in of_work]
    lanes = _lanes(work, np.array([lane for lane, _ in of_work], np.intp), np.array(messages, np.bool_), marks)
    computing = {item.stream for item, message in zip(work, messages, strict=True) if item.name and not message}
    activities: tuple[list[Activity], list[Activity]] = [], []
    for item, lane, message in zip(work, lanes.tolist(), messages, strict=True):
        beside = message and lane != ALL_TO_ALL
        if beside or item.stream in computing or lane == ALL_TO_ALL:
            activities[beside].append(Activity(item.stream, item.launched, item.start, item.end, lane))
    return Activities(activities[0]), Activities(activities[1])


def _lanes(
    work: Sequence[GpuWork], lanes: NDArray[np.intp], messages: NDArray[np.bool_], marks: Sequence[AnnotatedOp]
) -> NDArray[np.intp]:
    """Return the lanes with those of unnamed kernels; ``messages`` is True for kernels that transfer messages."""
    unnamed = lanes == _UNNAMED
    launched = np.array([item.launched for item in work])
    spans = np.array([mark.span[1:3] for mark in marks if mark.computes], np.float64).reshape(-1, 2)
    op = span_of(launched, *spans.T)
    # What no op launches counts as launched by one more op, behind the others.
    first, last = np.full(len(spans) + 1, np.inf), np.full(len(spans) + 1, -np.inf)
    computes = (lanes == COMPUTE) & ~messages
    np.minimum.at(first, op[computes], launched[computes])
    np.maximum.at(last, op[computes], launched[computes])
    stream = np.array([item.stream for item in work])
    of_pipeline = np.isin(stream, stream[unnamed & (op < 0)])
    exchanges = (first[op] < launched) & (launched < last[op]) & ~of_pipeline
    return np.where(unnamed, np.where(exchanges, ALL_TO_ALL, COMPUTE), lanes)


def span_of(times: Floats, starts: Floats, ends: Floats) -> NDArray[np.intp]:
    """Return the number of the span that each time is in, -1 in none. Spans are sorted and do not overlap."""
    which = np.searchsorted(starts, times, side="right") - 1
    return np.where(times <= np.append(ends, -np.inf)[which], which, -1)
