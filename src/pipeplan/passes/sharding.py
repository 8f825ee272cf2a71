"""Collectives of stages that are sharded over a data-parallel group: where they stand in a row.

UNSHARD gathers the parameters of a stage, RESHARD frees them, REDUCE_GRAD reduces its gradients. Two rules are in use:

PyTorch (:func:`add_unshard_reshard`, :func:`add_reduce_grad`; FSDP)
    ``torch.distributed.pipelining`` looks ahead from each op. It keeps the next ``max_active_stages`` different stages and
    frees all others. From 2.15 on it gathers only the next ``unshard_lookahead`` of them (pull request 196706)::

        row                    0F0   0F1   2F0   2F1   4F0   4F1     two stages are kept, "full": two are gathered ahead
        before the op    U0 U2             R0 U4       R2 ...

Megatron-LM (:func:`add_megatron_collectives`; distributed optimizer with overlapped communication)
    Each chunk is gathered once per step and kept. The gathers of chunks 0 and 1 begin the step. That of chunk c + 1 is
    posted when rank 0 would run the first forward of chunk c; gradients are reduced when rank 0 would have run the last
    backward of the chunk. So a rank is ahead of its own row by its number with gathers, and behind with reductions::

        rank 0     4F0             rank 1    ...  4F0
              U8^                      U8^                     chunks of rank 0: 0, 4, 8; of rank 1: 1, 5, 9
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.errors import ShapeError
from pipeplan.model import (
    COMMUNICATION_KINDS,
    COMPUTE_KINDS,
    NO_MICROBATCH,
    RECEIVE_KINDS,
    SEND_KINDS,
    SEND_WAIT_KINDS,
    STAGE_WIDE_KINDS,
    WEIGHT_KINDS,
    Columns,
    Kind,
    Schedule,
    Sharding,
    among,
    concatenate,
    dependencies,
    ops,
    progress,
)
from pipeplan.passes.communication import without_communication

ACTIVE_STAGES = 3
"""Default number of stages with gathered parameters on a rank: one forward, one backward, one prefetched."""

Lookahead = Literal["full", "auto"] | int | Sequence[int]
"""Number of next stages that a rank gathers: all that it keeps, PyTorch's estimate, one number, or one per rank."""


@dataclass(frozen=True, slots=True)
class ShardingRule:
    """A rule that places collectives, and the options of PyTorch's; see :func:`add_unshard_reshard`."""

    name: Sharding
    max_active_stages: int = ACTIVE_STAGES
    unshard_lookahead: Lookahead = "full"

    @property
    def in_words(self) -> str:
        """The rule in a few words."""
        if self.name != "pytorch":
            return "nowhere" if self.name == "none" else "by Megatron-LM's rule"
        ahead = "" if self.unshard_lookahead == "full" else f", lookahead {self.unshard_lookahead}"
        return f"by PyTorch's rule ({self.max_active_stages} active stages{ahead})"

    def resident(self, stages: int) -> int:
        """Return the number of stages that a rank with so many of them holds at once, at most."""
        return min(self.max_active_stages, stages) if self.name == "pytorch" else stages

    def __call__(self, schedule: Schedule) -> Schedule:
        """Return the schedule with the collectives of the rule in place of its own.

        Messages keep their order. The rule does not look at them, because trainers insert them last. A schedule that has
        the collectives of the rule is returned unchanged.
        """
        plain = without_collectives(schedule)
        silent = without_communication(plain)
        placed = self._placed(silent)
        if len(silent) == len(plain):
            return placed
        return schedule if placed == without_communication(schedule) else _with_messages_of(plain, placed)

    def _placed(self, schedule: Schedule) -> Schedule:
        if self.name == "megatron":
            return add_megatron_collectives(schedule)
        if self.name == "pytorch":
            active, ahead = self.max_active_stages, self.unshard_lookahead
            return add_reduce_grad(add_unshard_reshard(schedule, max_active_stages=active, unshard_lookahead=ahead))
        return schedule


def _with_messages_of(schedule: Schedule, placed: Schedule) -> Schedule:
    """Return ``placed``, which has collectives and no messages, with the messages of ``schedule``, which has the reverse.

    Between two ops, a collective stands before the first message that is sent in its step or later, as where
    :func:`~pipeplan.passes.insert_communication` inserts the messages::

        schedule          0F0  SEND  RECV  2F0        the result that RECV awaits is sent in step 3
        placed            0F0  U2          2F0        U2 runs in step 2
        both              0F0  SEND  U2  RECV  2F0
    """
    of_placed = progress(placed, dependencies(placed)).step.astype(np.int64)
    is_collective = among(placed.columns.kind, STAGE_WIDE_KINDS)
    collectives = np.flatnonzero(is_collective)
    is_message = among(schedule.columns.kind, (*COMMUNICATION_KINDS, *SEND_WAIT_KINDS))
    others = np.flatnonzero(~is_message)
    step = np.zeros(len(schedule), np.int64)
    step[others] = of_placed[~is_collective]
    needs = dependencies(schedule)
    # A SEND has the step of the op that it follows, a wait that of its SEND, and a RECV that of the SEND that it waits for.
    for kinds, sources in (
        (SEND_KINDS, needs.own_stage),
        (SEND_WAIT_KINDS, needs.own_stage),
        (RECEIVE_KINDS, needs.arrival),
    ):
        positions = schedule.where(*kinds)
        step[positions] = np.where(sources[positions] >= 0, step[sources[positions]], 0)
    # Gaps between ops are numbered over all rows, and places in them by their step, which messages keep in order.
    messages = np.flatnonzero(is_message)
    steps = int(step.max(initial=0)) + int(of_placed.max(initial=0)) + 1
    behind = np.cumsum(~is_message)[messages] + schedule.rank[messages]
    turn = np.maximum.accumulate(behind * steps + step[messages])
    rank, seen = placed.rank[collectives], np.cumsum(~is_collective)[collectives]
    next_message = np.searchsorted(turn, (seen + rank) * steps + of_placed[collectives])
    ends = schedule.offsets[rank + 1]
    next_op = np.minimum(np.append(others, len(schedule))[seen], ends)
    before = np.minimum(np.append(messages, len(schedule))[next_message], next_op)
    return insert_collectives(schedule, rank, before, placed.columns[collectives])


def without_collectives(schedule: Schedule) -> Schedule:
    """Return the schedule without UNSHARD, RESHARD, REDUCE_GRAD and the waits for these."""
    if schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
        return schedule
    return schedule.keep(~among(schedule.columns.kind, STAGE_WIDE_KINDS))


def add_reduce_grad(schedule: Schedule) -> Schedule:
    """Return the schedule with a REDUCE_GRAD after the last weight gradient (B or W) of every stage on its rank."""
    weights = schedule.where(*WEIGHT_KINDS)
    last = np.full(schedule.ranks * schedule.stages, -1, np.intp)
    np.maximum.at(
        last, schedule.rank[weights].astype(np.int64) * schedule.stages + schedule.columns.stage[weights], weights
    )
    last = np.sort(last[last >= 0])
    stage = schedule.columns.stage[last]
    # Behind the op, or behind the pair that it begins.
    behind = last + 1 + schedule.begins_pair[last]
    return insert_collectives(schedule, schedule.rank[last], behind, ops(Kind.REDUCE_GRAD, stage, NO_MICROBATCH))


def add_unshard_reshard(
    schedule: Schedule, *, max_active_stages: int = ACTIVE_STAGES, unshard_lookahead: Lookahead = "full"
) -> Schedule:
    """Return the schedule with an UNSHARD before use and a RESHARD after it, so that a rank gathers few stages at once.

    Parameters
    ----------
    schedule
        Schedule without UNSHARD and RESHARD.
    max_active_stages
        Number of next different stages that a rank keeps from each op on; it frees all others.
    unshard_lookahead
        Number of these that it gathers ahead: ``full`` for all, ``auto`` for ``min(rank + 2, max_active_stages)``, one
        number, or one per rank.

    Raises
    ------
    ShapeError
        If a number is less than 1, a lookahead is more than ``max_active_stages``, or there is not one per rank.
    """
    ahead = lookaheads(schedule.ranks, max_active_stages, unshard_lookahead)
    rank_of: list[int] = []
    before: list[int] = []
    inserted: list[Columns] = []
    for rank, (first, stop) in enumerate(pairwise(schedule.offsets.tolist())):
        for position, kind, stages in _changes(schedule, first, stop, max_active_stages, ahead[rank]):
            rank_of += [rank] * len(stages)
            before += [position] * len(stages)
            inserted.append(ops(kind, stages, NO_MICROBATCH))
    return insert_collectives(schedule, np.array(rank_of, np.int64), np.array(before, np.int64), concatenate(*inserted))


def lookaheads(ranks: int, max_active_stages: int, unshard_lookahead: Lookahead) -> list[int]:
    """Return the number of stages that each rank gathers ahead; see :func:`add_unshard_reshard`."""
    if max_active_stages < 1:
        raise ShapeError(f"max_active_stages must be at least 1, not {max_active_stages}", field="max_active_stages")
    if unshard_lookahead == "full":
        return [max_active_stages] * ranks
    if unshard_lookahead == "auto":
        return [min(rank + 2, max_active_stages) for rank in range(ranks)]
    ahead = [unshard_lookahead] * ranks if isinstance(unshard_lookahead, int) else [*unshard_lookahead]
    if len(ahead) != ranks:
        raise ShapeError(f"unshard_lookahead: {len(ahead)} values for {ranks} ranks", field="unshard_lookahead")
    wrong = next((number for number in ahead if not 1 <= number <= max_active_stages), None)
    if wrong is not None:
        raise ShapeError(
            f"unshard_lookahead must be from 1 to max_active_stages, which is {max_active_stages}, not {wrong}",
            field="unshard_lookahead",
        )
    return ahead


def _changes(
    schedule: Schedule, first: int, stop: int, active: int, ahead: int
) -> Iterator[tuple[int, Kind, list[int]]]:
    """Yield where a rank gathers or frees stages: the position before which to insert, the kind, and the stages."""
    gathered: set[int] = set()
    for position, kept, early in _windows(schedule, first, stop, active, ahead):
        if evicted := sorted(gathered.difference(kept)):
            yield position, Kind.RESHARD, evicted
        if fetched := [stage for stage in early if stage not in gathered]:
            yield position, Kind.UNSHARD, fetched
        gathered = gathered.intersection(kept).union(fetched)
    if gathered:
        yield stop, Kind.RESHARD, sorted(gathered)


def _windows(
    schedule: Schedule, first: int, stop: int, active: int, ahead: int
) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield for each op, or pair, the next different stages from it on: those to keep, and those to gather.

    If a limit falls between the two stages of an overlapped pair, both count.
    """
    compute = np.flatnonzero(among(schedule.columns.kind[first:stop], COMPUTE_KINDS)) + first
    stages = schedule.columns.stage[compute].tolist()
    step = (compute - schedule.joined[compute]).tolist()
    upcoming: list[tuple[int, int]] = []
    windows: list[tuple[int, list[int], list[int]]] = []
    for where, stage in zip(reversed(step), reversed(stages), strict=True):
        upcoming = [(where, stage), *(later for later in upcoming if later[1] != stage)]
        if windows and windows[-1][0] == where:
            windows.pop()
        windows.append((where, _next_of(upcoming, active), _next_of(upcoming, ahead)))
    return reversed(windows)


def _next_of(upcoming: list[tuple[int, int]], count: int) -> list[int]:
    """Return the first stages of those that come next, with both of an overlapped pair."""
    split = len(upcoming) > count and upcoming[count][0] == upcoming[count - 1][0]
    return [stage for _, stage in upcoming[: count + split]]


def add_megatron_collectives(schedule: Schedule) -> Schedule:
    """Return the schedule with the collectives of Megatron-LM's distributed optimizer, aligned over the ranks.

    It is the rule of ``param_sync_func`` and ``grad_sync_func`` in ``megatron.core.pipeline_parallel.schedules``, with
    ``--overlap-param-gather``, ``--overlap-grad-reduce`` and their alignment, which are its defaults. Without interleaving
    nothing is shifted. In rows that Megatron-LM does not run, a stage is gathered before its first op at the latest.

    Parameters
    ----------
    schedule
        Schedule without UNSHARD, RESHARD and REDUCE_GRAD.
    """
    ranks: list[int] = []
    before: list[int] = []
    inserted: list[Columns] = []
    for rank, (first, stop) in enumerate(pairwise(schedule.offsets.tolist())):
        row = schedule.columns[first:stop]
        joined = schedule.joined[first:stop]
        stages = np.unique(row.stage[among(row.kind, COMPUTE_KINDS)])
        gathers = _megatron_gathers(row, joined, stages, rank)
        reductions = _megatron_reductions(row, schedule.begins_pair[first:stop], stages, rank)
        for kind, places in (
            (Kind.UNSHARD, gathers),
            (Kind.REDUCE_GRAD, reductions),
            (Kind.RESHARD, [(stop - first, int(stage)) for stage in stages]),
        ):
            ranks += [rank] * len(places)
            before += [first + place for place, _ in places]
            inserted.append(ops(kind, [stage for _, stage in places], NO_MICROBATCH))
    return insert_collectives(schedule, np.array(ranks, np.int64), np.array(before, np.int64), concatenate(*inserted))


def _megatron_gathers(
    row: Columns, joined: NDArray[np.bool_], stages: NDArray[np.int32], rank: int
) -> list[tuple[int, int]]:
    """Return the place and the stage of each UNSHARD on a rank, in order."""
    forwards = np.flatnonzero(row.kind == Kind.F)
    places = [(0, int(stage)) for stage in stages[:2]]
    for chunk in range(1, len(stages) - 1):
        of_chunk = np.flatnonzero(row.stage[forwards] == stages[chunk])
        of_next = np.flatnonzero((row.stage == stages[chunk + 1]) & among(row.kind, COMPUTE_KINDS))
        turn = max(int(of_chunk[0]) - rank, 0) if of_chunk.size else 0
        place = min(int(forwards[turn]) if forwards.size else 0, int(of_next[0]))
        places.append((place - int(joined[place]), int(stages[chunk + 1])))
    return sorted(places, key=lambda gather: gather[0])


def _megatron_reductions(
    row: Columns, begins_pair: NDArray[np.bool_], stages: NDArray[np.int32], rank: int
) -> list[tuple[int, int]]:
    """Return the place and the stage of each REDUCE_GRAD on a rank, in order."""
    weights = np.flatnonzero(among(row.kind, WEIGHT_KINDS))
    shift = rank if len(stages) > 1 else 0
    places, late = [], []
    for stage in stages.tolist():
        of_stage = np.flatnonzero(row.stage[weights] == stage)
        if not of_stage.size:
            continue
        turn = int(of_stage[-1]) + shift
        if turn < len(weights):
            places.append((int(weights[turn] + 1 + begins_pair[weights[turn]]), stage))
        else:
            late.append((len(row), stage))
    return [*sorted(places, key=lambda reduction: reduction[0]), *late]


def insert_collectives(
    schedule: Schedule, rank: NDArray[np.integer[Any]], before: NDArray[np.integer[Any]], inserted: Columns
) -> Schedule:
    """Return the schedule with ops inserted on these ranks, before these positions.

    The ranks decide between the end of one row and the start of the next. Of several ops before one position, the order
    stays.
    """
    position = np.concatenate((np.arange(len(schedule)), before))
    late = np.concatenate((np.ones(len(schedule), np.int64), np.zeros(len(before), np.int64)))
    ranks = np.concatenate((schedule.rank, rank))
    order = np.lexsort((np.arange(len(position)), late, position, ranks))
    return schedule.arranged(concatenate(schedule.columns, inserted)[order], ranks)
