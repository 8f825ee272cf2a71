"""Activation offload as ops: copy what a forward keeps to the host, and back before its backward.

Where the two ops stand says what is held: an OFFLOAD frees its rank's memory where it stands, and its rank waits there for
the end of the copy, which begins right behind the forward; a RELOAD takes the memory where it stands, and its copy begins
there. So an OFFLOAD stands some ops behind its forward and a RELOAD some ops ahead of its backward, as many as it takes to
copy: then copies hide behind compute. Wan, Qi, Huang, Lin, Li, PipeOffload: Improving Scalability of Pipeline Parallelism
with Memory Optimization, ICML 2025.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import ShapeError
from pipeplan.model import COMPUTE_KINDS, HOST_KINDS, Ints, Kind, Schedule, among, concatenate, ops
from pipeplan.passes.chosen import Saved, chosen_backwards


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
    """A count for every stage."""
    counts = np.full(schedule.stages, count) if isinstance(count, int) else np.array(count)
    if len(counts) != schedule.stages or counts.min(initial=0) < 0:
        raise ShapeError(
            f"an offload stands so many ops behind its forward, a reload ahead of its backward: one count of at least 0, or "
            f"one for each of the {schedule.stages} stages, not {count}"
        )
    return counts
