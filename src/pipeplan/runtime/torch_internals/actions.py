"""Ops as the actions of PyTorch's runtime, and back."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from torch.distributed.pipelining.schedules import _Action, _ComputationType

from pipeplan.model import NO_MICROBATCH, Kind, Op


class Added(StrEnum):
    """Types of actions that PyTorch's runtime does not have and takes functions for; named as its own are."""

    R = "R"
    OFFLOAD = "OFFLOAD"
    RELOAD = "RELOAD"


def actions_of(row: Iterable[Op]) -> list[Any]:
    """One rank's ops as the runtime's actions; an overlapped pair is one action of two."""
    actions: list[Any] = []
    pair: list[Any] = []
    for op in row:
        microbatch = None if op.microbatch == NO_MICROBATCH else op.microbatch
        action = _Action(op.stage, _type_of(op.kind), microbatch)
        if op.group < 0:
            actions.append(action)
            continue
        pair.append(action)
        if len(pair) == 2:
            actions.append(_Action(-1, _ComputationType.OVERLAP_F_B, None, tuple(pair)))
            pair = []
    return actions


def _type_of(kind: Kind) -> Any:
    return Added(kind.name) if kind.name in Added.__members__ else _ComputationType(kind.name)


def ops_of(actions: Iterable[Any]) -> list[Op]:
    """The ops of one rank's actions; empty steps are passed over."""
    row: list[Op] = []
    for number, action in enumerate(actions):
        if action is None:
            continue
        parts, group = ((action,), -1) if action.sub_actions is None else (action.sub_actions, number)
        for part in parts:
            microbatch = NO_MICROBATCH if part.microbatch_index is None else part.microbatch_index
            row.append(Op(Kind[part.computation_type.value], part.stage_index, microbatch, group=group))
    return row
