"""What PyTorch's own schedules run."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from torch.distributed.pipelining.schedules import PipelineScheduleMulti, PipelineScheduleSingle, get_schedule_class

from pipeplan.errors import InputError, ShapeError, UnknownNameError
from pipeplan.model import Kind, Op
from pipeplan.runtime.torch_internals.actions import ops_of

SCHEDULE_CLASSES = (
    "GPipe",
    "1F1B",
    "LoopedBFS",
    "Interleaved1F1B",
    "InterleavedZeroBubble",
    "ZBVZeroBubble",
    "DualPipeV",
)
"""The schedules of PyTorch 2.13 to 2.15, by the names that ``get_schedule_class`` takes."""

Rows = list[list[Op]]


def schedule_class(name: str) -> type:
    """PyTorch's schedule class of this name, with or without ``Schedule`` in front.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    short = name.removeprefix("Schedule")
    known = {known.lower(): known for known in SCHEDULE_CLASSES}
    if short.lower() not in known:
        raise UnknownNameError("PyTorch schedule", name, SCHEDULE_CLASSES)
    cls: type = get_schedule_class(known[short.lower()])
    return cls


def instantiate(cls: type, ranks: int, microbatches: int, chunks: int) -> Any:
    """A live schedule of a class, over stand-ins for stages.

    Raises
    ------
    ShapeError
        If PyTorch refuses the shape.
    InputError
        If the class is not a pipeline schedule.
    """
    try:
        if issubclass(cls, PipelineScheduleSingle):
            if chunks != 1:
                raise ShapeError(f"{cls.__name__} has 1 chunk per rank, not {chunks}")
            return cls(stand_in(0, ranks, ranks), microbatches, loss_fn=_no_loss)
        if issubclass(cls, PipelineScheduleMulti):
            stages = [stand_in(chunk * ranks, ranks, ranks * chunks) for chunk in range(chunks)]
            return cls(stages, microbatches, loss_fn=_no_loss)
    except (ValueError, AssertionError, RuntimeError) as error:
        raise ShapeError(f"PyTorch's {cls.__name__} refuses this shape: {_first_line(error)}") from None
    raise InputError(f"{cls.__name__} is not a schedule class of torch.distributed.pipelining")


def rows_of(live: Any, *, communication: bool) -> tuple[Rows, dict[int, int], int]:
    """Every rank's ops of a live schedule, the rank of every stage, and the number of microbatches.

    Raises
    ------
    InputError
        If the object is not a pipeline schedule or has no order.
    """
    if isinstance(live, PipelineScheduleSingle):
        if communication:
            raise InputError(f"{type(live).__name__} has no order with communication; insert_communication adds it")
        ranks = range(live._num_stages)
        return [_witnessed(live, rank) for rank in ranks], {rank: rank for rank in ranks}, live._n_microbatches
    if not isinstance(live, PipelineScheduleMulti):
        raise InputError(f"a {type(live).__name__} is not a schedule of torch.distributed.pipelining")
    lowered = getattr(live, "pipeline_order_with_comms", {})
    order = lowered if communication else live.pipeline_order or lowered
    if not order:
        raise InputError(f"this {type(live).__name__} has no order yet")
    rows = [ops_of(order[rank]) for rank in sorted(order)]
    if not communication:
        rows = [[op for op in row if op.kind.is_compute] for row in rows]
    return rows, live.stage_index_to_group_rank, live._n_microbatches


def _witnessed(live: Any, rank: int) -> list[Op]:
    """What a single-stage schedule does on one rank, recorded by a stand-in for its stage."""
    row: list[Op] = []
    stage = stand_in(rank, live._num_stages, live._num_stages, row)
    schedule = type(live)(stage, live._n_microbatches, loss_fn=_no_loss)
    schedule._initialize_stage = lambda *_: None
    schedule._step_microbatches(target_mbs=[None] * live._n_microbatches)
    return row


def stand_in(index: int, ranks: int, stages: int, row: list[Op] | None = None) -> Any:
    """Return what a schedule asks of a stage, without a model or a process group; each computation adds an op to ``row``."""
    written: list[Op] = [] if row is None else row

    def compute(kind: Kind) -> Callable[..., None]:
        return lambda microbatch, *_, **__: written.append(Op(kind, index, microbatch))

    none: dict[str, Any] = {
        name: lambda *_: [] for name in ("get_fwd_recv_ops", "get_fwd_send_ops", "get_bwd_recv_ops", "get_bwd_send_ops")
    }
    return SimpleNamespace(
        stage_index=index,
        num_stages=stages,
        group_size=ranks,
        group_rank=index % ranks,
        is_first=index == 0,
        is_last=index == stages - 1,
        submod=None,
        forward_one_chunk=compute(Kind.F),
        backward_one_chunk=compute(Kind.B),
        perform_reduce_grad=lambda _: None,
        release_fwd_send_outputs=lambda _: None,
        **none,
    )


def _no_loss(*_: Any) -> None:
    return None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
