"""The problem of a search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import Communication, Costs, Limits
from pipeplan.extensions.search.choices import USUAL, Choices
from pipeplan.foundation.errors import CostError, InfeasibleError, InputError, ShapeError
from pipeplan.foundation.readable import size_text
from pipeplan.model import (
    NOT_GIVEN,
    STAGE_WIDE_KINDS,
    Floats,
    Ints,
    Kind,
    MemoryRule,
    Objective,
    Placement,
    Schedule,
    Streams,
    Timeline,
    held_throughout,
    require_size,
    tolerances,
)
from pipeplan.passes import ShardingRule
from pipeplan.simulation import (
    Bound,
    Simulation,
    earliest_starts,
    lower_bound,
    pair_savings,
    post_in_order,
    post_messages,
    simulate,
    span_bound,
)

FEW_STAGES = 10
"""Number of stages of a rank up to which every subset of them is considered."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A scheduling problem: shape, costs, memory limits, and the objective.

    Attributes
    ----------
    placement, microbatches, costs
        The shape and the times.
    limits
        The memory limit of every rank; None where there is none.
    objective
        ``makespan``: from 0 to the last end. ``span``: the longest rank's own time from its first start to its last end,
        with what it loses before the one and after the other, which is the step time where the optimizer step needs no
        barrier. Ops start as soon as they can in both.
    choices
        Decisions that the search may make in addition to the order.
    communication
        Model of transfers, as in a simulation but for ``blocking``; with ``edge`` they delay their receiver and occupy no
        rank.
    slices
        Into how many parts every microbatch's sequence is cut.
    sharding
        Rule that places the collectives of sharded stages; None: there are none.

    Raises
    ------
    InputError
        For ``blocking`` communication.
    ShapeError
        For less than one microbatch or slice, more than can be planned, or as many microbatches as the copies of the model
        cannot share equally.
    CostError
        For costs of another number of stages, limits that are not one a rank, or in bytes where the costs hold none.
    InfeasibleError
        For a limit below what one microbatch alone needs; the message names the least feasible one.
    """

    placement: Placement
    microbatches: int
    costs: Costs
    limits: Limits | None = None
    objective: Objective = "makespan"
    choices: Choices = USUAL
    communication: Communication = "edge"
    slices: int = 1
    sharding: ShardingRule | None = None

    def __post_init__(self) -> None:
        if self.communication == "blocking":
            raise InputError(
                "a search does not support communication blocking: use streams, on which transfers run in order as with "
                "NCCL",
                field="communication",
            )
        copies = self.placement.copies
        require_size(stages=self.placement.stages, microbatches=self.microbatches, slices=self.slices)
        if self.microbatches % copies:
            raise ShapeError(
                f"{self.microbatches} microbatches cannot be divided equally among {copies} model copies",
                field="microbatches",
            )
        if self.costs.stages != self.placement.stages:
            raise CostError(
                f"the costs are for {self.costs.stages} stages, but the placement has {self.placement.stages}"
            )
        self.costs.require_microbatches(self.microbatches)
        if self.costs.unequal(self.slices):
            raise CostError(
                "a search needs slices that take equally long: leave out slice_attention, or set slices to 1",
                field="slice_attention",
            )
        if self.limits is not None:
            self._check_limits(self.limits)

    def _check_limits(self, limits: Limits) -> None:
        if len(limits.values) != self.placement.ranks:
            raise CostError(
                f"memory limit: {len(limits.values)} values for {self.placement.ranks} ranks", field="memory_limit"
            )
        if not limits.in_activations and not self.costs.memory.in_bytes:
            raise CostError(
                "a memory limit in bytes needs activation bytes; set them, or use a limit in activations",
                field="memory_limit",
            )
        short = np.flatnonzero(limits.values < self.least_limit * (1 - tolerances.MEMORY))
        if short.size:
            # Of several the one that needs the most: with one limit for all ranks, that is the least feasible one.
            rank = int(short[np.argmax(self.least_limit[short])])
            alike = len(set(limits.values.tolist())) == 1
            scope = "" if alike else f" of rank {rank}"
            others = short[short != rank].tolist()
            more = f" (also short: {', '.join(f'rank {other}' for other in others)})" if others and not alike else ""
            limit, needed = float(limits.values[rank]), float(self.least_limit[rank])
            if limits.in_activations:
                has, needs = f"{limit:.6g} activations", _at_least(needed)
            else:
                has, needs = size_text(limit), size_text(needed, up=True)
            raise InfeasibleError(
                f"rank {rank} may hold {has}, and one microbatch alone needs {needs} there: the least feasible "
                f"limit{scope}{more}",
                field="memory_limit",
            )

    @property
    def split_backward(self) -> bool:
        """True if a backward may be split into I and W, op by op."""
        return self.choices.split

    @cached_property
    def occupied(self) -> Costs:
        """Costs in which each op occupies its rank for its time and the overheads around it."""
        return self.costs.occupied(self.placement, self.slices)

    @cached_property
    def memory_limit(self) -> MemoryRule:
        """Memory of the stages and limits of the ranks, in the unit of the limits; infinite without limits.

        It is for orders of ops without collectives: limits are without what a rank holds throughout, and without the
        gradients of its stages and the parameters that it must hold at least; see :attr:`memory_rule`.
        """
        rule = self.memory_rule.with_gradients_reserved(self.placement)
        if rule.unit != "bytes" or not self.reserved.any():
            return rule
        return replace(rule, limit=rule.limit - self.reserved, parameters=NOT_GIVEN)

    @cached_property
    def memory_rule(self) -> MemoryRule:
        """Memory of the stages and limits of the ranks, for schedules with their collectives."""
        return self.costs.memory.rule(self.placement, self.limits)

    @cached_property
    def reserved(self) -> Floats:
        """Bytes of gathered parameters that each rank must have room for besides activations, shape (ranks,)."""
        sizes, table = self.costs.memory.parameters, self.placement.table
        if self.sharding is None or not sizes.any():
            return np.zeros(self.placement.ranks)
        # Overlapped ops may be of two stages.
        pairs = self.costs.has_pair_times and self.choices.overlap
        reserved = []
        for rank in range(self.placement.ranks):
            held = np.sort(np.concatenate([sizes[copy == rank] for copy in table]))[::-1]
            reserved.append(held[: max(self.sharding.resident(len(held)) + pairs, 1 + pairs)].sum())
        return np.array(reserved)

    @cached_property
    def _static(self) -> Floats:
        """Bytes that each rank holds throughout, shape (ranks,); gradients and reserved parameters count among them."""
        memory = self.costs.memory
        sizes = memory.static + memory.gradients if memory.gradients.any() else memory.static
        return held_throughout(self.placement, sizes) + self.reserved

    @cached_property
    def full_gains(self) -> NDArray[np.bool_]:
        """Stages on which a full backward can be better than its halves in sequence, shape (stages,).

        It can take less time, alone or overlapped with a forward, and where I adds to what is held it needs less memory.
        Elsewhere the halves can do all that it can.
        """
        costs, rule = self.occupied, self.memory_limit
        if not self.split_backward:
            return np.zeros(costs.stages, np.bool_)
        shorter = costs.backward < (costs.backward_input + costs.backward_weight) * (1 - tolerances.LAST_DIGITS)
        smaller = (rule.freed_by_weight > rule.activation * (1 + tolerances.LAST_DIGITS)) & bool(
            np.isfinite(rule.limit).any()
        )
        return shorter | smaller | self._gain_in_pairs(Kind.B)

    @cached_property
    def pairs_gain(self) -> bool:
        """True if some forward and some backward of a rank take less time overlapped than one after the other."""
        kinds = (Kind.I, Kind.B) if self.split_backward else (Kind.B,)
        return any(self._gain_in_pairs(kind).any() for kind in kinds)

    def _gain_in_pairs(self, kind: Kind) -> NDArray[np.bool_]:
        """Return the stages whose backward, B or I, gains where it overlaps with some forward of its rank."""
        costs, placement = self.occupied, self.placement
        gains = np.zeros(costs.stages, np.bool_)
        # The search pairs no ops of microbatches that differ.
        if not costs.has_pair_times or costs.factors is not None or not self.choices.overlap:
            return gains
        least = tolerances.LAST_DIGITS * (costs.forward.max() + costs.backward)
        for rank in range(placement.ranks):
            stages = np.unique(np.nonzero(placement.table == rank)[1])
            gains[stages] |= (pair_savings(costs, stages, kind) > least[stages]).any(axis=0)
        return gains

    @cached_property
    def least_limit(self) -> Floats:
        """The least feasible limit of every rank, shape (ranks,), in the unit of the limits.

        Microbatches one after the other, each with full backwards, need no more than one alone.
        """
        in_bytes = self.limits is not None and not self.limits.in_activations
        needs = least_held(self)
        return needs + self._static if in_bytes else needs

    @cached_property
    def bound(self) -> Bound:
        """A lower bound on the objective within the limits.

        Where microbatches may be recomputed or offloaded, memory says only how long ranks must recompute at least.
        """
        # A limit bounds less where memory can be freed in other ways: then the plain bound, and forced recomputation.
        limits = None if self.choices.frees_memory else self.limits
        shape = (self.placement, self.microbatches, self._costs_of_bound)
        if self.objective == "makespan":
            sharded = self.sharding is not None
            lower = lower_bound(*shape, slices=self.slices, limits=limits, gathered=sharded, reduced=sharded)
        else:
            lower = span_bound(*shape, slices=self.slices, limits=limits)
        return max(lower, self._bound_of_recomputing, key=lambda bound: bound.value)

    @property
    def _bound_of_recomputing(self) -> Bound:
        """Bound by the work of the busiest rank, with the recomputation that its limit forces."""
        costs, share = self.occupied, self.microbatches // self.placement.copies
        least = np.minimum(costs.backward_input + costs.backward_weight, costs.backward)
        per_microbatch = costs.forward + (least if self.split_backward else costs.backward)
        forced = forced_recomputation(self) if self.limits is not None else np.zeros(self.placement.ranks)
        if not forced.any() or costs.factors is not None or (costs.has_pair_times and self.choices.overlap):
            return Bound(0.0, "")
        work = forced + sum(np.bincount(ranks, per_microbatch, self.placement.ranks) for ranks in self.placement.table)
        head = earliest_starts(self.placement, costs, slices=self.slices) if self.objective == "makespan" else 0.0
        ends = head + share * work
        rank = int(ends.argmax())
        return Bound(float(ends[rank]), f"the work of rank {rank} with the recomputation that its memory limit forces")

    @property
    def _costs_of_bound(self) -> Costs:
        """Costs of the bound: without pairs unless ops may overlap; all of a backward that may not be split is in I."""
        costs = self.occupied if self.choices.overlap else replace(self.occupied, overlap=None, segments=None)
        return costs if self.split_backward else costs.unsplit()

    @property
    def is_judged(self) -> bool:
        """True if schedules hold more than a candidate describes, on which the objective depends: messages, collectives."""
        return self.holds_messages or self.sharding is not None

    @property
    def holds_messages(self) -> bool:
        """True if schedules hold sends and receives, which run in order on streams."""
        return self.communication == "streams"

    def as_planned(self) -> Problem:
        """Return the problem of orders of ops alone: without messages and collectives."""
        plan = replace(self, communication="edge") if self.holds_messages else self
        if self.sharding is None:
            return plan
        limits, memory = self.limits, self.costs.memory
        if limits is not None and not limits.in_activations:
            held = held_throughout(self.placement, memory.gradients) if memory.gradients.any() else 0.0
            limits = Limits(limits.values - self.reserved - held, in_activations=False)
        memory = replace(memory, parameters=NOT_GIVEN, gradients=NOT_GIVEN)
        costs = replace(plan.costs, unshard=None, reduce=None, memory=memory)
        return replace(plan, sharding=None, limits=limits, costs=costs)

    @property
    def streams(self) -> Streams | None:
        """Communication streams on which transfers run in order; None if they do not."""
        return self.costs.streams if self.communication == "streams" else None

    def with_messages(self, schedule: Schedule, delays: Ints | None = None) -> Schedule:
        """Return the schedule with sends and receives, if the model of transfers needs them.

        ``delays`` are those of :func:`pipeplan.simulation.post_in_order`; a schedule that has messages keeps them.
        """
        if not self.holds_messages or schedule.has(Kind.SEND_F):
            return schedule
        if delays is None:
            return post_messages(schedule, self.costs)
        return post_in_order(schedule, self.costs, delays)

    def with_collectives(self, schedule: Schedule) -> Schedule:
        """Return the schedule with the collectives of its rule; one that has some keeps them."""
        if self.sharding is None or not schedule.kinds.isdisjoint(STAGE_WIDE_KINDS):
            return schedule
        return self.sharding(schedule)

    def completed(self, schedule: Schedule) -> Schedule:
        """Return the schedule as it is simulated: with messages, and with collectives."""
        return self.with_messages(self.with_collectives(schedule))

    def sharded(self, schedule: Schedule) -> Schedule:
        """Return the schedule as it is simulated if stages are sharded, else as it is."""
        return schedule if self.sharding is None else self.completed(schedule)

    def simulated(self, schedule: Schedule) -> Simulation:
        """Return the simulation of the schedule, with transfers as in the run."""
        completed = self.completed(schedule)
        return simulate(completed, self.costs, communication=self.communication, limits=self.limits)

    def judge(self, schedule: Schedule) -> float:
        """Return the objective of a schedule with its messages and collectives; infinite if it does not fit with these.

        Raises what :func:`pipeplan.simulation.simulate` does.
        """
        simulation = self.simulated(schedule)
        fits = self.sharding is None or self.fits(simulation)
        return self.value(simulation.timeline) if fits else np.inf

    def fits(self, simulation: Simulation) -> bool:
        """Return whether every rank is within its limit, with its collectives."""
        return self.limits is None or not self.limits.exceeded(simulation.memory).any()

    def value(self, timeline: Timeline) -> float:
        """Return the objective of a timeline."""
        return timeline.makespan if self.objective == "makespan" else timeline.longest_span


def _at_least(size: float) -> str:
    """Return a size in as few digits, from six on, as still name one that is not smaller."""
    return next(
        text for digits in (6, 9, 12, 17) if float(text := f"{size:.{digits}g}") >= size * (1 - tolerances.MEMORY)
    )


def least_held(problem: Problem) -> Floats:
    """Return the least memory of each rank with one microbatch alone, shape (ranks,), in the unit of the limits.

    It passes through all the stages of a rank before the first of its backwards there. Each of them then holds all of the
    activation, what a recomputation starts from, or what an offload leaves; before its backward it holds all again.
    """
    rule, choices = problem.memory_limit, problem.choices
    rests = [rule.activation]
    if choices.recompute:
        rests.append(rule.recompute_keeps)
    if choices.offload:
        rests.append(rule.activation - rule.offloaded)
    rest = np.minimum.reduce(rests)
    # Microbatches that differ: that of the largest on each rank, of those of each copy of the model.
    factors = rule.factors if rule.factors.size else np.ones((problem.placement.stages, 1))
    copy_of = problem.placement.copy_of(np.arange(problem.microbatches, dtype=np.int32), problem.microbatches)
    needs = np.zeros(problem.placement.ranks)
    for copy, ranks in enumerate(problem.placement.table):
        mine = factors[:, copy_of == copy] if rule.factors.size else factors
        held = np.zeros((problem.placement.ranks, mine.shape[1]))
        for stage, rank in enumerate(ranks):
            needs[rank] = max(needs[rank], (held[rank] + rule.activation[stage] * mine[stage]).max())
            held[rank] += rest[stage] * mine[stage]
    return needs


def forced_recomputation(problem: Problem) -> Floats:
    """Return the least time that each rank must recompute for one microbatch of each copy, shape (ranks,).

    Before the first of its backwards on a rank a microbatch holds something of every stage there. What may not all be kept
    is recomputed, where nothing else is allowed: the cheapest stages that make room enough.
    """
    placement, rule, choices = problem.placement, problem.memory_limit, problem.choices
    forced = np.zeros(placement.ranks)
    if not choices.recompute or choices.offload:
        return forced
    for ranks in placement.table:
        for rank in range(placement.ranks):
            stages = np.flatnonzero(ranks == rank)
            excess = rule.activation[stages].sum() - rule.limit[rank] * (1 + tolerances.MEMORY)
            if excess > 0:
                freed = (rule.activation - rule.recompute_keeps)[stages]
                forced[rank] += _least_time(
                    problem.occupied.recompute[stages], freed, float(excess), whole=problem.slices == 1
                )
    return forced


def _least_time(times: Floats, freed: Floats, excess: float, *, whole: bool) -> float:
    """Return the least time of stages that free so much together; of many stages the last may count in part.

    So it may where sequences are cut: some slices of a stage are recomputed then, and some are not.
    """
    if whole and len(times) <= FEW_STAGES:
        sets = (list(one) for size in range(len(times) + 1) for one in combinations(range(len(times)), size))
        return min((float(times[one].sum()) for one in sets if freed[one].sum() >= excess), default=0.0)
    order = np.argsort(times / np.maximum(freed, tolerances.LAST_DIGITS))
    missing = np.clip(excess - np.concatenate(([0.0], np.cumsum(freed[order])[:-1])), 0.0, freed[order])
    parts = np.divide(missing, freed[order], out=np.zeros(len(order)), where=missing > 0)
    return float((parts * times[order]).sum())
