"""A candidate of the search as arrays, to and from schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from pipeplan.kernels import Kernel
from pipeplan.model import Floats, Ints, Kind, Schedule
from pipeplan.solver.flattening import class_times, flatten, room_for_timing
from pipeplan.solver.keeping import first_answers
from pipeplan.solver.kernels.arrays import KEPT, SEARCH_COMPILES_AFTER, Change, Decisions, FlatProblem, Target, Timing
from pipeplan.solver.kernels.timing_kernel import INFEASIBLE, evaluate
from pipeplan.solver.kernels.wide_kernel import evaluate_wide
from pipeplan.solver.problem import Problem
from pipeplan.solver.rows import read_row, write_row
from pipeplan.solver.scenarios import STATISTICS, Scenarios

_EVALUATE = Kernel(evaluate, SEARCH_COMPILES_AFTER)
_EVALUATE_WIDE = Kernel(evaluate_wide, SEARCH_COMPILES_AFTER)


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
    """Turns a problem into the kernel's arrays, schedules into candidates, and candidates into schedules.

    Parameters
    ----------
    problem
        The problem.
    scenarios
        Runs in which ops take other times, of whose values the candidates' value is a statistic; None: the value is that of
        the run that is planned.
    """

    def __init__(self, problem: Problem, scenarios: Scenarios | None = None) -> None:
        self.problem = problem
        self.scenarios = scenarios
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
        """How long an op of each class takes at least, the weight backward with it, shape (classes,)."""
        halves = class_times(self)[0] + np.maximum(self.weight_time, 0.0)
        full = self.problem.occupied.backward[self.stage_of] / self.problem.slices
        return np.where(self.is_forward, halves, np.minimum(halves, full))

    def target(self, spread: float = 0.0) -> Target:
        """What should be small, and ``spread`` times the mean of it over the ranks."""
        statistic = STATISTICS["worst" if self.scenarios is None else self.scenarios.statistic]
        return Target(int(self.problem.objective == "span"), spread, statistic)

    @property
    def overlaps(self) -> bool:
        """Whether running some forward overlapped with some backward takes less than one after the other."""
        return self.problem.pairs_gain

    @cached_property
    def may_run_full(self) -> bool:
        """Whether it matters which backwards run in full."""
        return bool(self.problem.full_gains.any())

    @cached_property
    def decides_weight(self) -> bool:
        """Whether it matters whose owed W a rank runs first: where they differ in time, or in what they free."""
        problem = self.problem
        if not (problem.choices.weight_order and problem.split_backward):
            return False
        each = [self.weight_time[~self.is_forward]]
        if np.isfinite(problem.memory_limit.limit).any():
            each.append(problem.memory_limit.freed_by_weight[self.stage_of[~self.is_forward]])
        ranks = self.rank_of[~self.is_forward]
        return any(len(np.unique(values[ranks == rank])) > 1 for values in each for rank in np.unique(ranks))

    @cached_property
    def decides_mode(self) -> bool:
        """Whether it matters which microbatches are recomputed or offloaded: where memory is limited."""
        problem = self.problem
        return problem.choices.frees_memory and bool(np.isfinite(problem.memory_limit.limit).any())

    @cached_property
    def is_wide(self) -> bool:
        """Whether candidates are timed by ``wide_kernel``, which knows more and is slower."""
        problem = self.problem
        modelled = problem.communication == "contended" or problem.slices > 1 or self.scenarios is not None
        return modelled or self.decides_weight or self.decides_mode

    @cached_property
    def narrow(self) -> Encoder:
        """The same without an order of owed Ws, where that alone makes the problem wide; else this one."""
        choices = replace(self.problem.choices, weight_order=False)
        narrow = Encoder(replace(self.problem, choices=choices), self.scenarios) if self.decides_weight else self
        return self if narrow.is_wide else narrow

    def adopt(self, decisions: Decisions) -> Decisions:
        """Decisions of the narrow encoder, as this one has them; or the other way round."""
        slots = self.positions if self.decides_weight else 0
        return decisions if len(decisions.prefer) == slots else decisions._replace(prefer=np.zeros(slots, np.int64))

    @cached_property
    def flat(self) -> FlatProblem:
        """The problem as the kernels take it."""
        return flatten(self)

    def indices(self, order: Ints) -> Ints:
        """How many ops of its class stand before each op of a row: the k-th is that of the copy's k-th microbatch."""
        turn = np.argsort(order, kind="stable")
        counts = np.bincount(order, minlength=self.classes)
        first = np.concatenate(([0], np.cumsum(counts)))[order[turn]]
        found = np.empty(len(order), np.int64)
        found[turn] = np.arange(len(order)) - first
        return found

    def microbatch_of(self, op_class: Ints, index: Ints) -> Ints:
        """The microbatch of each op, given its class and index."""
        slices = self.problem.slices
        return index // slices + op_class // (2 * self.stages) * (self.share // slices)

    def slice_of(self, op_class: Ints, index: Ints) -> Ints:
        """The slice of each op, given its class and index."""
        slices = self.problem.slices
        return np.where(self.is_forward[op_class], index % slices, slices - 1 - index % slices)

    def forward_of(self, op_class: Ints, index: Ints) -> Ints:
        """The number of the forward of each op's microbatch and slice on its stage, given its class and index."""
        slices, backward = self.problem.slices, op_class % 2
        turned = index // slices * slices + slices - 1 - index % slices
        return (op_class - backward) * self.share + np.where(backward == 1, turned, index)

    @property
    def evaluator(self) -> Kernel:
        """What times a candidate."""
        return _EVALUATE_WIDE if self.is_wide else _EVALUATE

    def room_for_timing(self) -> Timing:
        """Room for the kernel to work in."""
        return room_for_timing(self)

    def room_for_chain(self) -> Ints:
        """Room for the positions of the longest chain, behind their number."""
        return np.zeros(1 + self.positions, np.int64)

    def room_for_change(self) -> Change:
        """Room for what one step changes."""
        terms, moves, place, target = (np.zeros(size, np.int64) for size in (4, 1, self.positions, self.positions))
        return Change(terms, moves, place, target)

    def evaluate(self, decisions: Decisions) -> Candidate:
        """The decisions with their value."""
        return Candidate(decisions, self.timed(decisions)[0])

    def decisions(self, order: Ints, *, full: bool = False) -> Decisions:
        """The decisions of an order that forces no W and joins nothing, with every backward full or none; all is kept."""
        fulls = np.repeat((~self.is_forward & full).astype(np.int64), self.share if self.may_run_full else 0)
        modes = self.positions if self.decides_mode else 0
        return Decisions(
            order,
            np.zeros_like(order),
            np.zeros_like(order),
            fulls,
            prefer=np.zeros(self.positions if self.decides_weight else 0, np.int64),
            mode=np.full(modes, KEPT),
            lead=np.zeros(modes, np.int64),
        )

    def from_order(self, order: Ints) -> Candidate:
        """The candidate of an order that forces no W and joins nothing; with full backwards if that is better.

        What does not fit is recomputed or offloaded, where that may be decided.
        """
        halved = self.fitted(self.decisions(order))
        if not self.may_run_full:
            return halved
        full = self.fitted(self.decisions(order, full=True))
        return full if full.value < halved.value else halved

    def fitted(self, decisions: Decisions) -> Candidate:
        """The candidate of these decisions, or where modes may be decided on the best of those that first come to mind."""
        best = self.evaluate(decisions)
        if self.decides_mode:
            for trial in first_answers(self, decisions):
                found = self.evaluate(trial)
                best = found if found.value < best.value else best
        return best

    def one_by_one(self) -> Ints:
        """The order in which each rank does one microbatch after the other: feasible whenever anything is."""
        down = np.arange(0, self.classes, 2)
        classes = np.concatenate([np.concatenate((part, part[::-1] + 1)) for part in np.split(down, self.copies)])
        once = [classes[self.rank_of[classes] == rank] for rank in range(self.problem.placement.ranks)]
        slices = self.problem.slices
        return np.concatenate([np.tile(np.repeat(row, slices), self.share // slices) for row in once])

    def score(self, decisions: Decisions, spread: float) -> float:
        """The value of what is decided, and ``spread`` times the mean over the ranks."""
        return self.timed(decisions, spread)[0]

    def timed(self, decisions: Decisions, spread: float = 0.0, *, fills_waits: bool = True) -> tuple[float, Timing]:
        """The value of what is decided, infinite where it deadlocks or does not fit, and all that was found on the way.

        Without ``fills_waits`` weight backwards stand only where they are forced to or memory is short, which its value does
        not know.
        """
        timing = self.room_for_timing()
        inputs = (self.flat if fills_waits else self._without_waits, decisions, self.target(spread), INFEASIBLE / 2)
        value = self.evaluator(inputs, (timing,), work=self.positions * self.runs)
        return (np.inf if value >= INFEASIBLE else float(value)), timing

    @property
    def runs(self) -> int:
        """How often a candidate is timed for one value."""
        return 1 if self.scenarios is None else 1 + self.scenarios.runs

    @cached_property
    def _without_waits(self) -> FlatProblem:
        """The problem with all that crosses ranks there since ever: no rank waits for it, and no W fills a wait."""
        ever = np.full(self.classes, -np.inf)
        flat = self.flat
        more = flat.more._replace(sending=ever) if self.is_wide else flat.more
        return flat._replace(delay=ever, more=more)

    def decode(self, candidate: Candidate, name: str = "search", *, fills_waits: bool = True) -> Schedule:
        """The schedule of a feasible candidate; with ``fills_waits`` weight backwards fill the waits of its plan."""
        decisions = candidate.decisions
        _, timing = self.timed(decisions, fills_waits=fills_waits)
        rows = [write_row(self, decisions, timing, *ends) for ends in pairwise(self.offsets.tolist())]
        problem = self.problem
        return Schedule.from_rows(problem.placement, problem.microbatches, rows, slices=problem.slices, name=name)

    def encode(self, schedule: Schedule) -> Candidate:
        """A schedule as a candidate: the order of its forwards and backwards, and its Ws as forced ones.

        Which microbatch an op has is forgotten: the k-th of its kind and stage becomes the k-th. Where its halves can do all
        that a full backward can, it becomes an I with its W right behind, unless that takes longer: Ws that are owed come
        first, and in a pair the W comes on top. Where backward may not be split, an I becomes a full backward. What the
        problem does not decide on is left out.
        """
        found = self._encoded(schedule, keeps_full=False)
        columns = schedule.columns
        if self.may_run_full and bool(((columns.kind == Kind.B) & ~self.problem.full_gains[columns.stage]).any()):
            found = min(found, self._encoded(schedule, keeps_full=True), key=lambda candidate: candidate.value)
        return found

    def _encoded(self, schedule: Schedule, *, keeps_full: bool) -> Candidate:
        """The same with full backwards where they gain, or wherever they stand."""
        decisions = self.decisions(np.zeros(self.positions, np.int64))
        for rank, (start, stop) in enumerate(pairwise(self.offsets.tolist())):
            row = read_row(self, schedule.row(rank), keeps_full=keeps_full)
            index = self.indices(row.order)
            for name in ("order", "forced", "joined"):
                getattr(decisions, name)[start:stop] = getattr(row, name)
            if self.may_run_full:
                decisions.full[row.order * self.share + index] = row.full
            if self.decides_weight:
                decisions.prefer[start:stop] = row.prefer
            if self.decides_mode:
                forward, of = self.is_forward[row.order], self.forward_of(row.order, index)
                decisions.mode[of[forward]] = row.mode[forward]
                decisions.lead[of[~forward]] = row.lead[~forward]
        if not self.decides_weight:
            return self.evaluate(decisions)
        # Its Ws where they stand, or also where they fit earlier.
        strict = decisions._replace(prefer=-np.abs(decisions.prefer))
        free = decisions._replace(prefer=np.maximum(decisions.prefer, 0))
        return min(self.evaluate(free), self.evaluate(strict), key=lambda candidate: candidate.value)
