"""The simulator: compute a timeline, and the memory over it, from a schedule and costs.

Every rank runs its row in order. An op starts when its rank is free and its inputs have arrived. Communication has four
levels:

``edge``
    A transfer delays the op that needs it, and occupies no rank.
``contended``
    As ``edge``, but a link (one per pair of ranks and direction) carries one transfer at a time, in the order in which the
    sender finished the data.
``streams``
    SEND and RECV run in order on communication streams beside the computation, as PyTorch and NCCL run them. The schedule
    must contain them. A rank posts each when it comes to it in its row, and goes on. A transfer begins when both ends are
    posted, and both are first on their streams; so a pending receive delays the sends behind it. An op waits until its RECV
    has ended; no op waits for a SEND, except those such as WAIT_SEND_F.
``blocking``
    SEND and RECV occupy their ranks and start together. The schedule must contain them.

Each rank has a link to its host and one back. Each carries one copy at a time, in the order of the row. The copy of an
OFFLOAD begins when its forward has freed the rank; at the OFFLOAD's place in the row, the rank waits until it has ended.
The copy of a RELOAD begins when the rank comes to it; the rank goes on, and the backward waits until it has ended. Copies
occupy no compute and delay no transfers.

Each rank has a stream for the collectives of its data-parallel group, which run in the order of the row. An UNSHARD or
REDUCE_GRAD begins when the rank has come to it and the one before has ended; the rank goes on. An op that computes waits
until the UNSHARD of its stage has ended, WAIT_REDUCE_GRAD until the REDUCE_GRAD has. Collectives occupy no compute and delay
no transfers. If none takes time, no op waits for any.

Overhead (:class:`~pipeplan.costs.Overhead`) occupies the rank before and after an op. The timeline shows the op itself,
from the start of its computation to its end.

Not modelled: changing clock rates, transfers that slow each other down across links, slow first steps, ranks that share the
bus to their host. The same input always results in exactly the same times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Communication, Costs, Limits
from pipeplan.foundation.errors import CostError
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import (
    COMPUTE_KINDS,
    HOST_KINDS,
    NONE,
    STAGE_WIDE_KINDS,
    WEIGHT_KINDS,
    Bools,
    Dependencies,
    Floats,
    Kind,
    MemoryUse,
    Schedule,
    Streams,
    Timeline,
    among,
    dependencies,
    gathered_levels,
    gradient_levels,
    held_throughout,
    in_activations,
    memory_levels,
)
from pipeplan.simulation.bounds import Bound, lower_bound
from pipeplan.simulation.runnable import (
    deadlock,
    empty_times,
    message_partners,
    message_times,
    require_messages,
    require_runnable,
    rows_of,
    spans_with_collectives,
)
from pipeplan.simulation.timing_kernel import Arrivals, Transfers, time_ops, time_ops_blocking

_TIME_OPS = Kernel(time_ops)
_TIME_OPS_BLOCKING = Kernel(time_ops_blocking)


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated timeline with its memory, a lower bound and the optimality gap.

    Attributes
    ----------
    timeline
        Start and end of every op.
    costs
        Costs of the simulation. Under ``blocking`` communication, the transfer includes the overhead of a message.
    limits
        Memory limits of the ranks that the bound holds for; None: it holds for any memory. Times do not depend on them.
    """

    timeline: Timeline
    costs: Costs
    limits: Limits | None = None

    @property
    def schedule(self) -> Schedule:
        """Return the simulated schedule."""
        return self.timeline.schedule

    @cached_property
    def memory(self) -> MemoryUse:
        """Return the memory that each rank holds after each op."""
        return memory_use(self.schedule, self.costs)

    @cached_property
    def bound(self) -> Bound:
        """Return a lower bound on the makespan of any schedule of this placement and these costs within the limits.

        If the schedule recomputes or offloads, the bound is for all schedules that recompute the same stages, and ignores
        the limits: such schedules hold less memory. If it gathers parameters or reduces gradients, it is for all schedules
        that do.
        """
        schedule = self.schedule
        recomputes = schedule.has(Kind.R)
        keeps_everything = not recomputes and schedule.kinds.isdisjoint(HOST_KINDS)
        return lower_bound(
            schedule.placement,
            schedule.microbatches,
            self.costs,
            slices=schedule.slices,
            limits=self.limits if keeps_everything else None,
            recomputed=recomputed_stages(schedule) if recomputes else (),
            gathered=schedule.has(Kind.UNSHARD),
            reduced=reduces_all(schedule),
        )

    @property
    def gap(self) -> float:
        """Return the optimality gap ``makespan / bound - 1``; negative only for a schedule that exceeds the limits."""
        return self.timeline.makespan / self.bound.value - 1


def reduces_all(schedule: Schedule) -> bool:
    """Return True if every rank reduces the gradients of each of its stages after the last weight gradient."""
    if not schedule.has(Kind.REDUCE_GRAD):
        return False
    stage = schedule.rank.astype(np.int64) * schedule.stages + schedule.columns.stage
    weights, reductions = schedule.where(*WEIGHT_KINDS), schedule.where(Kind.REDUCE_GRAD)
    last = np.full((2, schedule.ranks * schedule.stages), -1)
    for row, ops in zip(last, (weights, reductions), strict=True):
        row[stage[ops]] = ops  # the last of several is assigned last
    return bool((last[1] >= last[0]).all())


def recomputed_stages(schedule: Schedule) -> list[int]:
    """Return the stages on which every microbatch is recomputed."""
    counts = np.bincount(schedule.columns.stage[schedule.where(Kind.R)], minlength=schedule.stages)
    every: list[int] = np.flatnonzero(counts == schedule.microbatches * schedule.slices).tolist()
    return every


def simulate(
    schedule: Schedule,
    costs: Costs,
    *,
    communication: Communication = "edge",
    streams: Streams | None = None,
    limits: Limits | None = None,
    factors: Floats | None = None,
) -> Simulation:
    """Simulate a schedule.

    Parameters
    ----------
    schedule, costs
        The schedule to run, and its op times.
    communication
        Model of transfers between ranks: ``edge``, ``contended``, ``streams`` or ``blocking``; see
        :mod:`pipeplan.simulation.simulator`.
    streams
        Communication streams under ``streams``: one per ``rank``, one per ``direction`` (activations and gradients), or one
        per ``edge`` (pair of sending and receiving rank). Default: those of the costs.
    limits
        Memory limits for the bound of the result. A schedule that exceeds them is simulated all the same.
    factors
        Factor on the time of each op, shape (ops,).

    Raises
    ------
    CostError
        If the costs are for another number of stages, an op takes no time, or the schedule offloads and the costs do not
        tell how long a copy takes.
    InvalidScheduleError
        If an op needs something that is not in the schedule, comes later on the same rank, or is on another rank and not
        sent; under ``blocking`` and ``streams``, if a transfer between ranks has no SEND and RECV.
    DeadlockError
        If ranks wait for each other; ``pipeplan check`` spells out the cycle.
    """
    durations = costs.durations(schedule)
    if factors is not None:
        durations = durations * factors
    if communication == "blocking":
        costs = costs.meeting()
        timeline = _blocking(schedule, costs, durations)
    elif communication == "streams":
        from pipeplan.simulation.streams import time_on_streams

        costs = replace(costs, communication="streams", streams=streams or costs.streams)
        timeline = time_on_streams(schedule, costs, durations)
    else:
        timeline = _unblocked(schedule, costs, durations, contended=communication == "contended")
    return Simulation(timeline, costs, limits)


def _unblocked(schedule: Schedule, costs: Costs, durations: Floats, *, contended: bool) -> Timeline:
    """Time the compute ops and copies, then place the schedule's communication ops between them."""
    collectives = costs.times_collectives(schedule)
    timed_kinds = (*COMPUTE_KINDS, *HOST_KINDS, *(STAGE_WIDE_KINDS if collectives else ()))
    if schedule.kinds.issubset(timed_kinds):
        timeline, _ = _time_compute(schedule, costs, durations, contended=contended)
        return timeline
    timed = among(schedule.columns.kind, timed_kinds)
    needs = dependencies(schedule)
    require_runnable(schedule, needs)
    compute, arrival = _time_compute(schedule.keep(timed), costs, durations[timed], contended=contended)
    if not contended:
        arrival = arrival + costs.delays(compute.schedule)
    start, end = _beside_compute(schedule, needs, timed, (compute.start, compute.end, arrival))
    return Timeline(schedule, start, end, costs.time_unit, occupied=compute.spans)


def _time_compute(schedule: Schedule, costs: Costs, durations: Floats, *, contended: bool) -> tuple[Timeline, Floats]:
    """Return the timeline of a schedule without messages, and the time at which each result leaves its rank.

    If transfers are ``contended``, it is the time at which the result reaches the other rank.
    """
    # Copies and collectives may take no time, ops that compute may not.
    only_computes = schedule.kinds.issubset(COMPUTE_KINDS)
    shortest = durations if only_computes else np.where(among(schedule.columns.kind, COMPUTE_KINDS), durations, np.inf)
    if len(shortest) and shortest.min() <= 0:
        raise CostError(f"{schedule.place(int(shortest.argmin()))} takes no time")
    occupied = durations
    if costs.overhead.between_ops:
        before, behind = costs.lost(schedule)
        occupied = before + durations + behind
    needs = dependencies(schedule)
    require_runnable(schedule, needs)
    source = needs.crossing
    delay = np.array([costs.transfer.time(schedule.slices)]) if costs.factors is None else costs.delays(schedule)
    link = _link_numbers(schedule, source) if contended else _NO_LINKS
    collectives = costs.times_collectives(schedule)
    rows = rows_of(schedule, needs, occupied, collectives=collectives)
    transfers = Transfers(source, np.ascontiguousarray(delay, np.float64), link)
    times, arrivals = empty_times(schedule), _empty_arrivals(schedule, link)
    start, end, arrival = times.start, times.end, arrivals.arrival
    done = _TIME_OPS((rows, transfers), (times, arrivals))
    if done < len(schedule):
        raise deadlock(schedule, end, source)
    timeline = Timeline(schedule, start, end, costs.time_unit)
    if collectives:
        timeline = replace(timeline, occupied=spans_with_collectives(timeline))
    if costs.overhead.between_ops:
        timeline = replace(timeline, start=start + before, end=end - behind, occupied=timeline.spans)
    # A result that no op needs does not take its link.
    return timeline, np.maximum(arrival, end) if contended else end


_NO_LINKS = np.empty(0, np.int32)


def _link_numbers(schedule: Schedule, source: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the number of the link that each op's result takes to another rank; -1 for none."""
    crosses = np.flatnonzero(source >= 0)
    senders = source[crosses]
    link = np.full(len(schedule), NONE, np.int32)
    # A link has a number for each pair of sender and receiver that occurs.
    ends = schedule.rank[senders] * schedule.ranks + schedule.rank[crosses]
    link[senders] = np.unique(ends, return_inverse=True)[1]
    return link


def _empty_arrivals(schedule: Schedule, link: NDArray[np.int32]) -> Arrivals:
    """Return the kernel's arrivals and waiting ranks before the first op."""
    return Arrivals(
        arrival=np.full(len(link), -1.0),
        link_free=np.zeros(len(link)),
        waiter=np.full(len(schedule), -1, np.int64),
        next_waiter=np.full(schedule.ranks, -1, np.int64),
    )


def _beside_compute(
    schedule: Schedule, needs: Dependencies, timed: Bools, times: tuple[Floats, Floats, Floats]
) -> tuple[Floats, Floats]:
    """Return times of all ops: a SEND at the end of its op, a RECV from there to the arrival, others without duration."""
    position = np.concatenate(([0], np.cumsum(timed)))[:-1]
    all_start, all_end = np.zeros(len(schedule)), np.zeros(len(schedule))
    all_start[timed], all_end[timed], arrival = times
    compute = among(schedule.columns.kind, COMPUTE_KINDS)
    done = np.concatenate(([0], np.cumsum(compute)))
    others = np.flatnonzero(~timed)
    earlier = others[done[others] > done[schedule.offsets[schedule.rank[others]]]]
    all_start[earlier] = all_end[earlier] = all_end[compute][done[earlier] - 1]
    sends = schedule.where(Kind.SEND_F, Kind.SEND_B)
    all_start[sends] = all_end[sends] = all_end[needs.own_stage[sends]]
    receives = schedule.where(Kind.RECV_F, Kind.RECV_B)
    producers = needs.own_stage[needs.arrival[receives]]
    all_start[receives] = all_end[producers]
    all_end[receives] = arrival[position[producers]]
    return all_start, all_end


def _blocking(schedule: Schedule, costs: Costs, durations: Floats) -> Timeline:
    """Time a schedule whose sends and receives occupy their ranks."""
    needs = dependencies(schedule)
    require_runnable(schedule, needs)
    require_messages(schedule, needs, "blocking")
    # Both ends of a message last as long as its transfer.
    partner = message_partners(schedule, needs)
    messages = partner >= 0
    durations[messages] = message_times(schedule, costs, partner)[messages]
    gap, _ = costs.lost(schedule)
    collectives = costs.times_collectives(schedule)
    inputs = (
        rows_of(schedule, needs, gap + durations, collectives=collectives),
        partner,
        schedule.rank,
    )
    times = empty_times(schedule)
    start, end = times.start, times.end
    done = _TIME_OPS_BLOCKING(inputs, (times, np.zeros(schedule.ranks, np.int64)))
    if done < len(schedule):
        raise deadlock(schedule, end, partner)
    timeline = Timeline(schedule, start, end, costs.time_unit)
    if collectives:
        timeline = replace(timeline, occupied=spans_with_collectives(timeline))
    return replace(timeline, start=start + gap, occupied=timeline.spans) if costs.overhead.op_gap else timeline


def memory_use(schedule: Schedule, costs: Costs) -> MemoryUse:
    """Return the memory that each rank holds after each op, in activations, and in bytes if the costs contain them.

    It depends on the order of ops alone, because ops of one rank never pass each other.
    """
    memory, placement = costs.memory, schedule.placement
    sizes = memory.activation, memory.freed_by_weight, memory.recompute_keeps, memory.offloaded
    in_bytes = memory_levels(schedule, *sizes, factors=memory.factors) if memory.in_bytes else None
    parameters = None
    if memory.parameters.any() and schedule.has(Kind.UNSHARD):
        parameters = gathered_levels(schedule, memory.parameters)
        in_bytes = None if in_bytes is None else in_bytes + parameters
    allocated = None
    if memory.gradients.any() and in_bytes is not None:
        gradients, allocated = gradient_levels(schedule, memory.gradients)
        in_bytes += gradients
    return MemoryUse(
        schedule,
        memory_levels(schedule, *in_activations(placement, *sizes), factors=memory.factors),
        in_bytes,
        held_throughout(placement, memory.static),
        parameters,
        allocated,
    )


def step_time(timeline: Timeline, costs: Costs, *, barrier: bool = True) -> float:
    """Return the time of a training step in the unit of the costs: its ops, and the fixed time after them.

    Parameters
    ----------
    timeline, costs
        Timeline of the step's ops, and the costs with its ``step_time``.
    barrier
        True if ranks wait for each other at the end of the step, for example to clip gradients by their global norm. Without
        a barrier (post-validation: Qi, Wan, Huang, Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024, section 4) each rank
        starts the next step when it is done, and the longest span counts.
    """
    return (timeline.makespan if barrier else timeline.longest_span) + costs.overhead.step_time
