"""Copies to the host's memory and back: where OFFLOADs and RELOADs are, and when their copies end.

Arrays: ``queue`` holds the forwards to be copied out, rank after rank; ``queued`` is its end and ``left_in`` the first one
whose OFFLOAD has no place yet; ``copied`` and ``returned`` are the ends of the copies; ``out_free`` and ``in_free`` are when
the links are free; ``ahead`` is the first place without a RELOAD. ``arrays`` has the shapes. One microbatch on a rank::

    rank   F0 ...... OFFLOAD0 F4 ..... RELOAD0 ... I0      OFFLOAD0 is late: before F4, which does not fit without
    out       [copy 0]                                     begins when F0 has ended and the link is free
    in                                        [copy 0]     begins at RELOAD0; I0 waits for its end

One copy at a time each way. The copy to the host begins when its forward has ended; the OFFLOAD's place, where the memory
becomes free and the rank waits for the copy's end, is as late as it may be: before the first op that does not fit without.
A RELOAD is as many places ahead of its backward as is decided, or where its memory first fits after that.
"""

from pipeplan.extensions.search.kernels.arrays import OF_SIZE, OFFLOADED, CandidateTiming, Decisions, FlatProblem
from pipeplan.extensions.search.kernels.row_kernel import mirrored
from pipeplan.extensions.search.kernels.varied_kernel import has_run, op_index, varied_by
from pipeplan.foundation.kernels import inlined


@inlined
def queue_copy(problem: FlatProblem, rank: int, op_class: int, op: int, end: float, timing: CandidateTiming) -> None:
    """Start the copy of a forward that ends now, or as soon as the link is free."""
    wide = timing.more
    copying = problem.more.copying[op_class] * varied_by(problem, OF_SIZE, op)
    # It is copied behind those before it, and is last in the queue of those that leave.
    wide.out_free[rank] = max(wide.out_free[rank], end) + copying
    wide.copied[op] = wide.out_free[rank]
    wide.returned[op] = -1.0
    wide.gone[op] = 0
    wide.queue[wide.queued[rank]] = op
    wide.queued[rank] += 1


@inlined
def free_at_once(problem: FlatProblem, rank: int, clock: float, share: int, timing: CandidateTiming) -> float:
    """Return the memory that OFFLOADs free without a wait: those whose copies have ended by ``clock``."""
    wide = timing.more
    free = 0.0
    for slot in range(wide.left_in[rank], wide.queued[rank]):
        op = wide.queue[slot]
        if wide.copied[op] > clock:
            break
        free += problem.more.offloaded[op // share] * varied_by(problem, OF_SIZE, op)
    return free


@inlined
def fetch(
    problem: FlatProblem,
    decisions: Decisions,
    rank: int,
    place: int,
    last: int,
    room: float,
    timing: CandidateTiming,
) -> float:
    """Place RELOADs before the op at a place, and return the memory that they take.

    Those of the backwards up to the place ``last`` must have it now, and ``room`` is the memory left then; of the others
    as many as are due and fit.
    """
    wide = timing.more
    taken = 0.0
    number = 0
    ahead = wide.ahead[rank]
    # Look along the row for backwards of offloaded microbatches, from where the last look has ended.
    while ahead < problem.offsets[rank + 1]:
        op_class = decisions.order[ahead]
        if op_class % 2 == 1:
            index = op_index(decisions.turn, problem.first[op_class], wide.looked[op_class], problem.slices)
            op = problem.first[op_class - 1] + mirrored(index, problem.slices)
            if decisions.mode[op] == OFFLOADED:
                factor = varied_by(problem, OF_SIZE, op)
                size = problem.more.offloaded[op_class - 1] * factor
                # Not needed yet: it comes back if its lead has begun, its copy out has ended, and it fits.
                if ahead > last:
                    if ahead - decisions.lead[op] > place or not has_run(problem, op_class - 1, op, timing):
                        break
                    if wide.gone[op] == 0 or size > room:
                        break
                    room -= size
                # The copy begins when the rank is there and the link is free.
                copying = problem.more.copying[op_class - 1] * factor
                wide.in_free[rank] = max(wide.in_free[rank], timing.clock[rank]) + copying
                wide.returned[op] = wide.in_free[rank]
                taken += size
                number += 1
            wide.looked[op_class] += 1
        ahead += 1
    wide.ahead[rank] = ahead
    wide.reloads[place] = number
    return taken


@inlined
def make_room(problem: FlatProblem, rank: int, place: int, room: float, fetched: int, timing: CandidateTiming) -> None:
    """Place OFFLOADs before the op at a place: until it fits, and the forward that it fetches back, if any, is away."""
    wide = timing.more
    share = len(timing.finish) // len(problem.rank)
    offloads = 0
    # The oldest first, as copies run in their order; the rank waits for the end of each.
    while wide.left_in[rank] < wide.queued[rank]:
        is_away = fetched < 0 or wide.gone[fetched] == 1
        if timing.held[rank] <= room and is_away:
            break
        away = wide.queue[wide.left_in[rank]]
        wide.left_in[rank] += 1
        wide.gone[away] = 1
        timing.clock[rank] = max(timing.clock[rank], wide.copied[away])
        timing.held[rank] -= problem.more.offloaded[away // share] * varied_by(problem, OF_SIZE, away)
        offloads += 1
    wide.offloads[place] = offloads
