"""Are a stage's parameters there when it computes, and are its gradients reduced?

UNSHARD, RESHARD and REDUCE_GRAD belong to stages that are sharded or replicated over a data-parallel group. A schedule that
says when some stage does them must say so for every stage: the runtime does nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pipeplan.checking.problem import Problem
from pipeplan.checking.structure import SHOWN
from pipeplan.model import COMPUTE_KINDS, STAGE_WIDE_KINDS, WEIGHT_KINDS, Ints, Kind, Schedule, among


def check_reduce_grad(schedule: Schedule, *, wanted: bool | None = None) -> Iterator[Problem]:
    """One REDUCE_GRAD for every stage on every rank that holds it, behind all its weight gradients.

    Parameters
    ----------
    wanted
        Whether the schedule needs them; None: where it holds any op of a whole stage.
    """
    if wanted is False or (wanted is None and schedule.kinds.isdisjoint(STAGE_WIDE_KINDS)):
        return
    weights, reductions = schedule.where(*WEIGHT_KINDS), schedule.where(Kind.REDUCE_GRAD)
    last = _last(schedule, weights)
    counts = np.bincount(_cell(schedule, reductions), minlength=len(last))
    for cell in np.flatnonzero((last >= 0) & (counts == 0))[:SHOWN].tolist():
        rank, stage = divmod(cell, schedule.stages)
        message = f"{stage}REDUCE_GRAD is missing: every replica would go on with gradients of its own and drift apart"
        yield Problem("reduce-grad", f"rank {rank}", message)
    seen: set[int] = set()
    for position, cell in zip(reductions.tolist(), _cell(schedule, reductions).tolist(), strict=True):
        if cell in seen:
            message = "occurs a second time: reduced gradients would be reduced again"
            yield Problem("reduce-grad", schedule.place(position), message, position)
        elif position < last[cell]:
            late = schedule.op(int(last[cell]))
            message = f"comes before {late}: what that adds to the gradients would not be reduced"
            yield Problem("reduce-grad", schedule.place(position), message, position)
        seen.add(cell)


def note_no_reduce_grad(schedule: Schedule) -> Iterator[Problem]:
    """A schedule for a runtime (with communication) that leaves it to others to reduce gradients."""
    if schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
        message = (
            "there is no REDUCE_GRAD: PyTorch's runtime, which takes a schedule with communication as it stands, would not "
            "reduce gradients over replicas; nothing is missing where there are none, or another tool does it"
        )
        yield Problem("reduce-grad", "", message)


def check_sharding(schedule: Schedule) -> Iterator[Problem]:
    """Every compute op of a stage between an UNSHARD of it and the RESHARD after; no rule where a schedule has neither."""
    if schedule.kinds.isdisjoint((Kind.UNSHARD, Kind.RESHARD)):
        return
    kind, cell = schedule.columns.kind, _cell(schedule, np.arange(len(schedule)))
    order = np.argsort(cell, kind="stable")
    change = (kind == Kind.UNSHARD).astype(np.int64) - (kind == Kind.RESHARD)
    gathered = np.empty(len(schedule), np.int64)
    gathered[order] = np.cumsum(change[order])
    first = np.concatenate(([True], np.diff(cell[order]) != 0))
    before = np.concatenate(([0], gathered[order][:-1]))[first]
    gathered[order] -= np.repeat(before, np.diff(np.append(np.flatnonzero(first), len(schedule))))
    yield from _sharded(schedule, np.flatnonzero(among(kind, COMPUTE_KINDS) & (gathered != 1)))
    for position in np.flatnonzero((gathered < 0) | (gathered > 1))[:SHOWN].tolist():
        if Kind(kind[position]).is_stage_wide:
            again = "gathered" if gathered[position] > 1 else "given back"
            yield Problem("sharding", schedule.place(position), f"its stage's parameters are {again} already", position)


def _sharded(schedule: Schedule, positions: NDArray[np.intp]) -> Iterator[Problem]:
    for position in positions[:SHOWN].tolist():
        message = (
            "computes while its stage's parameters are not gathered: PyTorch stops here, others compute on a shard"
        )
        yield Problem("sharding", schedule.place(position), message, position)


def _cell(schedule: Schedule, positions: NDArray[np.intp]) -> Ints:
    """A number for the (rank, stage) of each op."""
    return schedule.rank[positions].astype(np.int64) * schedule.stages + schedule.columns.stage[positions]


def _last(schedule: Schedule, positions: NDArray[np.intp]) -> Ints:
    """The last of these ops for each (rank, stage), -1 where there is none; shape (ranks * stages,)."""
    last = np.full(schedule.ranks * schedule.stages, -1, np.int64)
    np.maximum.at(last, _cell(schedule, positions), positions)
    return last
