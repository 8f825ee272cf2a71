"""Weight backwards of a wide problem: they may run in their own order.

Arrays: ``prefer`` says, by slot, whose W is next; ``begun`` is the next slot of a rank; ``op_at`` the op at a place; ``ran``
the op whose W has run in a slot. One look, before the op at place 5::

    place    0   1   2   3   4   5          owes     0 0 1 0 1
    row      F0  F1  I0  F2  V0  I1         prefer   V        -> W of V0 runs, though that of I0 is owed longer
"""

from pipeplan.extensions.search.kernels.arrays import OF_SIZE, OF_WEIGHT, CandidateTiming, Decisions, FlatProblem
from pipeplan.extensions.search.kernels.host_kernel import free_at_once
from pipeplan.extensions.search.kernels.timing_kernel import next_owed, runs_before
from pipeplan.extensions.search.kernels.varied_kernel import varied_by
from pipeplan.foundation.kernels import inlined
from pipeplan.model import Ints


@inlined
def run_owed(
    problem: FlatProblem,
    decisions: Decisions,
    rank: int,
    place: int,
    room: float,
    arrival: float,
    again: float,
    timing: CandidateTiming,
) -> None:
    """Run the owed weight backwards that come before the op at a place.

    ``room`` is what the rank may hold then, ``arrival`` when the op's input is there, and ``again`` how long its R takes.
    """
    wide = timing.more
    share = len(timing.finish) // len(problem.rank)
    clock = timing.clock[rank]
    held = timing.held[rank]
    left = timing.left[rank]
    weights = 0
    while weights < timing.owed[rank]:
        # The W owed the longest, or the one that is preferred.
        slot = wide.begun[rank]
        pending = next_owed(timing.owes, timing.pending[rank])
        timing.pending[rank] = pending
        chosen = pending
        fills = True
        if len(decisions.prefer) > 0 and decisions.prefer[slot] != 0:
            fills = decisions.prefer[slot] > 0
            preferred = abs(decisions.prefer[slot]) - 1
            chosen = preferred_owed(decisions.order, timing.owes, pending, place, preferred)
        weight = decisions.order[chosen]
        ran = wide.op_at[chosen]
        time = problem.weight_time[weight] * varied_by(problem, OF_WEIGHT, ran)
        end = clock + time
        lacking = held > room
        if lacking and len(decisions.mode) > 0:
            lacking = held - free_at_once(problem, rank, max(clock, arrival), share, timing) > room
        if not runs_before(weights < decisions.forced[place], lacking, end, arrival - again if fills else -1.0):
            break
        # It runs.
        timing.owes[chosen] = 0
        wide.ran[slot] = ran
        clock = end
        held += problem.weight_growth[weight] * varied_by(problem, OF_SIZE, ran)
        left -= time
        weights += 1
        wide.begun[rank] += 1
    timing.owed[rank] -= weights
    timing.weights[place] = weights
    timing.clock[rank] = clock
    timing.held[rank] = held
    timing.left[rank] = left


def run_rest(problem: FlatProblem, decisions: Decisions, rank: int, timing: CandidateTiming) -> None:
    """Run the weight backwards that a rank still owes after its last op."""
    wide = timing.more
    stop = problem.offsets[rank + 1]
    # All of them run, so only their order is left to decide.
    for _ in range(timing.owed[rank]):
        slot = wide.begun[rank]
        chosen = next_owed(timing.owes, timing.pending[rank])
        timing.pending[rank] = chosen
        if len(decisions.prefer) > 0 and decisions.prefer[slot] != 0:
            chosen = preferred_owed(decisions.order, timing.owes, chosen, stop, abs(decisions.prefer[slot]) - 1)
        timing.owes[chosen] = 0
        ran = wide.op_at[chosen]
        wide.ran[slot] = ran
        timing.clock[rank] += problem.weight_time[decisions.order[chosen]] * varied_by(problem, OF_WEIGHT, ran)
        wide.begun[rank] += 1


@inlined
def preferred_owed(order: Ints, owes: Ints, pending: int, stop: int, op_class: int) -> int:
    """Return the place of a class's oldest owed I from ``pending`` to before ``stop``; of any class if it owes none."""
    # From the oldest owed I on, which is the one to fall back on.
    place = pending
    while place < stop and not (owes[place] == 1 and order[place] == op_class):
        place += 1
    return place if place < stop else next_owed(owes, pending)
