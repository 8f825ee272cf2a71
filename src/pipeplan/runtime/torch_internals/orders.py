"""Convert ops to actions of PyTorch's runtime and back, and read the orders of PyTorch's own schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from types import SimpleNamespace
from typing import Any, NamedTuple

from torch.distributed.pipelining.schedules import (
    PipelineScheduleMulti,
    PipelineScheduleSingle,
    _Action,
    _ComputationType,
    get_schedule_class,
)

from pipeplan.errors import InputError, ShapeError, UnknownNameError
from pipeplan.model import NO_MICROBATCH, WAIT_KINDS, Kind, Op, Schedule
from pipeplan.passes import add_waits

HAS_WAITS = Kind.WAIT_SEND_F.name in _ComputationType.__members__
"""True if the installed runtime requires actions that wait for sends and for reduced gradients."""


class Added(StrEnum):
    """Types of actions that PyTorch's runtime lacks and for which functions are registered; named like its own."""

    R = "R"
    OFFLOAD = "OFFLOAD"
    RELOAD = "RELOAD"


def actions_of(row: Iterable[Op]) -> list[Any]:
    """Return one rank's ops as actions of the runtime; an overlapped pair is one action with two parts."""
    return [_action_of(cell) for cell in _cells(row)]


def _cells(row: Iterable[Op]) -> Iterator[tuple[Op, ...]]:
    """Yield each op alone, and the two of an overlapped pair together."""
    pair: tuple[Op, ...] = ()
    for op in row:
        if op.group < 0:
            yield (op,)
            continue
        pair = (*pair, op)
        if len(pair) == 2:
            yield pair
            pair = ()


def _action_of(cell: tuple[Op, ...]) -> Any:
    actions = [
        _Action(op.stage, _type_of(op.kind), None if op.microbatch == NO_MICROBATCH else op.microbatch) for op in cell
    ]
    return actions[0] if len(cell) == 1 else _Action(-1, _ComputationType.OVERLAP_F_B, None, tuple(actions))


def _type_of(kind: Kind) -> Any:
    return Added(kind.name) if kind.name in Added.__members__ else _ComputationType(kind.name)


class RowEntry(NamedTuple):
    """Entry of a rank's row: the number of a cell, an action of the runtime, or both."""

    cell: int | None
    action: Any


def entries_of(schedule: Schedule, rank: int) -> list[RowEntry]:
    """Return a rank's row as the installed runtime runs it.

    If the runtime requires waits for sends and reductions, missing ones are added; they belong to no cell. If it has no such
    actions, those of the schedule are skipped. The row's end follows the last cell and has no action; only added waits can
    come after it.
    """
    added = [kind for kind in WAIT_KINDS if not schedule.has(kind)]
    entries: list[RowEntry] = []
    cells = 0
    for op_or_pair in _cells(add_waits(schedule)[rank] if HAS_WAITS else schedule[rank]):
        own = op_or_pair[0].kind not in added
        passed_over = op_or_pair[0].kind in WAIT_KINDS and not HAS_WAITS
        entries.append(RowEntry(cells if own else None, None if passed_over else _action_of(op_or_pair)))
        cells += own
    end = 1 + max((number for number, entry in enumerate(entries) if entry.cell is not None), default=-1)
    return [*entries[:end], RowEntry(cells, None), *entries[end:]]


def ops_of(actions: Iterable[Any]) -> list[Op]:
    """Return the ops of one rank's actions, without empty steps."""
    row: list[Op] = []
    for number, action in enumerate(actions):
        if action is None:
            continue
        parts, group = ((action,), -1) if action.sub_actions is None else (action.sub_actions, number)
        for part in parts:
            microbatch = NO_MICROBATCH if part.microbatch_index is None else part.microbatch_index
            row.append(Op(Kind[part.computation_type.value], part.stage_index, microbatch, group=group))
    return row


SCHEDULE_CLASSES = (
    "GPipe",
    "1F1B",
    "LoopedBFS",
    "Interleaved1F1B",
    "InterleavedZeroBubble",
    "ZBVZeroBubble",
    "DualPipeV",
)
"""Schedules of PyTorch 2.13 to 2.15, by their names for ``get_schedule_class``."""

Rows = list[list[Op]]


def schedule_class(name: str) -> type:
    """Return PyTorch's schedule class of a name with or without the prefix ``Schedule``.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    short = name.removeprefix("Schedule")
    names = {class_name.lower(): class_name for class_name in SCHEDULE_CLASSES}
    if short.lower() not in names:
        raise UnknownNameError("PyTorch schedule", name, SCHEDULE_CLASSES)
    cls: type = get_schedule_class(names[short.lower()])
    return cls


def instantiate(cls: type, ranks: int, microbatches: int, chunks: int) -> Any:
    """Return a schedule object of a class, with stand-ins for stages.

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
            # The stages of rank 0 are enough: the constructor computes the order of all ranks.
            stages = [stand_in(chunk * ranks, ranks, ranks * chunks) for chunk in range(chunks)]
            return cls(stages, microbatches, loss_fn=_no_loss)
    except (ValueError, AssertionError, RuntimeError) as error:
        raise ShapeError(f"PyTorch's {cls.__name__} refuses this shape: {_first_line(error)}") from None
    raise InputError(f"{cls.__name__} is not a schedule class of torch.distributed.pipelining")


def rows_of(live: Any, *, communication: bool) -> tuple[Rows, dict[int, int], int]:
    """Return every rank's ops of a schedule object, the rank of every stage, and the number of microbatches.

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
    # Only schedules that run on PyTorch's runtime have an order with communication.
    lowered = getattr(live, "pipeline_order_with_comms", {})
    order = lowered if communication else live.pipeline_order or lowered
    if not order:
        raise InputError(f"this {type(live).__name__} has no order yet")
    rows = [ops_of(order[rank]) for rank in sorted(order)]
    if not communication:
        rows = [[op for op in row if op.kind.is_compute] for row in rows]
    return rows, live.stage_index_to_group_rank, live._n_microbatches


def _witnessed(live: Any, rank: int) -> list[Op]:
    """Run a single-stage schedule on one rank, and return the ops that a stand-in for its stage records."""
    row: list[Op] = []
    stage = stand_in(rank, live._num_stages, live._num_stages, row)
    schedule = type(live)(stage, live._n_microbatches, loss_fn=_no_loss)
    # Its own initialization exchanges shapes with other processes; here there are none.
    schedule._initialize_stage = lambda *_: None
    schedule._step_microbatches(target_mbs=[None] * live._n_microbatches)
    return row


def stand_in(index: int, ranks: int, stages: int, row: list[Op] | None = None) -> Any:
    """Return a stand-in for a stage, without a model or a process group; each computation adds an op to ``row``."""
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
