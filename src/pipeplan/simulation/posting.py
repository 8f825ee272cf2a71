"""Order in which sends and receives are posted, so that a pending receive does not delay sends that are ready.

A receive that is posted long before its message can come holds up its stream. The pass that inserts messages knows no times;
here, a run tells when each result leaves its rank, and messages are posted in that order. As their streams delay ops, the
order is then taken from a run with these messages, a few times over; the best order counts.
"""

from __future__ import annotations

from pipeplan.costs import Costs
from pipeplan.model import COMPUTE_KINDS, Ints, Kind, Schedule, among, crosses_ranks, dependencies
from pipeplan.simulation.simulator import simulate

ROUNDS = 2
"""Maximum number of runs from which an order of messages is taken."""


def post_messages(schedule: Schedule, costs: Costs) -> Schedule:
    """Return the schedule with a SEND and a RECV for each transfer, posted for these costs and their streams.

    A schedule that has messages, or needs none, is returned unchanged.
    """
    # Loaded where messages are posted: few simulations do.
    from pipeplan.passes import insert_communication, without_communication

    if schedule.has(Kind.SEND_F) or not crosses_ranks(schedule, dependencies(schedule).arrival).any():
        return schedule
    compute = without_communication(schedule)
    best = insert_communication(compute)
    least = simulate(best, costs, communication="streams").timeline.makespan
    computes = among(compute.columns.kind, COMPUTE_KINDS)
    ends = simulate(compute, costs).timeline.end
    for _ in range(ROUNDS):
        posted = insert_communication(compute, ends=ends)
        run = simulate(posted, costs, communication="streams").timeline
        if run.makespan < least:
            best, least = posted, run.makespan
        before, ends = ends, ends.copy()
        ends[computes] = run.end[among(posted.columns.kind, COMPUTE_KINDS)]
        if (ends == before).all():
            break
    return best


def post_in_order(schedule: Schedule, costs: Costs, delays: Ints) -> Schedule:
    """Return the schedule with messages in the order in which results leave their ranks, each delayed by some of them.

    ``delays`` are those of :func:`pipeplan.passes.insert_communication`, which counts ends of ops as steps.
    """
    from pipeplan.passes import insert_communication

    return insert_communication(schedule, delays=delays, ends=simulate(schedule, costs).timeline.end)
