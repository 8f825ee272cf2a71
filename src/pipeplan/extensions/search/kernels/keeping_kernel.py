"""Choice of the microbatches to keep, so that an order fits into memory: a first answer, rank by rank, regardless of times.

Arrays: ``until`` has the place of each forward's backward; ``held_by`` the forwards that the rank keeps at this place;
``done`` counts the ops of each class so far; ``decisions.mode`` is written. One step, at a forward that does not fit::

    row      F0 F1 F2 . I0 . I1 . I2       at F2 the rank holds 0 and 1, and may hold two
    held for 4 places: 0, 6: 1, 6: 2       1 is held the longest of those kept: it is recomputed or offloaded
"""

from __future__ import annotations

from typing import Annotated

from pipeplan.extensions.search.kernels.arrays import KEPT, OFFLOADED, RECOMPUTED, Decisions, FlatProblem
from pipeplan.extensions.search.kernels.row_kernel import mirrored
from pipeplan.foundation.kernels import inlined
from pipeplan.model import Floats, Ints


def keep_what_fits(
    problem: FlatProblem,
    copying: Annotated[Floats, "ranks"],
    decisions: Decisions,
    until: Annotated[Ints, "mode > 0"],
    done: Annotated[Ints, "classes"],
    held_by: Annotated[Ints, "mode"],
) -> bool:
    """Recompute or offload as few microbatches as the order needs to fit; false if it cannot fit.

    Where an op does not fit, the microbatch is dropped that would be held the longest from there on, weighted by the memory
    it frees and divided by the time of its R or copy (Belady's rule of 1966, with a price). ``copying`` is the time that
    each rank's link may be busy with copies to the host: while it lasts microbatches are offloaded, if that is allowed, and
    then recomputed. Ws are assumed to have run.

    Parameters
    ----------
    until
        Scratch for the place of each forward's backward.
    done
        Scratch for the number of ops of a class that have run.
    held_by
        Scratch for the forwards that a rank keeps.
    """
    for op_class in range(len(problem.rank)):
        done[op_class] = 0
    for op in range(len(decisions.mode)):
        decisions.mode[op] = KEPT
        decisions.lead[op] = 0
    # Until when each microbatch is held: the place of its backward.
    for place in range(len(decisions.order)):
        op_class = decisions.order[place]
        if op_class % 2 == 1:
            until[problem.first[op_class - 1] + mirrored(done[op_class], problem.slices)] = place
        done[op_class] += 1
    for op_class in range(len(problem.rank)):
        done[op_class] = 0
    for rank in range(len(problem.work)):
        if not keep_on_rank(problem, rank, copying[rank], decisions, until, done, held_by):
            return False
    return True


def keep_on_rank(
    problem: FlatProblem, rank: int, copying: float, decisions: Decisions, until: Ints, done: Ints, held_by: Ints
) -> bool:
    """Choose the modes of one rank's microbatches; false if its row cannot fit."""
    more = problem.more
    share = len(decisions.mode) // len(problem.rank)
    held = 0.0
    kept = 0
    for place in range(problem.offsets[rank], problem.offsets[rank + 1]):
        op_class = decisions.order[place]
        index = done[op_class]
        done[op_class] += 1
        # What the op needs: all that a forward takes; for a backward what was given away comes back first.
        if op_class % 2 == 0:
            op = problem.first[op_class] + index
            need = problem.growth[op_class]
            held_by[kept] = op
            kept += 1
        else:
            op = problem.first[op_class - 1] + mirrored(index, problem.slices)
            need = max(problem.growth[op_class], 0.0)
            if decisions.mode[op] == KEPT:
                kept = forget(held_by, kept, op)
            else:
                need += freed_by(problem, op_class - 1, decisions.mode[op])
        # Drop one microbatch after the other until it fits.
        while held + need > problem.limit[rank]:
            chosen = -1
            mode = OFFLOADED if more.modes[OFFLOADED] == 1 and copying > 0 else RECOMPUTED
            if more.modes[mode] == 0:
                return False
            best = -1.0
            for slot in range(kept):
                other = held_by[slot]
                other_class = other // share
                # A forward that is offloaded takes all of its memory first.
                if other == op and mode == OFFLOADED:
                    continue
                price = more.copying[other_class] if mode == OFFLOADED else more.recomputing[other_class]
                score = (until[other] - place) * freed_by(problem, other_class, mode) / max(price, 1e-300)
                if score > best:
                    best = score
                    chosen = other
            if best <= 0:
                if mode == RECOMPUTED or more.modes[RECOMPUTED] == 0:
                    return False
                # Nothing is left to be offloaded: what comes now may be recomputed.
                copying = 0.0
                continue
            kept = forget(held_by, kept, chosen)
            decisions.mode[chosen] = mode
            if mode == OFFLOADED:
                copying -= more.copying[chosen // share]
            if chosen == op:
                need = more.recompute_keeps[op_class]
            else:
                held -= freed_by(problem, chosen // share, mode)
        # The op has run: a forward holds what it needed, a backward frees what was left of its microbatch.
        if op_class % 2 == 0:
            held += need
        elif decisions.mode[op] == KEPT:
            held -= problem.growth[op_class - 1]
        else:
            held -= problem.growth[op_class - 1] - freed_by(problem, op_class - 1, decisions.mode[op])
    return True


@inlined
def freed_by(problem: FlatProblem, op_class: int, mode: int) -> float:
    """Return how much less a forward's microbatch holds than if it were kept."""
    offloaded: float = problem.more.offloaded[op_class]
    recomputed: float = problem.growth[op_class] - problem.more.recompute_keeps[op_class]
    return offloaded if mode == OFFLOADED else recomputed


@inlined
def forget(held_by: Ints, kept: int, op: int) -> int:
    """Remove a forward from those that are kept, and return how many are left."""
    for slot in range(kept):
        if held_by[slot] == op:
            held_by[slot] = held_by[kept - 1]
            return kept - 1
    return kept
