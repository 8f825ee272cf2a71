"""Convert ops to actions of PyTorch's runtime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from torch.distributed.pipelining.schedules import _Action, _ComputationType

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
