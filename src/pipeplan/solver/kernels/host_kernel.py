"""Copies to the host's memory and back: where OFFLOADs and RELOADs stand, and when their copies end.

One copy at a time each way. The copy to the host begins when its forward has ended; the OFFLOAD's place, where the memory
becomes free and the rank waits for the copy's end, is as late as it may be: before the first op that does not fit without.
A RELOAD stands so many places ahead of its backward as is decided, or where its memory first fits behind that.
"""

from pipeplan.kernels import inlined
from pipeplan.solver.kernels.arrays import OFFLOADED, CandidateTiming, Decisions, FlatProblem
from pipeplan.solver.kernels.slice_kernel import mirrored


@inlined
def queue_copy(problem: FlatProblem, rank: int, op_class: int, op: int, end: float, timing: CandidateTiming) -> None:
    """Begin the copy of a forward that ends now, or as soon as the link is free."""
    wide = timing.more
    wide.out_free[rank] = max(wide.out_free[rank], end) + problem.more.copying[op_class]
    wide.copied[op] = wide.out_free[rank]
    wide.returned[op] = -1.0
    wide.gone[op] = 0
    wide.queue[wide.queued[rank]] = op
    wide.queued[rank] += 1


@inlined
def free_at_once(problem: FlatProblem, rank: int, clock: float, share: int, timing: CandidateTiming) -> float:
    """How much becomes free without a wait: by OFFLOADs whose copies have ended by ``clock``."""
    wide = timing.more
    free = 0.0
    for slot in range(wide.left_in[rank], wide.queued[rank]):
        op = wide.queue[slot]
        if wide.copied[op] > clock:
            break
        free += problem.more.offloaded[op // share]
    return free


@inlined
def place_offload(rank: int, timing: CandidateTiming) -> int:
    """Give the oldest OFFLOAD that has none its place, and return its forward."""
    wide = timing.more
    op: int = wide.queue[wide.left_in[rank]]
    wide.left_in[rank] += 1
    wide.gone[op] = 1
    return op


@inlined
def fetch(
    problem: FlatProblem,
    decisions: Decisions,
    rank: int,
    place: int,
    last: int,
    count: int,
    room: float,
    clock: float,
    timing: CandidateTiming,
) -> float:
    """Give RELOADs their place before the op at a place, and return what they take.

    Those of the backwards up to the place ``last`` must have it now, and ``room`` is what is left beside them; of the others
    as many as are due and fit. With a ``count`` of at least 0 it is as many, and no other.
    """
    wide = timing.more
    taken = 0.0
    number = 0
    ahead = wide.ahead[rank]
    while ahead < problem.offsets[rank + 1] and number != count:
        op_class = decisions.order[ahead]
        if op_class % 2 == 1:
            which = mirrored(wide.looked[op_class], problem.slices)
            op = problem.first[op_class - 1] + which
            if decisions.mode[op] == OFFLOADED:
                size = problem.more.offloaded[op_class - 1]
                if count < 0 and ahead > last:
                    if ahead - decisions.lead[op] > place or timing.done[op_class - 1] <= which:
                        break
                    if wide.gone[op] == 0 or size > room:
                        break
                    room -= size
                wide.in_free[rank] = max(wide.in_free[rank], clock) + problem.more.copying[op_class - 1]
                wide.returned[op] = wide.in_free[rank]
                taken += size
                number += 1
            wide.looked[op_class] += 1
        ahead += 1
    wide.ahead[rank] = ahead
    wide.reloads[place] = number
    return taken
