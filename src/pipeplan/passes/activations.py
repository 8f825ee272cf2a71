"""Activations that ranks hold for less time: recomputed before their backward, or offloaded to the host.

Recomputation (activation checkpointing) forgets what a forward made, and an R makes it again before the backward.

An OFFLOAD copies what a forward keeps to the host, and a RELOAD copies it back. Where the two ops stand says what is held:
an OFFLOAD frees its rank's memory where it stands, and its rank waits there for the end of the copy, which begins right
behind the forward; a RELOAD takes the memory where it stands, and its copy begins there. So an OFFLOAD stands some ops
behind its forward and a RELOAD some ops ahead of its backward, as many as it takes to copy: then copies hide behind compute.
Wan, Qi, Huang, Lin, Li, PipeOffload: Improving Scalability of Pipeline Parallelism with Memory Optimization, ICML 2025.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import ShapeError
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
    ops,
)

Saved = Iterable[int | tuple[int, int]] | None
"""Stages, or (stage, microbatch) pairs, or both; None: all of them."""


def chosen_backwards(schedule: Schedule, what: Saved, *, verb: str, field: str) -> tuple[NDArray[np.intp], Bools]:
    """Positions of the backwards (B or I) of what is meant, and whether each is meant by itself, not by its stage.

    Those that are recomputed or offloaded already are left out.

    Parameters
    ----------
    verb, field
        What the pass does with them, and its setting: for the error.

    Raises
    ------
    ShapeError
        For a stage or a microbatch that the schedule does not have.
    """
    backwards = schedule.where(*BACKWARD_KINDS)
    saved = schedule.key[schedule.where(Kind.R, *HOST_KINDS)]
    backwards = backwards[~np.isin(schedule.key[backwards], saved)]
    if what is None:
        return backwards, np.zeros(len(backwards), np.bool_)
    requested = list(what)
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
        shown = sorted(set(numbers))
        ending = "es" if noun.endswith("ch") else "s"
        raise ShapeError(
            f"cannot {verb} {noun}{ending} {shown}: this schedule has {noun}{ending} 0 to {count - 1}", field=field
        )


def insert_recompute(schedule: Schedule, stages: Saved = None) -> Schedule:
    """The schedule with an R right before the backward (B or I) of every microbatch on some stages, or of single ones.

    The R of an overlapped pair stands before the pair. A microbatch that is recomputed or offloaded already stays as it is.

    Parameters
    ----------
    stages
        Stages, or (stage, microbatch) pairs, or both; None: all of them.

    Raises
    ------
    ShapeError
        For a stage or a microbatch that the schedule does not have.
    """
    backwards, _ = chosen_backwards(schedule, stages, verb="recompute", field="recompute")
    columns = schedule.columns
    inserted = ops(Kind.R, columns.stage[backwards], columns.microbatch[backwards], columns.slice[backwards])
    before = backwards - schedule.joined[backwards]
    order = np.argsort(np.concatenate((2 * np.arange(len(schedule)), 2 * before - 1)), kind="stable")
    counts = np.bincount(schedule.rank[backwards], minlength=schedule.ranks)
    offsets = schedule.offsets + np.concatenate(([0], np.cumsum(counts)))
    return replace(schedule, columns=concatenate(columns, inserted)[order], offsets=offsets)


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
    """The schedule with an OFFLOAD behind the forward and a RELOAD ahead of the backward (B or I) of microbatches.

    Of whole stages, a microbatch is kept where no op would run between its OFFLOAD and its RELOAD: nothing would be saved.
    One that is asked for by itself is offloaded in any case, with fewer ops behind its forward and ahead of its backward if
    need be. What is recomputed or offloaded already stays as it is. An overlapped pair is one op, and is not torn apart.

    Parameters
    ----------
    stages
        Stages, or (stage, microbatch) pairs, or both; None: all of them.
    offload_behind
        How many ops of the rank run between a forward and its OFFLOAD; one number, or one per stage.
    reload_ahead
        How many run between a RELOAD and its backward, likewise.

    Raises
    ------
    ShapeError
        For a stage or a microbatch that the schedule does not have; for counts below 0, or of another number than stages.
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
    wanted = ((done + behind + 1 < due - ahead) | by_itself) & (forward_of[schedule.key[backwards]] >= 0)
    room = np.maximum(due - done - 2, 0)
    ahead = np.minimum(ahead, room)
    gone, back = done + np.minimum(behind, room - ahead), due - ahead
    backwards, gone, back = backwards[wanted], gone[wanted], back[wanted]
    whose = columns.stage[backwards], columns.microbatch[backwards], columns.slice[backwards]
    offloads, reloads = (ops(kind, *whose) for kind in HOST_KINDS)
    # Of reloads at one place, that of the first backward comes first; of offloads, that of the first forward.
    position = np.concatenate((np.arange(len(schedule)), last[gone], first[back]))
    side = np.repeat([1, 2, 0], [len(schedule), len(backwards), len(backwards)])
    then = np.concatenate((np.zeros(len(schedule), np.int64), forward_of[schedule.key[backwards]], backwards))
    order = np.lexsort((then, side, position))
    counts = 2 * np.bincount(schedule.rank[backwards], minlength=schedule.ranks)
    offsets = schedule.offsets + np.concatenate(([0], np.cumsum(counts)))
    return replace(schedule, columns=concatenate(columns, offloads, reloads)[order], offsets=offsets)


def without_offload(schedule: Schedule) -> Schedule:
    """The schedule without its OFFLOADs and RELOADs."""
    return schedule.keep(~among(schedule.columns.kind, HOST_KINDS))


def _turns(schedule: Schedule) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First and last position of what ranks compute one after the other: single ops, and overlapped pairs."""
    first = np.flatnonzero(among(schedule.columns.kind, COMPUTE_KINDS) & ~schedule.joined)
    pair_goes_on = np.append(schedule.joined[1:], False)
    return first, first + pair_goes_on[first]


def _per_stage(schedule: Schedule, count: int | Sequence[int]) -> Ints:
    counts = np.full(schedule.stages, count) if isinstance(count, int) else np.array(count)
    if len(counts) != schedule.stages or counts.min(initial=0) < 0:
        raise ShapeError(
            f"an offload stands so many ops behind its forward, a reload ahead of its backward: one count of at least 0, or "
            f"one for each of the {schedule.stages} stages, not {count}"
        )
    return counts
