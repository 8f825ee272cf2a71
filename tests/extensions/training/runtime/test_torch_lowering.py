"""Our UNSHARD, RESHARD and REDUCE_GRAD against PyTorch's own pass, over the installed version."""

from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.distributed.pipelining.schedules import _add_reduce_grad, _add_unshard_reshard

from pipeplan.extensions.training.runtime import torch_internals
from pipeplan.formats import has_waits, torch_release
from pipeplan.model import Kind, Op, Placement, Schedule, from_ops
from pipeplan.passes import add_reduce_grad, add_unshard_reshard, add_waits, lower_for_torch
from pipeplan.strategies import strategy
from tests.extensions.training.runtime.lowered import in_order
from tests.extensions.training.runtime.torch_schedules import ops_of


def theirs(schedule: Schedule, active: int = 3, ahead: list[int] | None = None) -> Schedule:
    """PyTorch's own lowering; ``ahead`` are the lookaheads of the ranks, which releases after 2.15 take."""

    def lowered(row: int) -> list[Any]:
        lookahead = {} if ahead is None else {"unshard_lookahead": ahead[row]}
        actions = torch_internals.actions_of(schedule[row])
        return _add_reduce_grad(_add_unshard_reshard(actions, active, **lookahead), schedule.microbatches)

    rows = [lowered(row) for row in range(schedule.ranks)]
    return Schedule.from_rows(
        schedule.placement, schedule.microbatches, [from_ops(in_order(ops_of(row))) for row in rows]
    )


@pytest.mark.parametrize(
    ("name", "ranks", "microbatches", "chunks"),
    [
        ("zbv", 2, 4, 2),
        ("dualpipev", 2, 5, 2),
        ("interleaved-1f1b", 2, 8, 5),
    ],
)
def test_same_as_pytorch(name: str, ranks: int, microbatches: int, chunks: int) -> None:
    ours = strategy(name)
    schedule = ours(ours.shape(ranks, microbatches, chunks))
    lowered = add_reduce_grad(add_unshard_reshard(schedule))
    assert (add_waits(lowered) if has_waits(torch_release()) else lowered) == theirs(schedule)


def test_same_as_pytorch_for_any_window_and_row() -> None:
    """Rows in random order, some ops overlapped: PyTorch's pass looks at nothing but the order."""
    random = np.random.default_rng(1)
    takes_lookahead = "unshard_lookahead" in signature(_add_unshard_reshard).parameters
    for _ in range(30):
        # From 2.15 on, PyTorch refuses an overlapped pair of two stages where it keeps only one.
        chunks, active = int(random.integers(1, 6)), int(random.integers(1 + takes_lookahead, 6))
        rows = []
        for rank in range(2):
            row = [
                Op(kind, rank + 2 * chunk, n) for kind in (Kind.F, Kind.B) for chunk in range(chunks) for n in range(2)
            ]
            random.shuffle(row)
            pairs = random.integers(len(row) // 2, size=2)
            rows.append([replace(op, group=place // 2 if place // 2 in pairs else -1) for place, op in enumerate(row)])
        schedule = Schedule.from_rows(Placement.loop(2, chunks), 2, [from_ops(row) for row in rows])
        for ahead in range(1, active + 1) if takes_lookahead else (active,):
            unsharded = add_unshard_reshard(schedule, max_active_stages=active, unshard_lookahead=ahead)
            lowered = add_reduce_grad(unsharded)
            wanted = theirs(schedule, active, [ahead] * 2 if takes_lookahead else None)
            assert (add_waits(lowered) if has_waits(torch_release()) else lowered) == wanted


def test_what_is_there_is_kept() -> None:
    ours = strategy("zbv")
    once = lower_for_torch(ours(ours.shape(2, 4)))
    assert {Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD, Kind.SEND_F, Kind.RECV_B} <= once.kinds
    assert lower_for_torch(once) == once


def test_actions_and_ops_undo_each_other() -> None:
    ours = strategy("dualpipev")
    schedule = lower_for_torch(ours(ours.shape(2, 4)))
    rows = [from_ops(ops_of(torch_internals.actions_of(row))) for row in schedule]
    assert Schedule.from_rows(schedule.placement, 4, rows) == schedule
