"""Schedules of PyTorch as those of pipeplan, and stand-ins for PyTorch's stages."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from torch.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class

from pipeplan.model import NO_MICROBATCH, Kind, Op, Placement, Schedule, from_ops

NAMES = {
    "GPipe": "gpipe",
    "1F1B": "1f1b",
    "LoopedBFS": "looped-bfs",
    "Interleaved1F1B": "interleaved-1f1b",
    "InterleavedZeroBubble": "interleaved-zb",
    "ZBVZeroBubble": "zbv",
    "DualPipeV": "dualpipev",
}
"""Schedules of PyTorch 2.13 to 2.15, by their names for ``get_schedule_class``, and their names in pipeplan."""


def from_torch(schedule: Any, *shape: int, chunks: int | None = None, communication: bool = False) -> Schedule:
    """Return a schedule object of PyTorch, or the schedule of a name and a shape of ranks, microbatches and chunks.

    With ``communication``, it has the ops of PyTorch's own lowering as well.
    """
    if isinstance(schedule, str):
        ranks, microbatches, *rest = shape
        own = chunks or (rest[0] if rest else 1 if schedule in ("GPipe", "1F1B") else 2)
        stages = [stand_in(chunk * ranks, ranks, ranks * own) for chunk in range(own)]
        cls = get_schedule_class(schedule)
        single = issubclass(cls, PipelineScheduleSingle)
        schedule = cls(stages[0] if single else stages, microbatches, loss_fn=_no_loss)
    if isinstance(schedule, PipelineScheduleSingle):
        rank_of = {rank: rank for rank in range(schedule._num_stages)}
        rows = [_witnessed(schedule, rank) for rank in rank_of]
    else:
        # Only schedules that run on PyTorch's runtime have an order with communication.
        lowered = getattr(schedule, "pipeline_order_with_comms", {})
        order = lowered if communication else schedule.pipeline_order or lowered
        rank_of = schedule.stage_index_to_group_rank
        rows = [[op for op in ops_of(order[rank]) if communication or op.kind.is_compute] for rank in sorted(order)]
    placement = Placement.of(tuple(rank_of[stage] for stage in sorted(rank_of)))
    name = NAMES.get(type(schedule).__name__.removeprefix("Schedule"), type(schedule).__name__)
    return Schedule.from_rows(placement, schedule._n_microbatches, [from_ops(row) for row in rows], name=name)


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
