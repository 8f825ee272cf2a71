"""Our UNSHARD, RESHARD and REDUCE_GRAD against PyTorch's own pass, over the installed version."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.distributed.pipelining.schedules import _add_reduce_grad, _add_unshard_reshard

from pipeplan.formats import has_waits, torch_release
from pipeplan.model import Kind, Schedule, from_ops
from pipeplan.passes import add_reduce_grad, add_unshard_reshard, add_waits, lower_for_torch
from pipeplan.runtime import torch_internals
from pipeplan.strategies import strategy
from tests.runtime.lowered import in_order


def theirs(schedule: Schedule) -> Schedule:
    rows = [
        _add_reduce_grad(_add_unshard_reshard(torch_internals.actions_of(row)), schedule.microbatches)
        for row in schedule
    ]
    return Schedule.from_rows(
        schedule.placement, schedule.microbatches, [from_ops(in_order(torch_internals.ops_of(row))) for row in rows]
    )


@pytest.mark.parametrize(
    ("name", "ranks", "microbatches", "chunks"),
    [
        ("1f1b", 3, 5, 1),
        ("zbv", 2, 4, 2),
        ("dualpipev", 2, 5, 2),
        ("interleaved-1f1b", 2, 4, 3),
        ("interleaved-1f1b", 2, 8, 5),
        ("looped-bfs", 2, 3, 6),
        ("interleaved-1f1b-overlap", 2, 8, 5),
    ],
)
def test_same_as_pytorch(name: str, ranks: int, microbatches: int, chunks: int) -> None:
    ours = strategy(name)
    schedule = ours(ours.shape(ranks, microbatches, chunks))
    lowered = add_reduce_grad(add_unshard_reshard(schedule))
    assert (add_waits(lowered) if has_waits(torch_release()) else lowered) == theirs(schedule)


def test_what_is_there_is_kept() -> None:
    ours = strategy("zbv")
    once = lower_for_torch(ours(ours.shape(2, 4)))
    assert {Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD, Kind.SEND_F, Kind.RECV_B} <= once.kinds
    assert lower_for_torch(once) == once


def test_actions_and_ops_undo_each_other() -> None:
    ours = strategy("dualpipev")
    schedule = lower_for_torch(ours(ours.shape(2, 4)))
    rows = [from_ops(torch_internals.ops_of(torch_internals.actions_of(row))) for row in schedule]
    assert Schedule.from_rows(schedule.placement, 4, rows) == schedule
