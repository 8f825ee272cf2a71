"""Lower bounds on the makespan and the span of every schedule of a placement, whatever the order of its ops.

Take any set of ops of one rank. They run one after the other. The first cannot start before its *head*, the shortest chain
of ops and transfers that leads to it; after the last, at least its *tail* follows. Each microbatch has its own times, heads
and tails, whatever their order. So the makespan is at least::

    |-- least head --|------- work of the set -------|-- least tail --|

The largest such sum over all sets is the preemptive one-machine bound (Carlier, "The one-machine sequencing problem",
European Journal of Operational Research 11, 1982); every rank has one. The longest chain of a single microbatch is another
bound. :func:`large_microbatch_bounds` adds those of large microbatches, :mod:`~pipeplan.simulation.memory_bounds` and
:mod:`~pipeplan.simulation.round_trips` those of a memory limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

import numpy as np

from pipeplan.costs import Costs, Limits
from pipeplan.model import Floats, Kind, Placement, held_throughout, tolerances
from pipeplan.simulation.op_classes import (
    FORWARD,
    INPUT,
    WEIGHT,
    RankClasses,
    alike_microbatches,
    classes_of,
    op_classes,
    rank_classes,
)

if TYPE_CHECKING:
    from pipeplan.simulation.windows import RoundTrips


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound.

    Attributes
    ----------
    value
        The bound in the unit of the costs.
    reason
        Description of its origin, such as ``the work of rank 0``.
    round_trips
        The windows of time that it adds up, if it comes from round trips that a memory limit keeps apart; else None.
    """

    value: float
    reason: str
    round_trips: RoundTrips | None = None

    def gap_of(self, value: float) -> float:
        """Return ``value / bound - 1``; 0 if the two differ by rounding alone."""
        gap = value / self.value - 1
        return 0.0 if abs(gap) <= tolerances.ROUNDING else gap


def lower_bound(
    placement: Placement,
    microbatches: int,
    costs: Costs,
    *,
    slices: int = 1,
    limits: Limits | None = None,
    recomputed: Sequence[int] = (),
    gathered: bool = False,
    reduced: bool = False,
) -> Bound:
    """Return a lower bound on the makespan of every schedule of a placement, with split or full backwards in any order.

    Parameters
    ----------
    placement, microbatches, costs, slices
        The schedules that the bound holds for.
    limits
        Memory limits; the bound then holds for schedules that stay within them and recompute nothing.
    recomputed
        Stages on which all microbatches are recomputed; the bound then holds for schedules that do so.
    gathered
        True if every rank gathers the parameters of each of its stages before it computes on it.
    reduced
        True if every rank reduces the gradients of each of its stages after the last weight gradient.
    """
    # What ops lose between each other occupies their ranks, so it counts as work.
    costs = costs.occupied(placement, slices)
    if gathered and limits is not None:
        limits = _beside_parameters(placement, costs, limits)
    ways = rank_classes(placement, microbatches, costs, slices)
    if len(recomputed):
        times = costs.times(Kind.R) / slices
        times[np.setdiff1d(np.arange(placement.stages), recomputed)] = 0.0
        least = costs.first_slice(Kind.I, slices) if costs.unequal(slices) else np.ones(placement.stages)
        ways = [[_recomputing(rank, times, least) for rank in classes] for classes in ways]
    groups = alike_microbatches(placement, microbatches, costs)
    chains = (classes_of(placement, costs, group, slices) for group in groups)
    longest = max(float((chain.head + chain.time + chain.tail).max()) for chain in chains)
    bounds = [Bound(longest, "the chain of one microbatch through all stages")]
    bounds += [
        Bound(_one_machine(rank), f"the work of rank {number}")
        for classes in ways
        for number, rank in enumerate(classes)
    ]
    bounds += [
        Bound(value, f"microbatch {large}, which every other one delays or follows on rank {rank}")
        for value, large, rank in large_microbatch_bounds(placement, costs, slices)
    ]
    for classes in ways:
        bounds += _under_limits(placement, costs, limits, classes, slices, onward=True)
        if not len(recomputed):
            bounds += _alone_first(costs, classes, slices, onward=True)
    best = max(bounds, key=attrgetter("value"))
    nothing = np.zeros(placement.stages)
    unshard = costs.unshard if gathered and costs.unshard is not None else nothing
    reduce = costs.reduce if reduced and costs.reduce is not None else nothing
    return _between_collectives(best, placement, unshard, reduce) if unshard.any() or reduce.any() else best


def _beside_parameters(placement: Placement, costs: Costs, limits: Limits) -> Limits:
    """Return the limits of ranks less the parameters of their smallest stage, which they hold whenever they compute."""
    parameters = costs.memory.parameters
    if limits.in_activations or not parameters.any():
        return limits
    least = np.full(placement.ranks, np.inf)
    for copy in placement.table:
        np.minimum.at(least, copy, parameters)
    return replace(limits, values=limits.values - least)


def _between_collectives(bound: Bound, placement: Placement, unshard: Floats, reduce: Floats) -> Bound:
    """Return the bound with collectives of these times, shape (stages,), from one for the ops that compute.

    Every microbatch begins with a forward of the first stage, which needs its parameters; so all ops that compute start that
    much later. The op that ends last is a weight gradient, and the reduction of its stage follows. All collectives of a rank
    share a stream.
    """
    first, last = float(unshard[0]), float(reduce.min())
    sides = [words for time, words in ((first, "behind the first UNSHARD"), (last, "before a REDUCE_GRAD")) if time]
    between = Bound(first + bound.value + last, ", ".join([bound.reason, *sides]))
    load = held_throughout(placement, unshard + reduce)
    busiest = int(load.argmax())
    return max(between, Bound(float(load[busiest]), f"the collectives of rank {busiest}"), key=attrgetter("value"))


def span_bound(
    placement: Placement, microbatches: int, costs: Costs, *, slices: int = 1, limits: Limits | None = None
) -> Bound:
    """Return a lower bound on the longest span (:attr:`Timeline.spans`) of every schedule; see :func:`lower_bound`."""
    bounds = []
    for way_of_saving in rank_classes(placement, microbatches, costs, slices):
        classes = [rank.since_start() for rank in way_of_saving]
        for number, rank in enumerate(classes):
            # A span contains all work of its rank, and the way of each microbatch from the rank's F to its W.
            bounds.append(Bound(float(rank.work.sum()), f"the work of rank {number}"))
            way = float((rank.head[WEIGHT] + rank.time[WEIGHT] - rank.head[FORWARD]).max())
            bounds.append(Bound(way, f"the way of one microbatch from rank {number} and back"))
        bounds += _under_limits(placement, costs, limits, classes, slices, onward=False)
        bounds += _alone_first(costs, classes, slices, onward=False)
    return max(bounds, key=attrgetter("value"))


def earliest_starts(placement: Placement, costs: Costs, *, slices: int = 1) -> Floats:
    """Return the earliest time at which a microbatch can reach each rank, shape (ranks,)."""
    earliest = np.full(placement.ranks, np.inf)
    # If microbatches differ: no microbatch is earlier than one that is the smallest on every stage.
    least = costs.uniform(np.min)
    for copy in range(placement.copies):
        np.minimum.at(earliest, placement.table[copy], op_classes(placement, least, copy, slices).head[FORWARD])
    return earliest


def _recomputing(rank: RankClasses, times: Floats, least: Floats) -> RankClasses:
    """Return the classes with a fourth row: R, after F and before I, with its ``times`` as of :meth:`Costs.times`.

    ``least`` is the smallest factor of a slice on the mean time of F or I, shape (stages,).
    """
    time = times[rank.stage, np.minimum(rank.microbatch, times.shape[1] - 1)]
    return replace(
        rank,
        head=np.vstack((rank.head, rank.head[FORWARD] + rank.time[FORWARD] * least[rank.stage])),
        time=np.vstack((rank.time, time)),
        tail=np.vstack((rank.tail, rank.time[INPUT] * least[rank.stage] + rank.tail[INPUT])),
        work=np.vstack((rank.work, rank.count * time)),
    )


def _one_machine(rank: RankClasses) -> float:
    """Return the largest (least head + work + least tail) over all sets of classes.

    It equals the length of Jackson's preemptive schedule, which always runs the ready op of the longest tail (Carlier 1982,
    proposition 1), so that no set is enumerated.
    """
    classes = np.stack((rank.head, rank.work, rank.tail), axis=-1).reshape(-1, 3).tolist()
    clock = end = 0.0
    ready: list[tuple[float, float]] = []
    # Each class is released at its head. Until the next release, the longest tails run.
    for head, work, tail in sorted(classes, key=itemgetter(0)):
        while ready and clock < head:
            shortest, left = heappop(ready)
            done = min(left, head - clock)
            clock += done
            if done < left:
                heappush(ready, (shortest, left - done))
            else:
                end = max(end, clock - shortest)
        clock = max(clock, head)
        heappush(ready, (-tail, work))
    # Everything is released: the rest runs by its tails.
    while ready:
        shortest, left = heappop(ready)
        clock += left
        end = max(end, clock - shortest)
    return end


def _under_limits(
    placement: Placement,
    costs: Costs,
    limits: Limits | None,
    classes: list[RankClasses],
    slices: int,
    *,
    onward: bool,
) -> Iterator[Bound]:
    """Yield the bounds that each rank's memory limit adds; with ``onward`` on the makespan, else on the rank's span."""
    if limits is None or costs.unequal(slices):
        return
    # Loaded for the first limit: most simulations have none.
    from pipeplan.simulation.memory_bounds import held_area, idle_ends, rank_memory
    from pipeplan.simulation.round_trips import round_trips

    # Longest time of an op of each class on its stage or any later one, for the microbatch that takes the least.
    least = np.full((placement.stages, 3), np.inf)
    for rank in classes:
        np.minimum.at(least, rank.stage, rank.time[:3].T)
    slowest: Floats = np.maximum.accumulate(least.T[:, ::-1], axis=1)[:, ::-1]
    pairs = costs.has_pair_times
    for number, memory in enumerate(rank_memory(placement, costs, limits, classes, slices)):
        rank = classes[number]
        before = rank.first_head if onward else 0.0
        yield Bound(before + held_area(rank, memory), f"what rank {number} must hold, under its memory limit")
        trips = round_trips(number, rank, memory, slowest, slices=slices, onward=onward, pairs=pairs)
        if trips is not None:
            yield Bound(before + trips.length, trips.reason, trips)
        yield Bound(
            before + idle_ends(rank, memory, onward=onward, pairs=pairs),
            f"the work of rank {number}, which idles at both ends under its memory limit",
        )


def _alone_first(costs: Costs, classes: list[RankClasses], slices: int, *, onward: bool) -> Iterator[Bound]:
    """Yield the bounds of ranks whose ops may overlap: until its first backward, a rank runs forwards alone."""
    if not costs.has_pair_times or costs.unequal(slices):
        return
    from pipeplan.simulation.memory_bounds import RankMemory, idle_ends

    for number, rank in enumerate(classes):
        nothing = np.zeros(len(rank.stage))
        length = idle_ends(rank, RankMemory(np.inf, nothing, nothing), onward=onward, pairs=True)
        before = rank.first_head if onward else 0.0
        yield Bound(before + length, f"the work of rank {number}, whose first forwards run alone")


_LARGE = 16
"""Maximum number of large microbatches that are looked at: those with the longest chains."""


def large_microbatch_bounds(placement: Placement, costs: Costs, slices: int = 1) -> Iterator[tuple[float, int, int]]:
    """Yield lower bounds on the makespan from one large microbatch g, with g and the rank to which its way leads.

    The way of g are its forwards on all stages, and its Is back to the first stage of a rank. Let another microbatch j be
    *ahead* at an op of this way if it runs its own such op before g does. Ops of one kind and stage run on one rank, one
    after the other:

    - If j is ahead from the first forward on, that forward of j delays g.
    - If j is behind at one op of the way, and ahead at the next one and ever after, its first of these two ops runs between
      those two of g, and delays g on its way.
    - If j is behind at the last op of the way, it runs its I and its W on that stage after g has run its own I::

        rank    F of g    F of j ...        ... I of g | W of g  I of j  W of j

    So each microbatch adds at least the shortest of its ops along the way, or its I and W at the end, whichever is less::

        makespan >= way of g + I and W of g + sum over j of min(least op of j along the way, I and W of j)

    The delays of several microbatches add up, because each runs between two ops of g on one rank, or before the first. There
    are no bounds for microbatches that are alike, sliced sequences, and several copies of the model.

    Parameters
    ----------
    costs
        Costs that include what ops lose between each other.
    """
    if costs.factors is None or placement.copies > 1 or slices > 1 or costs.has_pair_times:
        return
    chains = [op_classes(placement, costs.of_microbatch(number)) for number in range(costs.factors.microbatches)]
    lengths = np.array([float((chain.head + chain.time + chain.tail).max()) for chain in chains])
    times = np.stack([chain.time for chain in chains])
    # A message of any other microbatch may be shorter than that of g.
    hops = np.where(placement.crosses[0], costs.transfer_times()[:-1].min(axis=1), 0.0)
    forwards = times[:, FORWARD].min(axis=1)
    large = np.argsort(-lengths, kind="stable")[:_LARGE]
    for rank in range(placement.ranks):
        stage = min(placement.stages_on(rank))
        along = np.minimum(forwards, times[:, INPUT, stage + 1 :].min(axis=1, initial=np.inf))
        end = times[:, INPUT, stage] + times[:, WEIGHT, stage]
        way = times[:, FORWARD].sum(axis=1) + times[:, INPUT, stage + 1 :].sum(axis=1) + hops.sum() + hops[stage:].sum()
        added = np.minimum(along, end)
        values = way + end + added.sum() - added
        for microbatch in large.tolist():
            yield float(values[microbatch]), microbatch, rank
