"""Shorter lifetimes of activations: recomputation before the backward, and offloading to the host.

Recomputation (activation checkpointing) drops saved a forward computed, and an R computes it again before the backward.

An OFFLOAD copies saved a forward keeps to the host, and a RELOAD copies it back. Their places in the row decide saved is
held. The copy of an OFFLOAD starts right after the forward, and the rank waits for its end at the OFFLOAD, which then
frees the memory. A RELOAD allocates the memory at its place, and its copy starts there. To overlap the copies with
computation, place an OFFLOAD some ops after its forward and a RELOAD some ops before its backward. Wan, Qi, Huang, Lin,
Li, PipeOffload: Improving Scalability of Pipeline Parallelism with Memory Optimization, ICML 2025.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.errors import ShapeError
from pipeplan.model import (
    BACKWARD_KINDS,
    COMPUTE_KINDS,
    HOST_KINDS,
    Bools,
    Ints,
    Kind,
    Schedule,
    among,
    concatenate,
    counted,
    ops,
)

Saved = Iterable[int | tuple[int, int]] | None
"""Stages, (stage, microbatch) pairs, or both; None: all stages."""


def chosen_backwards(schedule: Schedule, selection: Saved, *, verb: str, field: str) -> tuple[NDArray[np.intp], Bools]:
    """Return the positions of the selected backwards (B or I), and a mask of those selected by a (stage, microbatch) pair.

    Microbatches that are already recomputed or offloaded are left out.

    Parameters
    ----------
    verb, field
        Verb for the error message, and the setting that the selection comes from.

    Raises
    ------
    ShapeError
        If the schedule does not have a selected stage or microbatch.
    """
    backwards = schedule.where(*BACKWARD_KINDS)
    handled = schedule.key[schedule.where(Kind.R, *HOST_KINDS)]
    backwards = backwards[~np.isin(schedule.key[backwards], handled)]
    if selection is None:
        return backwards, np.zeros(len(backwards), np.bool_)
    requested = list(selection)
    stages = [entry for entry in requested if not isinstance(entry, tuple)]
    pairs = [entry for entry in requested if isinstance(entry, tuple)]
    _require(schedule.stages, "stage", [*stages, *(stage for stage, _ in pairs)], verb, field)
    _require(schedule.microbatches, "microbatch", [microbatch for _, microbatch in pairs], verb, field)
    columns = schedule.columns
    whole, single = np.zeros(schedule.stages, np.bool_), np.zeros((schedule.stages, schedule.microbatches), np.bool_)
    whole[stages] = True
    if pairs:
        single[tuple(np.array(pairs).T)] = True
    by_stage = whole[columns.stage[backwards]]
    by_itself = single[columns.stage[backwards], columns.microbatch[backwards]]
    chosen = by_stage | by_itself
    return backwards[chosen], by_itself[chosen]


def _require(count: int, noun: str, numbers: list[int], verb: str, field: str) -> None:
    if numbers and not 0 <= min(numbers) <= max(numbers) < count:
        nouns = counted(0, noun).removeprefix("0 ")
        raise ShapeError(
            f"cannot {verb} {nouns} {sorted(set(numbers))}: the schedule has {nouns} 0 to {count - 1}", field=field
        )


def insert_recompute(schedule: Schedule, stages: Saved = None) -> Schedule:
    """Return the schedule with an R right before the backward (B or I) of the selected microbatches.

    For an overlapped pair, the R precedes the pair. Microbatches that are already recomputed or offloaded do not change.

    Parameters
    ----------
    stages
        Stages, (stage, microbatch) pairs, or both; None: all stages.

    Raises
    ------
    ShapeError
        If the schedule does not have a selected stage or microbatch.
    """
    backwards, _ = chosen_backwards(schedule, stages, verb="recompute", field="recompute")
    columns = schedule.columns
    inserted = ops(Kind.R, columns.stage[backwards], columns.microbatch[backwards], columns.slice[backwards])
    before = backwards - schedule.joined[backwards]
    # Existing ops sort at even numbers, so that 2 * before - 1 is the place right before one of them.
    order = np.argsort(np.concatenate((2 * np.arange(len(schedule)), 2 * before - 1)), kind="stable")
    ranks = np.concatenate((schedule.rank, schedule.rank[backwards]))
    return schedule.arranged(concatenate(columns, inserted)[order], ranks)


def without_recompute(schedule: Schedule) -> Schedule:
    """Return the schedule without its Rs."""
    return schedule.keep(schedule.columns.kind != Kind.R)


def insert_offload(
    schedule: Schedule,
    stages: Saved = None,
    *,
    offload_behind: int | Sequence[int] = 1,
    reload_ahead: int | Sequence[int] = 1,
) -> Schedule:
    """Return the schedule with an OFFLOAD after the forward and a RELOAD before the backward (B or I) of microbatches.

    If a stage is selected, its microbatches with no op between OFFLOAD and RELOAD are left out, because that saves no
    memory. A selected (stage, microbatch) pair is always offloaded, if necessary with fewer ops in between.
    Microbatches that are already recomputed or offloaded do not change. An overlapped pair counts as one op and is not
    separated.

    Parameters
    ----------
    stages
        Stages, (stage, microbatch) pairs, or both; None: all stages.
    offload_behind
        Number of ops of the rank between a forward and its OFFLOAD; one number, or one per stage.
    reload_ahead
        Number of ops between a RELOAD and its backward; one number, or one per stage.

    Raises
    ------
    ShapeError
        If the schedule does not have a selected stage or microbatch, or a count is negative or not one per stage.
    """
    backwards, by_itself = chosen_backwards(schedule, stages, verb="offload", field="offload")
    columns = schedule.columns
    forward_of = np.full(schedule.keys, -1, np.int64)
    forwards = schedule.where(Kind.F)
    forward_of[schedule.key[forwards]] = forwards
    first, last = _turns(schedule)
    stage = columns.stage[backwards]
    behind, ahead = _per_stage(schedule, offload_behind)[stage], _per_stage(schedule, reload_ahead)[stage]
    turn = np.searchsorted(first, np.arange(len(schedule)), side="right") - 1
    done, due = turn[forward_of[schedule.key[backwards]]], turn[backwards]
    # done and due: turns of the forward and of the backward. At least one turn must lie between OFFLOAD and RELOAD.
    wanted = ((done + behind + 1 < due - ahead) | by_itself) & (forward_of[schedule.key[backwards]] >= 0)
    room = np.maximum(due - done - 2, 0)
    ahead = np.minimum(ahead, room)
    gone, back = done + np.minimum(behind, room - ahead), due - ahead
    backwards, gone, back = backwards[wanted], gone[wanted], back[wanted]
    indices = columns.stage[backwards], columns.microbatch[backwards], columns.slice[backwards]
    offloads, reloads = (ops(kind, *indices) for kind in HOST_KINDS)
    # Several reloads at one place are in the order of their backwards, several offloads in that of their forwards.
    position = np.concatenate((np.arange(len(schedule)), last[gone], first[back]))
    side = np.repeat([1, 2, 0], [len(schedule), len(backwards), len(backwards)])
    then = np.concatenate((np.zeros(len(schedule), np.int64), forward_of[schedule.key[backwards]], backwards))
    order = np.lexsort((then, side, position))
    ranks = np.concatenate((schedule.rank, np.repeat(schedule.rank[backwards], 2)))
    return schedule.arranged(concatenate(columns, offloads, reloads)[order], ranks)


def _turns(schedule: Schedule) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first and last position of each turn of a rank: a single compute op, or an overlapped pair."""
    first = np.flatnonzero(among(schedule.columns.kind, COMPUTE_KINDS) & ~schedule.joined)
    return first, first + schedule.begins_pair[first]


def _per_stage(schedule: Schedule, count: int | Sequence[int]) -> Ints:
    counts = np.full(schedule.stages, count) if isinstance(count, int) else np.array(count)
    if len(counts) != schedule.stages or counts.min(initial=0) < 0:
        raise ShapeError(
            f"the number of ops between a forward and its offload, or a reload and its backward, must be at least 0, "
            f"either one number or one for each of the {schedule.stages} stages, not {count}"
        )
    return counts
