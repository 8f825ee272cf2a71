"""A candidate of the search as arrays, to and from schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from pipeplan.kernels import Kernel
from pipeplan.model import BACKWARD_KINDS, NO_GROUP, Columns, Floats, Ints, Kind, Schedule, ops, source_of, tolerances
from pipeplan.solver.kernels.arrays import SEARCH_COMPILES_AFTER, Change, Decisions, FlatProblem, Target, Timing
from pipeplan.solver.kernels.timing_kernel import INFEASIBLE, evaluate
from pipeplan.solver.problem import Problem

_EVALUATE = Kernel(evaluate, SEARCH_COMPILES_AFTER)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """What is decided, arrays of shape (positions,), and its value: infinite where it deadlocks or does not fit."""

    decisions: Decisions
    value: float

    @property
    def order(self) -> Ints:
        """The classes by position."""
        return self.decisions.order

    def copy(self) -> Candidate:
        """The same on arrays of its own."""
        return Candidate(Decisions(*(array.copy() for array in self.decisions)), self.value)


class Encoder:
    """Turns a problem into the kernel's arrays, schedules into candidates, and candidates into schedules."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        placement = problem.placement
        self.stages = placement.stages
        self.share = problem.microbatches // placement.copies
        self.rank_of = np.repeat(placement.table.ravel(), 2).astype(np.int64)
        self.stage_of = np.tile(np.repeat(np.arange(self.stages), 2), placement.copies)
        self.is_forward = np.arange(len(self.rank_of)) % 2 == 0
        self.weight_time = self._times()[1]
        self.offsets = np.concatenate(([0], np.cumsum(np.bincount(self.rank_of) * self.share))).astype(np.int64)

    @property
    def classes(self) -> int:
        """How many classes of ops there are: F and backward of every stage of every copy."""
        return len(self.rank_of)

    @property
    def positions(self) -> int:
        """How many forwards and backwards all ranks together run."""
        return int(self.offsets[-1])

    @property
    def copies(self) -> int:
        """How many copies of the model the ranks hold."""
        return self.problem.placement.copies

    @cached_property
    def topological(self) -> list[int]:
        """The classes in the order in which a microbatch passes through them, copy after copy."""
        down = np.arange(0, 2 * self.stages, 2)
        once = np.concatenate((down, down[::-1] + 1))
        passes: list[int] = (np.arange(self.copies)[:, None] * 2 * self.stages + once).ravel().tolist()
        return passes

    @cached_property
    def total_times(self) -> Floats:
        """How long each class takes at least for one microbatch, the weight backward with it, shape (classes,)."""
        halves = self._times()[0] + np.maximum(self.weight_time, 0.0)
        return np.where(self.is_forward, halves, np.minimum(halves, self.problem.occupied.backward[self.stage_of]))

    def target(self, spread: float = 0.0) -> Target:
        """What should be small, and ``spread`` times the mean of it over the ranks."""
        return Target(int(self.problem.objective == "span"), spread)

    @cached_property
    def overlaps(self) -> bool:
        """Whether running any forward overlapped with any backward takes less than one after the other."""
        costs = self.problem.occupied
        halves = costs.backward_input if self.problem.split_backward else costs.backward
        longest = np.maximum(halves, costs.backward).max()
        return costs.overlap is not None and bool((costs.overlap < costs.forward + longest).any())

    @cached_property
    def may_run_full(self) -> bool:
        """Whether it matters which backwards run in full."""
        return bool(self.problem.full_gains.any())

    @cached_property
    def flat(self) -> FlatProblem:
        """The problem as the kernel takes it."""
        source = self._sources()
        crosses = (source >= 0) & (self.rank_of[source] != self.rank_of)
        consumer = np.full(self.classes, -1)
        consumer[source[crosses]] = self.rank_of[crosses]
        time, weight_time = self._times()
        growth, weight_growth = self._growths()
        full_time = np.where(self.is_forward, time, self.problem.occupied.backward[self.stage_of])
        held = self.problem.memory_limit.activation[self.stage_of]
        work = np.bincount(self.rank_of, weights=self.share * self.total_times)
        overlap = self.problem.occupied.overlap
        limit = self.problem.memory_limit.limit
        return FlatProblem(
            offsets=self.offsets,
            work=np.zeros_like(work) if self.overlaps else work.astype(np.float64),
            limit=limit + tolerances.SEARCHED_MEMORY * np.maximum(np.where(np.isfinite(limit), limit, 0.0), 1.0),
            rank=self.rank_of,
            time=time,
            growth=growth,
            source=source,
            delay=np.where(crosses, self.problem.occupied.transfer.time(), 0.0),
            consumer=consumer,
            first=np.arange(self.classes) * self.share,
            weight_time=weight_time,
            weight_growth=weight_growth,
            full_time=full_time,
            full_growth=np.where(self.is_forward, growth, -held),
            overlap=time if overlap is None else overlap[self.stage_of],
        )

    def _sources(self) -> Ints:
        """The class each class waits for, -1 for none; shape (classes,)."""
        sources = np.full((self.copies, self.stages, 2), -1, np.int64)
        first = 2 * self.stages * np.arange(self.copies)
        for stage in range(self.stages):
            for backward, kind in enumerate((Kind.F, Kind.I)):
                if (source := source_of(kind, stage, self.stages)) is not None:
                    sources[:, stage, backward] = first + 2 * source[1] + (source[0] is Kind.I)
        return sources.ravel()

    def _times(self) -> tuple[Floats, Floats]:
        costs = self.problem.occupied
        split = self.problem.split_backward
        backward = (costs.backward_input if split else costs.backward)[self.stage_of]
        weight = np.where(self.is_forward | (not split), -1.0, costs.backward_weight[self.stage_of])
        return np.where(self.is_forward, costs.forward[self.stage_of], backward), weight

    def _growths(self) -> tuple[Floats, Floats]:
        rule = self.problem.memory_limit
        held = rule.activation[self.stage_of]
        kept = rule.freed_by_weight[self.stage_of] if self.problem.split_backward else np.zeros(self.classes)
        return np.where(self.is_forward, held, kept - held), -kept

    def room_for_timing(self) -> Timing:
        """Room for the kernel to work in."""
        ranks, classes = len(self.offsets) - 1, self.classes
        full = [np.zeros(ranks, np.int64) for _ in range(4)]
        real = [np.zeros(ranks) for _ in range(4)]
        return Timing(
            cursor=full[0],
            pending=full[1],
            owed=full[2],
            clock=real[0],
            held=real[1],
            left=real[2],
            begin=real[3],
            stack=full[3],
            done=np.zeros(classes, np.int64),
            waiting=np.zeros(classes, np.int64),
            finish=np.zeros(classes * self.share),
            weights=np.zeros(self.positions, np.int64),
            owes=np.zeros(self.positions, np.int64),
            waited=np.zeros(self.positions, np.int64),
            position=np.zeros(classes * self.share, np.int64),
        )

    def room_for_chain(self) -> Ints:
        """Room for the positions of the longest chain, behind their number."""
        return np.zeros(1 + self.positions, np.int64)

    def room_for_change(self) -> Change:
        """Room for what one step changes."""
        terms, moves, place, target = (np.zeros(size, np.int64) for size in (4, 1, self.positions, self.positions))
        return Change(terms, moves, place, target)

    def evaluate(self, decisions: Decisions) -> Candidate:
        """The decisions with its value."""
        return Candidate(decisions, self._time(decisions)[0])

    def decisions(self, order: Ints, *, full: bool = False) -> Decisions:
        """The decisions of an order that forces no W and joins nothing, with every backward full or none."""
        fulls = np.repeat((~self.is_forward & full).astype(np.int64), self.share if self.may_run_full else 0)
        return Decisions(order, np.zeros_like(order), np.zeros_like(order), fulls)

    def from_order(self, order: Ints) -> Candidate:
        """The candidate of an order that forces no W and joins nothing; with full backwards if that is better."""
        halved = self.evaluate(self.decisions(order))
        if not self.may_run_full:
            return halved
        full = self.evaluate(self.decisions(order, full=True))
        return full if full.value < halved.value else halved

    def one_by_one(self) -> Ints:
        """The order in which each rank does one microbatch after the other: feasible whenever anything is."""
        down = np.arange(0, self.classes, 2)
        classes = np.concatenate([np.concatenate((part, part[::-1] + 1)) for part in np.split(down, self.copies)])
        once = [classes[self.rank_of[classes] == rank] for rank in range(self.problem.placement.ranks)]
        return np.concatenate([np.tile(row, self.share) for row in once])

    def score(self, decisions: Decisions, spread: float) -> float:
        """The value of what is decided, and ``spread`` times the mean over the ranks."""
        return self._time(decisions, spread)[0]

    def _time(self, decisions: Decisions, spread: float = 0.0) -> tuple[float, Ints]:
        """The value of what is decided, and how many Ws run before each position."""
        timing = self.room_for_timing()
        value = _EVALUATE((self.flat, decisions, self.target(spread), INFEASIBLE / 2), (timing,), work=self.positions)
        return (np.inf if value >= INFEASIBLE else float(value)), timing.weights

    def decode(self, candidate: Candidate, name: str = "search") -> Schedule:
        """The schedule of a feasible candidate."""
        _, weights = self._time(candidate.decisions)
        decisions = candidate.decisions
        rows = [
            self._row(decisions.order[start:stop], weights[start:stop], decisions.joined[start:stop], decisions.full)
            for start, stop in pairwise(self.offsets.tolist())
        ]
        return Schedule.from_rows(self.problem.placement, self.problem.microbatches, rows, name=name)

    def _row(self, order: Ints, weights: Ints, joined: Ints, fulls: Ints) -> Columns:
        """A rank's ops: the weight backwards go in before the positions that they were counted at, and at the end."""
        order, group = self._pairs(order, joined)
        turn_of = self._turns(order)
        microbatch = turn_of + order // (2 * self.stages) * self.share
        backward = ~self.is_forward[order]
        halved = backward & (self.weight_time[order] >= 0)
        if self.may_run_full:
            halved &= fulls[order * self.share + turn_of] == 0
        owed = np.flatnonzero(halved)
        place = np.repeat(np.arange(len(order)), weights)
        place = np.concatenate((place, np.full(len(owed) - len(place), len(order))))
        kind = np.concatenate((np.select([halved, backward], [Kind.I, Kind.B], Kind.F), np.full(len(owed), Kind.W)))
        which = np.concatenate((np.arange(len(order)), owed))
        turn = np.argsort(np.concatenate((2 * np.arange(len(order)) + 1, 2 * place)), kind="stable")
        row = ops(kind[turn], self.stage_of[order[which[turn]]], microbatch[which[turn]])
        groups = np.concatenate((group, np.full(len(owed), NO_GROUP)))[turn]
        return replace(row, group=groups.astype(np.int32))

    def _pairs(self, order: Ints, joined: Ints) -> tuple[Ints, Ints]:
        """The order with the forward first in overlapped pairs, and the group of each position."""
        order, group = order.copy(), np.full(len(order), NO_GROUP)
        free = 0
        for place in np.flatnonzero(joined[:-1]).tolist():
            if place >= free and self.is_forward[order[place]] != self.is_forward[order[place + 1]]:
                pair = sorted(order[place : place + 2].tolist(), key=lambda item: item % 2)
                order[place : place + 2], group[place : place + 2] = pair, place
                free = place + 2
        return order, group

    def _turns(self, order: Ints) -> Ints:
        """How many ops of its class stand before each op of a row: the k-th is that of the copy's k-th microbatch."""
        turn = np.argsort(order, kind="stable")
        counts = np.bincount(order, minlength=self.classes)
        first = np.concatenate(([0], np.cumsum(counts)))[order[turn]]
        turns = np.empty(len(order), np.int64)
        turns[turn] = np.arange(len(order)) - first
        return turns

    def encode(self, schedule: Schedule) -> Candidate:
        """A schedule as a candidate: the order of its forwards and backwards, and its Ws as forced ones.

        Which microbatch an op has is forgotten: the k-th of its kind and stage becomes the k-th. Where its halves can do all
        that a full backward can, it becomes an I with its W right behind; where backward may not be split, an I becomes a
        full backward.
        """
        decisions = self.decisions(np.zeros(self.positions, np.int64))
        for rank, (start, stop) in enumerate(pairwise(self.offsets.tolist())):
            order, forced, joined, full = self._encode_row(schedule.row(rank))
            decisions.order[start:stop], decisions.forced[start:stop], decisions.joined[start:stop] = (
                order,
                forced,
                joined,
            )
            if self.may_run_full:
                decisions.full[order * self.share + self._turns(order)] = full
        return self.evaluate(decisions)

    def _encode_row(self, row: Columns) -> tuple[Ints, Ints, Ints, Ints]:
        """Classes, forced Ws and pairs by position, and which of the ops there are full backwards."""
        copy = self.problem.placement.copy_of(row.microbatch, self.problem.microbatches).astype(np.int64)
        backward = np.isin(row.kind, BACKWARD_KINDS)
        chosen = backward | (row.kind == Kind.F)
        order = (2 * (copy * self.stages + row.stage) + backward)[chosen]
        stays_full = (row.kind == Kind.B) & self.problem.full_gains[row.stage]
        halved = (row.kind == Kind.B) & ~stays_full
        done = np.cumsum((row.kind == Kind.W) | halved) - halved
        forced = np.diff(done[chosen], prepend=0) if self.problem.split_backward else np.zeros_like(order)
        group = row.group[chosen]
        joined = np.append((group[1:] == group[:-1]) & (group[1:] != NO_GROUP), False).astype(np.int64)
        joined = joined if self.overlaps else np.zeros_like(order)
        return order, forced, joined, stays_full[chosen].astype(np.int64)
