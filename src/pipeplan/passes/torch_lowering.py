"""What PyTorch's pipeline runtime wants in a schedule beside compute and transfers: UNSHARD, RESHARD, REDUCE_GRAD.

The rules are those of ``torch.distributed.pipelining`` 2.13 and 2.14 (``_add_unshard_reshard``, ``_add_reduce_grad``), for
stages that are sharded over a data-parallel group (FSDP); on other stages these ops do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import ShapeError
from pipeplan.model import (
    COMMUNICATION_KINDS,
    COMPUTE_KINDS,
    NO_MICROBATCH,
    WEIGHT_KINDS,
    Columns,
    Kind,
    Schedule,
    among,
    concatenate,
    ops,
)
from pipeplan.passes.communication import Receives, insert_communication

ACTIVE_STAGES = 3
"""How many stages of a rank hold their gathered parameters at once: one forward, one backward, one fetched ahead."""


def lower_for_torch(schedule: Schedule, *, receives: Receives = "early") -> Schedule:
    """The schedule as PyTorch's runtime executes it.

    A schedule that holds communication keeps it as it is. What it holds of UNSHARD, RESHARD and REDUCE_GRAD is kept too.

    Raises
    ------
    ShapeError
        For a schedule that the runtime cannot express; see :func:`require_expressible`.
    DeadlockError
        If ranks wait for each other.
    """
    require_expressible(schedule)
    if not schedule.has(Kind.UNSHARD):
        schedule = add_unshard_reshard(schedule)
    if not schedule.has(Kind.REDUCE_GRAD):
        schedule = add_reduce_grad(schedule)
    if schedule.kinds.isdisjoint(COMMUNICATION_KINDS):
        schedule = insert_communication(schedule, receives=receives)
    return schedule


def require_expressible(schedule: Schedule) -> None:
    """Refuse what PyTorch's runtime has no form for.

    Raises
    ------
    ShapeError
        For two copies of the model (bidirectional), and sliced sequences.
    """
    reasons = {
        "it holds each stage once, on one rank; a bidirectional placement holds every stage twice": (
            schedule.placement.copies > 1
        ),
        f"its ops are whole microbatches; this schedule cuts sequences into {schedule.slices} slices": (
            schedule.slices > 1
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise ShapeError(f"PyTorch's pipeline runtime cannot run {schedule.name or 'this schedule'}: {reason}")


def add_reduce_grad(schedule: Schedule) -> Schedule:
    """The schedule with a REDUCE_GRAD behind the last weight gradient (B or W) of every stage."""
    last = np.full(schedule.stages, -1, np.int64)
    weights = schedule.where(*WEIGHT_KINDS)
    np.maximum.at(last, schedule.columns.stage[weights], weights)
    stages = np.flatnonzero(last >= 0)
    stages = stages[np.argsort(last[stages])]
    pair_goes_on = np.append(schedule.joined[1:], False)
    return _insert(
        schedule, last[stages] + 1 + pair_goes_on[last[stages]], ops(Kind.REDUCE_GRAD, stages, NO_MICROBATCH)
    )


def add_unshard_reshard(schedule: Schedule, *, active: int = ACTIVE_STAGES) -> Schedule:
    """The schedule with an UNSHARD ahead of use and a RESHARD after it, so that a rank gathers few stages at once.

    Before every op a rank gathers the next ``active`` different stages that it will compute on, after giving back those
    that are not among them.
    """
    before: list[int] = []
    inserted: list[Columns] = []
    for first, stop in pairwise(schedule.offsets.tolist()):
        for position, kind, stages in _changes(schedule, first, stop, active):
            before += [position] * len(stages)
            inserted.append(ops(kind, stages, NO_MICROBATCH))
    return _insert(schedule, np.array(before, np.int64), concatenate(*inserted))


def _changes(schedule: Schedule, first: int, stop: int, active: int) -> Iterator[tuple[int, Kind, list[int]]]:
    """On one rank: before which op, and what, is gathered or given back."""
    gathered: list[int] = []
    for position, wanted in _windows(schedule, first, stop, active):
        if evicted := sorted(set(gathered) - set(wanted)):
            yield position, Kind.RESHARD, evicted
        if fetched := [stage for stage in wanted if stage not in gathered]:
            yield position, Kind.UNSHARD, fetched
        gathered = wanted
    if gathered:
        yield stop, Kind.RESHARD, sorted(gathered)


def _windows(schedule: Schedule, first: int, stop: int, active: int) -> Iterator[tuple[int, list[int]]]:
    """The next different stages from each op on, where they change; both stages of a pair that reaches the limit count."""
    compute = np.flatnonzero(among(schedule.columns.kind[first:stop], COMPUTE_KINDS)) + first
    stages = schedule.columns.stage[compute].tolist()
    step = (compute - schedule.joined[compute]).tolist()
    upcoming: list[tuple[int, int]] = []
    windows: list[tuple[int, list[int]]] = []
    for where, stage in zip(reversed(step), reversed(stages), strict=True):
        upcoming = [(where, stage), *(later for later in upcoming if later[1] != stage)]
        count = active + (len(upcoming) > active and upcoming[active][0] == upcoming[active - 1][0])
        window = [wanted for _, wanted in upcoming[:count]]
        if windows and windows[-1][0] == where:
            windows.pop()
        windows.append((where, window))
    return reversed(windows)


def _insert(schedule: Schedule, before: NDArray[np.int64], inserted: Columns) -> Schedule:
    """The schedule with ops put before the given positions (in ascending order; of equals the given order stands).

    An op goes to the rank on which its stage stands, which decides between the end of one row and the start of the next.
    """
    rank_of = schedule.placement.table[0]
    position = np.concatenate((np.arange(len(schedule)), before))
    late = np.concatenate((np.ones(len(schedule), np.int64), np.zeros(len(before), np.int64)))
    rank = np.concatenate((schedule.rank, rank_of[inserted.stage]))
    order = np.lexsort((np.arange(len(position)), late, position, rank))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rank, minlength=schedule.ranks)))).astype(np.int64)
    columns = concatenate(schedule.columns, inserted)[order]
    return replace(schedule, columns=columns, offsets=offsets)
