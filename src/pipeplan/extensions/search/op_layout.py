"""A problem's ops as classes and positions, and the problem as the kernels' arrays."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pipeplan.extensions.search.kernels.arrays import (
    NO_WIDE_TIMING,
    CandidateTiming,
    FlatProblem,
    WideProblem,
    WideTiming,
)
from pipeplan.extensions.search.problem import Problem
from pipeplan.model import Bools, Floats, Ints, Kind, source_of, tolerances

NO_TURNS: Ints = np.empty(0, np.int64)
"""Turns of microbatches that are alike: the k-th has the k-th turn."""


class OpLayout:
    """The classes and positions of a problem's ops, and the problem as the kernels' arrays.

    Parameters
    ----------
    problem
        Problem to lay out.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        placement = problem.placement
        self.stages = placement.stages
        self.share = problem.microbatches // placement.copies * problem.slices
        self.rank_of = np.repeat(placement.table.ravel(), 2).astype(np.int64)
        self.stage_of = np.tile(np.repeat(np.arange(self.stages), 2), placement.copies)
        self.is_forward = np.arange(len(self.rank_of)) % 2 == 0
        self.weight_time = class_times(self)[1]
        self.offsets = np.concatenate(([0], np.cumsum(np.bincount(self.rank_of) * self.share))).astype(np.int64)

    @property
    def classes(self) -> int:
        """Number of classes: F and backward of every stage of every copy."""
        return len(self.rank_of)

    @property
    def positions(self) -> int:
        """Number of forwards and backwards of all ranks."""
        return int(self.offsets[-1])

    @property
    def copies(self) -> int:
        """Number of copies of the model that the ranks hold."""
        return self.problem.placement.copies

    @cached_property
    def topological(self) -> list[int]:
        """Classes in the order in which a microbatch passes through them, copy after copy."""
        down = np.arange(0, 2 * self.stages, 2)
        once = np.concatenate((down, down[::-1] + 1))
        passes: list[int] = (np.arange(self.copies)[:, None] * 2 * self.stages + once).ravel().tolist()
        return passes

    @cached_property
    def total_times(self) -> Floats:
        """Least duration of an op of each class, its weight backward included; shape (classes,)."""
        halves = class_times(self)[0] + np.maximum(self.weight_time, 0.0)
        full = mean_of(self, self.problem.occupied.times(Kind.B)) / self.problem.slices
        return np.where(self.is_forward, halves, np.minimum(halves, full))

    @property
    def varies(self) -> bool:
        """True if microbatches differ, so that candidates say which of them has which turn."""
        return self.problem.costs.factors is not None

    @property
    def overlaps(self) -> bool:
        """True if some forward and some backward take less time overlapped than one after the other."""
        return self.problem.pairs_gain

    @cached_property
    def may_run_full(self) -> bool:
        """True if a full backward can be better than its halves on some stage."""
        return bool(self.problem.full_gains.any())

    @property
    def has_pairs(self) -> bool:
        """True if a candidate may hold overlapped pairs or full backwards, which the shorter kernels leave out."""
        return self.overlaps or self.may_run_full

    @cached_property
    def decides_weight(self) -> bool:
        """True if the owed Ws of a rank differ in duration, or in the memory that they free."""
        problem = self.problem
        if not (problem.choices.weight_order and problem.split_backward):
            return False
        of_weights = [self.weight_time[~self.is_forward]]
        if np.isfinite(problem.memory_limit.limit).any():
            of_weights.append(problem.memory_limit.freed_by_weight[self.stage_of[~self.is_forward]])
        ranks = self.rank_of[~self.is_forward]
        return any(len(np.unique(values[ranks == rank])) > 1 for values in of_weights for rank in np.unique(ranks))

    @cached_property
    def decides_mode(self) -> bool:
        """True if recomputation or offload is decided, and memory is limited."""
        problem = self.problem
        return problem.choices.frees_memory and bool(np.isfinite(problem.memory_limit.limit).any())

    @cached_property
    def is_wide(self) -> bool:
        """True if candidates are timed by ``wide_kernel``, which models more and is slower."""
        problem = self.problem
        modelled = problem.communication == "contended" or problem.slices > 1
        return modelled or self.varies or self.decides_weight or self.decides_mode

    @cached_property
    def flat(self) -> FlatProblem:
        """Problem as the kernels take it."""
        return flatten(self)

    @property
    def turns(self) -> int:
        """Number of microbatches of each copy: the turns of a class."""
        return self.share // self.problem.slices

    def indices(self, order: Ints, turn: Ints = NO_TURNS) -> Ints:
        """Return the index of each op of a row within its class; the k-th is that of the copy's k-th microbatch.

        If microbatches differ, it is that of the microbatch whose ``turn`` it is (:class:`Decisions`).
        """
        sorted_ = np.argsort(order, kind="stable")
        counts = np.bincount(order, minlength=self.classes)
        first = np.concatenate(([0], np.cumsum(counts)))[order[sorted_]]
        index = np.empty(len(order), np.int64)
        index[sorted_] = np.arange(len(order)) - first
        if turn.size:
            part = index % self.problem.slices
            index = turn[order * self.turns + index // self.problem.slices] * self.problem.slices + part
        return index

    def microbatch_of(self, op_class: Ints, index: Ints) -> Ints:
        """Return the microbatch of each op, given its class and index."""
        slices = self.problem.slices
        return index // slices + op_class // (2 * self.stages) * (self.share // slices)

    def slice_of(self, op_class: Ints, index: Ints) -> Ints:
        """Return the slice of each op, given its class and index."""
        slices = self.problem.slices
        return np.where(self.is_forward[op_class], index % slices, slices - 1 - index % slices)

    def forward_of(self, op_class: Ints, index: Ints) -> Ints:
        """Return the number of the forward of each op's microbatch and slice on its stage, given its class and index."""
        slices, backward = self.problem.slices, op_class % 2
        turned = index // slices * slices + slices - 1 - index % slices
        return (op_class - backward) * self.share + np.where(backward == 1, turned, index)

    def empty_timing(self) -> CandidateTiming:
        """Return empty arrays for the timing of a candidate."""
        return empty_timing(self)


def flatten(layout: OpLayout) -> FlatProblem:
    """Return the problem as the kernels take it."""
    problem = layout.problem
    source = sources(layout)
    # At most one class waits for a class: forwards lead to the next stage, backwards to the one before.
    follower, consumer = np.full((2, layout.classes), -1)
    follower[source[source >= 0]] = np.flatnonzero(source >= 0)
    crosses = (source >= 0) & (layout.rank_of[source] != layout.rank_of)
    consumer[source[crosses]] = layout.rank_of[crosses]
    time, weight_time = class_times(layout)
    # An op takes and frees in proportion to the size of its microbatch; what it owes a W frees only then.
    size = mean_size(layout) / problem.slices
    held = problem.memory_limit.activation[layout.stage_of] * size
    kept = problem.memory_limit.freed_by_weight[layout.stage_of] * size * problem.split_backward
    growth = np.where(layout.is_forward, held, kept - held)
    freed = problem.memory_limit.activation[layout.stage_of] * mean_size(layout) / problem.slices
    full = mean_of(layout, problem.occupied.times(Kind.B)) / problem.slices
    full_time = np.where(layout.is_forward, time, full)
    # The result of a forward crosses to the next stage, that of a backward comes from there.
    before = np.maximum(layout.stage_of - layout.is_forward, 0)
    delay = mean_of(layout, problem.occupied.transfer_times(problem.slices), before)
    # Where ops overlap, a rank can be done sooner than its ops take one by one: its remaining work then bounds nothing.
    work = np.bincount(layout.rank_of, weights=layout.share * layout.total_times)
    pairs, partner, partners = pair_tables(layout)
    limit = problem.memory_limit.limit
    flat = FlatProblem(
        offsets=layout.offsets,
        work=np.zeros_like(work) if layout.overlaps else work.astype(np.float64),
        limit=limit + tolerances.SEARCHED_MEMORY * np.maximum(np.where(np.isfinite(limit), limit, 0.0), 1.0),
        rank=layout.rank_of,
        time=time,
        growth=growth,
        source=source,
        delay=np.where(crosses, delay, 0.0),
        follower=follower,
        consumer=consumer,
        first=np.arange(layout.classes) * layout.share,
        weight_time=weight_time,
        weight_growth=-kept,
        full_time=full_time,
        full_growth=np.where(layout.is_forward, growth, -freed),
        pairs=pairs,
        partner=partner,
        partners=partners,
        slices=problem.slices,
        wide=int(layout.is_wide),
        more=_flat_more(layout.classes),
    )
    return flat._replace(more=_widen(layout, flat, crosses)) if layout.is_wide else flat


def sources(layout: OpLayout) -> Ints:
    """Return the class that each class waits for, -1 for none; shape (classes,)."""
    waits_for = np.full((layout.copies, layout.stages, 2), -1, np.int64)
    first = 2 * layout.stages * np.arange(layout.copies)
    for stage in range(layout.stages):
        for backward, kind in enumerate((Kind.F, Kind.I)):
            if (source := source_of(kind, stage, layout.stages)) is not None:
                waits_for[:, stage, backward] = first + 2 * source[1] + (source[0] is Kind.I)
    return waits_for.ravel()


def class_times(layout: OpLayout) -> tuple[Floats, Floats]:
    """Return the duration of each class and that of its W, below 0 if it has none; shape (classes,) each."""
    problem = layout.problem
    costs, split = problem.occupied, problem.split_backward
    forward, backward, weight = (
        mean_of(layout, costs.times(kind)) for kind in (Kind.F, Kind.I if split else Kind.B, Kind.W)
    )
    times = np.where(layout.is_forward, forward, backward) / problem.slices
    return times, np.where(layout.is_forward | (not split), -1.0, weight / problem.slices)


def pair_tables(layout: OpLayout) -> tuple[Floats, Ints, int]:
    """Return ``pairs``, ``partner`` and ``partners`` of :class:`FlatProblem`."""
    problem, costs = layout.problem, layout.problem.occupied
    partner = np.zeros(layout.classes, np.int64)
    if not layout.overlaps:
        return np.zeros(0), partner, 0
    partners = int(np.bincount(layout.rank_of[~layout.is_forward]).max())
    pairs = np.zeros((layout.classes // 2, partners, 2))
    partner[layout.is_forward] = 2 * partners * np.arange(layout.classes // 2)
    for rank in range(problem.placement.ranks):
        here = np.flatnonzero((layout.rank_of == rank) & layout.is_forward)
        partner[here + 1] = 2 * np.arange(len(here))
        stage = layout.stage_of[here]
        half, full = (
            costs.pair_times(stage[:, None], stage[None, :], times[None, stage], inputs)
            for times, inputs in ((costs.backward_input, True), (costs.backward, False))
        )
        pairs[here // 2, : len(here), 0] = half if problem.split_backward else full
        pairs[here // 2, : len(here), 1] = full
    return pairs.ravel() / problem.slices, partner, partners


def by_turn(layout: OpLayout, table: Floats, stage: Ints | None = None) -> Floats:
    """Return values by stage and microbatch as values by class and microbatch of its copy, shape (classes, turns).

    ``stage`` is the row of each class, by default its own stage. A table with one column is for all microbatches.
    """
    stage = layout.stage_of if stage is None else stage
    if table.shape[1] == 1:
        return table[stage]
    copy = np.arange(layout.classes) // (2 * layout.stages)
    microbatch = copy[:, None] * layout.turns + np.arange(layout.turns)
    values: Floats = table[stage[:, None], microbatch]
    return values


def mean_of(layout: OpLayout, table: Floats, stage: Ints | None = None) -> Floats:
    """Return the mean of each class over the microbatches of its copy, shape (classes,); see :func:`by_turn`."""
    values = by_turn(layout, table, stage)
    mean: Floats = values[:, 0] if values.shape[1] == 1 else values.mean(axis=1)
    return mean


def sizes(problem: Problem) -> Floats:
    """Return the factors of microbatches on memory, shape (stages, microbatches); one column of 1 if they are alike."""
    factors = problem.memory_limit.factors
    return factors if factors.size else np.ones((problem.placement.stages, 1))


def mean_size(layout: OpLayout) -> Floats:
    """Return the mean factor on memory of each class, shape (classes,)."""
    return mean_of(layout, sizes(layout.problem))


def _flat_more(classes: int) -> WideProblem:
    """Return what a wide problem has in addition, for one that is not wide."""
    recomputing, recompute_keeps, copying, offloaded, sending = np.zeros((5, classes))
    link, modes = np.full(classes, -1), np.zeros(3, np.int64)
    return WideProblem(recomputing, recompute_keeps, copying, offloaded, sending, link, modes, varied=np.zeros(0))


def _widen(layout: OpLayout, flat: FlatProblem, crosses: Bools) -> WideProblem:
    problem, stage = layout.problem, layout.stage_of
    sending, link = np.zeros(layout.classes), np.full(layout.classes, -1)
    sending[flat.source[crosses]] = flat.delay[crosses]
    if problem.communication == "contended":
        ends = layout.rank_of[flat.source[crosses]] * problem.placement.ranks + layout.rank_of[crosses]
        link[flat.source[crosses]] = np.unique(ends, return_inverse=True)[1]
    nothing = np.zeros(layout.classes)
    choices, slices = problem.choices, problem.slices
    size = mean_size(layout) / slices
    copying = problem.occupied.require_offload()[stage] * size if choices.offload else nothing
    return WideProblem(
        recomputing=mean_of(layout, problem.occupied.times(Kind.R)) / slices,
        recompute_keeps=problem.memory_limit.recompute_keeps[stage] * size if layout.decides_mode else nothing,
        copying=copying,
        offloaded=problem.memory_limit.offloaded[stage] * size if layout.decides_mode else nothing,
        sending=sending,
        link=link,
        modes=np.array([1, choices.recompute, choices.offload], np.int64),
        varied=_varied(layout) if layout.varies else np.zeros(0),
    )


def _varied(layout: OpLayout) -> Floats:
    """Return the factors of ops on the means of their classes, as the kernel takes them."""
    problem, costs = layout.problem, layout.problem.occupied
    backward = costs.times(Kind.I if problem.split_backward else Kind.B)
    of_op = np.where(layout.is_forward[:, None], by_turn(layout, costs.times(Kind.F)), by_turn(layout, backward))
    # What a forward sends crosses to the next stage, what a backward sends to the stage before.
    across = np.maximum(layout.stage_of - ~layout.is_forward, 0)
    sections = [
        of_op,
        *(by_turn(layout, costs.times(kind)) for kind in (Kind.W, Kind.R, Kind.B)),
        by_turn(layout, sizes(problem)),
        by_turn(layout, costs.transfer_times(problem.slices), across),
    ]
    means = [values.mean(axis=1, keepdims=True) for values in sections]
    factors = [
        np.divide(values, mean, out=np.ones_like(values), where=mean > 0)
        for values, mean in zip(sections, means, strict=True)
    ]
    return np.concatenate([np.repeat(values, problem.slices, axis=1).ravel() for values in factors])


def empty_timing(layout: OpLayout) -> CandidateTiming:
    """Return empty arrays for the timing of a candidate."""
    ranks, classes, positions = len(layout.offsets) - 1, layout.classes, layout.positions
    cursor, pending, owed, stack = np.zeros((4, ranks), np.int64)
    clock, held, left, begin = np.zeros((4, ranks))
    done, waiting = np.zeros((2, classes), np.int64)
    finish = np.zeros(positions)
    weights, owes, waited, position = np.zeros((4, positions), np.int64)
    more = _empty_wide_timing(layout) if layout.is_wide else NO_WIDE_TIMING
    by_rank = (cursor, pending, owed, clock, held, left, begin, stack)
    return CandidateTiming(*by_rank, done, waiting, finish, weights, owes, waited, position, more)


def _empty_wide_timing(layout: OpLayout) -> WideTiming:
    ranks, positions = len(layout.offsets) - 1, layout.positions
    begun, queued, left_in, ahead = np.zeros((4, ranks), np.int64)
    out_free, in_free = np.zeros((2, ranks))
    looked, link_free = np.zeros(layout.classes, np.int64), np.zeros(layout.classes)
    ran, op_at, queue, offloads, reloads, gone = np.zeros((6, positions), np.int64)
    copied, returned = np.zeros((2, positions))
    by_rank = (begun, queued, left_in, ahead, out_free, in_free)
    return WideTiming(*by_rank, looked, link_free, ran, op_at, queue, offloads, reloads, copied, returned, gone)
