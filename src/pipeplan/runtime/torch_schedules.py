"""PyTorch's schedules as ours."""

from __future__ import annotations

from typing import Any

from pipeplan.errors import InputError
from pipeplan.model import Placement, Schedule, from_ops
from pipeplan.runtime import torch_internals
from pipeplan.runtime.requirements import require_torch

NAMES = {
    "ScheduleGPipe": "gpipe",
    "Schedule1F1B": "1f1b",
    "ScheduleLoopedBFS": "looped-bfs",
    "ScheduleInterleaved1F1B": "interleaved-1f1b",
    "ScheduleInterleavedZeroBubble": "interleaved-zb",
    "ScheduleZBVZeroBubble": "zbv",
    "ScheduleDualPipeV": "dualpipev",
}
"""The names of PyTorch's schedules here."""


def from_torch(
    schedule: Any,
    ranks: int | None = None,
    microbatches: int | None = None,
    chunks: int | None = None,
    *,
    communication: bool = False,
) -> Schedule:
    """Return a schedule of PyTorch's as one of ours.

    Parameters
    ----------
    schedule
        A live schedule object, which has its own shape; a schedule class; or the name of one as ``get_schedule_class``
        takes it, such as ``"ZBVZeroBubble"``.
    ranks, microbatches, chunks
        The shape, for a class or a name. Chunks per rank default to 1 for GPipe and 1F1B, else to 2.
    communication
        Keep the SENDs, RECVs and ops of whole stages of PyTorch's own lowering; without it, compute ops only.

    Raises
    ------
    UnknownNameError
        For a name that PyTorch does not know.
    InputError
        For an object that is not a pipeline schedule, a missing shape, or a shape given for a live object.
    ShapeError
        If PyTorch refuses the shape.
    """
    require_torch()
    shape = (ranks, microbatches, chunks)
    if not isinstance(schedule, str | type):
        if shape != (None, None, None):
            raise InputError(f"a live {type(schedule).__name__} has its own shape; leave out {shape}")
        return _read(schedule, communication)
    cls = torch_internals.schedule_class(schedule) if isinstance(schedule, str) else schedule
    if ranks is None or microbatches is None:
        raise InputError(f"{cls.__name__} needs its shape: from_torch(..., ranks=4, microbatches=8)")
    if chunks is None:
        chunks = 1 if cls.__name__ in ("ScheduleGPipe", "Schedule1F1B") else 2
    return _read(torch_internals.instantiate(cls, ranks, microbatches, chunks), communication)


def _read(live: Any, communication: bool) -> Schedule:
    rows, rank_of, microbatches = torch_internals.rows_of(live, communication=communication)
    placement = Placement.of(tuple(rank_of[stage] for stage in sorted(rank_of)))
    name = NAMES.get(type(live).__name__, type(live).__name__)
    return Schedule.from_rows(placement, microbatches, [from_ops(row) for row in rows], name=name)
