"""A candidate of the search as arrays, and its conversion to and from schedules, row by row."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipeplan.extensions.search.kernels.arrays import (
    KEPT,
    OFFLOADED,
    RECOMPUTED,
    CandidateTiming,
    Change,
    Decisions,
    Target,
)
from pipeplan.extensions.search.kernels.evaluating_kernel import PAIRS, PLAIN, WIDE, evaluate_by
from pipeplan.extensions.search.kernels.keeping_kernel import keep_what_fits
from pipeplan.extensions.search.kernels.timing_kernel import INFEASIBLE
from pipeplan.extensions.search.op_layout import OpLayout
from pipeplan.extensions.search.problem import Problem
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import BACKWARD_KINDS, NO_GROUP, Bools, Columns, Floats, Ints, Kind, Schedule, ops, tolerances

_EVALUATE = Kernel(evaluate_by)
_KEEP_WHAT_FITS = Kernel(keep_what_fits)

LINK_SHARES = (np.inf, 1.0, 0.5, 0.0)
"""Shares of a rank's work for which its link to the host may be busy, tried first where both modes are allowed."""

LEADS = (0, 1, 2, 4, 8, 16)
"""Leads tried first: places between a RELOAD and its backward."""

MOST_WORK = 20_000_000
"""Op evaluations spent on finding needless recomputation and offload."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """Decisions, arrays of shape (positions,), and their value: infinite if they deadlock or do not fit."""

    decisions: Decisions
    value: float

    @property
    def order(self) -> Ints:
        """Class at each position."""
        return self.decisions.order

    def copy(self) -> Candidate:
        """Return a copy that shares no arrays."""
        return Candidate(Decisions(*(array.copy() for array in self.decisions)), self.value)


class Encoder(OpLayout):
    """Converts schedules into candidates and back, and times candidates.

    Parameters
    ----------
    problem
        The problem.
    """

    def target(self, spread: float = 0.0) -> Target:
        """Return the target to minimize: the objective, plus ``spread`` times its mean over the ranks."""
        return Target(int(self.problem.objective == "span"), spread)

    @cached_property
    def narrow(self) -> Encoder:
        """The encoder without an order of owed Ws, if that alone makes the problem wide; else this encoder."""
        choices = replace(self.problem.choices, weight_order=False)
        narrow = Encoder(replace(self.problem, choices=choices)) if self.decides_weight else self
        return self if narrow.is_wide else narrow

    def adopt(self, decisions: Decisions) -> Decisions:
        """Convert decisions of the narrow encoder to this one, or the other way round."""
        slots = self.positions if self.decides_weight else 0
        return decisions if len(decisions.prefer) == slots else decisions._replace(prefer=np.zeros(slots, np.int64))

    @property
    def evaluator(self) -> int:
        """Evaluator that times a candidate."""
        return WIDE if self.is_wide else self.narrow_evaluator

    @property
    def narrow_evaluator(self) -> int:
        """Evaluator that times the order and the weight backwards of a candidate, whatever else is decided."""
        return PAIRS if self.has_pairs else PLAIN

    def empty_chain(self) -> Ints:
        """Return an empty longest chain."""
        return np.zeros(1 + self.positions, np.int64)

    def empty_change(self) -> Change:
        """Return an empty change."""
        terms, moves, place, target = (np.zeros(size, np.int64) for size in (4, 1, self.positions, self.positions))
        return Change(terms, moves, place, target)

    def evaluate(self, decisions: Decisions) -> Candidate:
        """Return the decisions with their value."""
        return Candidate(decisions, self.timed(decisions)[0])

    def decisions(self, order: Ints, *, full: bool = False) -> Decisions:
        """Return the decisions of an order: no forced Ws, no pairs, everything kept, all backwards full or none."""
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
            turn=np.tile(np.arange(self.turns), self.classes if self.varies else 0),
        )

    def in_turn(self, candidate: Candidate, microbatches: Ints) -> Candidate:
        """Return the candidate with other microbatches: the k-th of an order where it has microbatch k.

        ``microbatches`` are orders of those of each copy of the model, shape (copies, turns).
        """
        turn = candidate.decisions.turn.reshape(self.copies, -1)
        return self.evaluate(candidate.decisions._replace(turn=np.take_along_axis(microbatches, turn, axis=1).ravel()))

    @cached_property
    def orders(self) -> dict[str, Ints]:
        """Orders of the microbatches of each copy to begin with, shape (copies, turns), by name; none if they are alike."""
        if not self.varies:
            return {}
        costs = self.problem.occupied
        work = np.sum([costs.times(kind).sum(axis=0) for kind in (Kind.F, Kind.I, Kind.W)], axis=0)
        return orders_of(work.reshape(self.copies, -1))

    def from_order(self, order: Ints) -> Candidate:
        """Return the candidate of an order without forced Ws and pairs; with full backwards if that is better.

        What does not fit is recomputed or offloaded, where that may be decided.
        """
        halved = self.fitted(self.decisions(order))
        if not self.may_run_full:
            return halved
        full = self.fitted(self.decisions(order, full=True))
        return full if full.value < halved.value else halved

    def fitted(self, decisions: Decisions) -> Candidate:
        """Return the candidate of these decisions; if modes are decided, the best of a few first choices of them."""
        best = self.evaluate(decisions)
        if self.decides_mode:
            for trial in first_answers(self, decisions):
                result = self.evaluate(trial)
                best = result if result.value < best.value else best
        return best

    def one_by_one(self) -> Ints:
        """Return the order in which each rank runs one microbatch after the other: feasible if any order is."""
        down = np.arange(0, self.classes, 2)
        classes = np.concatenate([np.concatenate((part, part[::-1] + 1)) for part in np.split(down, self.copies)])
        once = [classes[self.rank_of[classes] == rank] for rank in range(self.problem.placement.ranks)]
        slices = self.problem.slices
        return np.concatenate([np.tile(np.repeat(row, slices), self.share // slices) for row in once])

    def score(self, decisions: Decisions, spread: float) -> float:
        """Return the value of the decisions, plus ``spread`` times its mean over the ranks."""
        return self.timed(decisions, spread)[0]

    def timed(self, decisions: Decisions, spread: float = 0.0) -> tuple[float, CandidateTiming]:
        """Return the value of the decisions, infinite if they deadlock or do not fit, and their timing."""
        timing = self.empty_timing()
        inputs = (self.evaluator, self.flat, decisions, self.target(spread), INFEASIBLE / 2)
        value = _EVALUATE(inputs, (timing,))
        return (np.inf if value >= INFEASIBLE else float(value)), timing

    def decode(self, candidate: Candidate, name: str = "search") -> Schedule:
        """Return the schedule of a feasible candidate."""
        decisions = candidate.decisions
        _, timing = self.timed(decisions)
        rows = [write_row(self, decisions, timing, *ends) for ends in pairwise(self.offsets.tolist())]
        problem = self.problem
        return Schedule.from_rows(problem.placement, problem.microbatches, rows, slices=problem.slices, name=name)

    def encode(self, schedule: Schedule) -> Candidate:
        """Return a schedule as a candidate: the order of its forwards and backwards, with its Ws forced.

        If microbatches are alike, which of them an op has is forgotten: the k-th of its kind and stage becomes the k-th.
        Where its halves can do all that a full backward can, it becomes an I with its W right after it, unless that takes
        longer: Ws that are owed come first, and in a pair the W comes on top. Where backward may not be split, an I becomes
        a full backward. What the problem does not decide on is left out.
        """
        result = self._encoded(schedule, keeps_full=False)
        columns = schedule.columns
        if self.may_run_full and bool(((columns.kind == Kind.B) & ~self.problem.full_gains[columns.stage]).any()):
            result = min(result, self._encoded(schedule, keeps_full=True), key=lambda candidate: candidate.value)
        return result

    def _encoded(self, schedule: Schedule, *, keeps_full: bool) -> Candidate:
        """Return the candidate of a schedule with full backwards where they gain, or wherever they are."""
        decisions = self.decisions(np.zeros(self.positions, np.int64))
        for rank, (start, stop) in enumerate(pairwise(self.offsets.tolist())):
            row = read_row(self, schedule.row(rank), keeps_full=keeps_full)
            if self.varies:
                for op_class, turn in _turns(self, row):
                    decisions.turn[op_class * self.turns : (op_class + 1) * self.turns] = turn
            index = self.indices(row.order, decisions.turn)
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
        # Its Ws exactly where they are, or also where they fit earlier. A preference below 0 fills no wait.
        strict = decisions._replace(prefer=-np.abs(decisions.prefer))
        free = decisions._replace(prefer=np.maximum(decisions.prefer, 0))
        return min(self.evaluate(free), self.evaluate(strict), key=lambda candidate: candidate.value)


SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
"""Shares of the work of the shortest microbatches that come before the longest one, in orders to begin with."""


def orders_of(work: Floats) -> dict[str, Ints]:
    """Return simple orders of microbatches, by name.

    Short ones fill and drain the pipeline fast. A long one takes its time through all stages: it must not come late, and
    what runs before it should be just enough to keep later ranks busy until it arrives.

    Parameters
    ----------
    work
        Time of each microbatch of each copy of the model, shape (copies, microbatches).
    """
    rising = np.argsort(work, axis=1, kind="stable")
    orders = {
        "shortest first": rising,
        "longest first": rising[:, ::-1],
        "shortest at both ends": np.hstack((rising[:, ::2], rising[:, 1::2][:, ::-1])),
        "longest at both ends": np.hstack((rising[:, ::2][:, ::-1], rising[:, 1::2])),
    }
    done = np.cumsum(np.take_along_axis(work, rising, axis=1), axis=1).mean(axis=0)
    for share in SHARES:
        few = int(np.searchsorted(done, share * done[-1])) + 1
        orders[f"{few} of the shortest, then longest first"] = np.hstack((rising[:, :few], rising[:, few:][:, ::-1]))
    return orders


def first_answers(encoder: Encoder, decisions: Decisions) -> Iterator[Decisions]:
    """Yield the decisions with modes that may fit: as little recomputation and offload as needed, and everything."""
    choices, positions = encoder.problem.choices, encoder.positions
    shares = LINK_SHARES if choices.recompute and choices.offload else (np.inf if choices.offload else 0.0,)
    work = np.bincount(encoder.rank_of, weights=encoder.share * encoder.total_times)
    for share in shares:
        trial = decisions._replace(mode=np.zeros(positions, np.int64), lead=np.zeros(positions, np.int64))
        room = [np.zeros(size, np.int64) for size in (positions, encoder.classes, positions)]
        busy = share * work
        if _KEEP_WHAT_FITS((encoder.flat, busy), (trial, *room)):
            yield from _with_leads(trial)
    modes = _least_modes(encoder.problem)[encoder.stage_of]
    yield from _with_leads(decisions._replace(mode=np.repeat(modes, encoder.share), lead=np.zeros(positions, np.int64)))


def keep_what_can_be(encoder: Encoder, candidate: Candidate) -> Candidate:
    """Return the candidate without needless recomputation and offload: it fits and is as fast without them.

    Annealing does not see such copies and recomputations. All are tried at once, and then halves of what failed, until each
    was tried alone or the evaluations have taken almost a second.
    """
    decisions, value = candidate.copy().decisions, candidate.value
    left = MOST_WORK // encoder.positions
    untried = [np.flatnonzero(decisions.mode != KEPT)]
    # Group testing: most groups pass or fail as a whole, so that few evaluations decide on many microbatches.
    while untried and left > 0:
        ops = untried.pop()
        modes = decisions.mode[ops]
        decisions.mode[ops] = KEPT
        result, left = encoder.timed(decisions)[0], left - 1
        if result <= value * (1 + tolerances.LAST_DIGITS):
            value = min(value, result)
            continue
        decisions.mode[ops] = modes
        untried += [half for half in np.array_split(ops, 2) if len(ops) > 1]
    return encoder.evaluate(decisions)


def _with_leads(decisions: Decisions) -> Iterator[Decisions]:
    """Yield the decisions with each of the first leads, if anything is fetched back."""
    for lead in LEADS if (decisions.mode == OFFLOADED).any() else (0,):
        yield decisions._replace(lead=np.full_like(decisions.lead, lead))


def _least_modes(problem: Problem) -> Ints:
    """Return the mode in which each stage holds least between a forward and its backward, shape (stages,)."""
    choices, rule = problem.choices, problem.memory_limit
    modes = [mode for mode, may in ((RECOMPUTED, choices.recompute), (OFFLOADED, choices.offload)) if may]
    rests = {RECOMPUTED: rule.recompute_keeps, OFFLOADED: rule.activation - rule.offloaded}
    which = np.argmin([rests[mode] for mode in modes], axis=0)
    least: Ints = np.array(modes, np.int64)[which]
    return least


_WEIGHT, _OFFLOAD, _RELOAD, _RECOMPUTE, _OP = range(5)
"""Order of the kinds of ops at a place: what runs in front of an op, and the op."""


def write_row(layout: OpLayout, decisions: Decisions, timing: CandidateTiming, start: int, stop: int) -> Columns:
    """Return the ops of a rank, at positions ``start`` to ``stop``, of a feasible candidate just timed."""
    order, group = _pairs(layout, decisions.order[start:stop], decisions.joined[start:stop])
    op_class, index = order, layout.indices(order, decisions.turn)
    backward = ~layout.is_forward[op_class]
    halved = backward & (layout.weight_time[op_class] >= 0)
    if layout.may_run_full:
        halved &= decisions.full[op_class * layout.share + index] == 0
    places = np.arange(len(order))
    parts = [(_OP, places, places, np.select([halved, backward], [Kind.I, Kind.B], Kind.F))]
    owed = _weights(layout, timing, op_class * layout.share + index, np.flatnonzero(halved), start)
    before = np.repeat(places, timing.weights[start:stop])
    before = np.concatenate((before, np.full(len(owed) - len(before), len(order))))
    parts.append((_WEIGHT, before, owed, np.full(len(owed), Kind.W)))
    if layout.decides_mode:
        mode = decisions.mode[layout.forward_of(op_class, index)]
        away, back = (np.flatnonzero((mode == OFFLOADED) & which) for which in (~backward, backward))
        again = np.flatnonzero((mode == RECOMPUTED) & backward)
        first = again - ((group[again] != NO_GROUP) & (again > 0) & (group[again] == group[again - 1]))
        parts += [
            (_OFFLOAD, np.repeat(places, timing.more.offloads[start:stop]), away, np.full(len(away), Kind.OFFLOAD)),
            (_RELOAD, np.repeat(places, timing.more.reloads[start:stop]), back, np.full(len(back), Kind.RELOAD)),
            (_RECOMPUTE, first, again, np.full(len(again), Kind.R)),
        ]
    # Each op has a place and, within the place, a rank by its kind: one stable sort by both merges all kinds into the row.
    turn = np.argsort(np.concatenate([(_OP + 1) * place + rank for rank, place, _, _ in parts]), kind="stable")
    which = np.concatenate([which for _, _, which, _ in parts])[turn]
    kind = np.concatenate([kind for _, _, _, kind in parts])[turn]
    of_op, index = op_class[which], index[which]
    part = layout.slice_of(of_op, index) if layout.problem.slices > 1 else 0
    row = ops(kind, layout.stage_of[of_op], layout.microbatch_of(of_op, index), part)
    groups = np.concatenate((group, np.full(len(turn) - len(order), NO_GROUP)))[turn]
    return replace(row, group=groups.astype(np.int32))


def _weights(layout: OpLayout, timing: CandidateTiming, number: Ints, halved: Ints, start: int) -> Ints:
    """Return the places of the backwards whose Ws the rank runs, in the order of the Ws; ``number`` has that of each op."""
    if not layout.is_wide:
        return halved
    place_of = np.empty(layout.positions, np.int64)
    place_of[number] = np.arange(len(number))
    return place_of[timing.more.ran[start : start + len(halved)]]


def _pairs(layout: OpLayout, order: Ints, joined: Ints) -> tuple[Ints, Ints]:
    """Return the order with the forward first in overlapped pairs, and the group of each position."""
    order, group = order.copy(), np.full(len(order), NO_GROUP)
    free = 0
    for place in np.flatnonzero(joined[:-1]).tolist():
        if place >= free and layout.is_forward[order[place]] != layout.is_forward[order[place + 1]]:
            pair = sorted(order[place : place + 2].tolist(), key=lambda item: item % 2)
            order[place : place + 2], group[place : place + 2] = pair, place
            free = place + 2
    return order, group


class RowDecisions(NamedTuple):
    """Decisions of a row, by position; ``prefer`` by W; ``mode`` and ``lead`` are those of the position's microbatch.

    ``microbatch`` is that of the position's op, counted within its copy of the model.
    """

    order: Ints
    forced: Ints
    joined: Ints
    full: Ints
    prefer: Ints
    mode: Ints
    lead: Ints
    microbatch: Ints


def _turns(layout: OpLayout, row: RowDecisions) -> Iterator[tuple[int, Ints]]:
    """Yield each class of a row with its microbatches in the order of their first ops."""
    for op_class in np.unique(row.order).tolist():
        microbatch = row.microbatch[row.order == op_class]
        _, first = np.unique(microbatch, return_index=True)
        yield op_class, microbatch[np.sort(first)]


def read_row(layout: OpLayout, row: Columns, *, keeps_full: bool) -> RowDecisions:
    """Return the decisions of a row.

    ``keeps_full``: full backwards are full also on stages where their halves can do the same.
    """
    problem = layout.problem
    copy = problem.placement.copy_of(row.microbatch, problem.microbatches).astype(np.int64)
    backward = np.isin(row.kind, BACKWARD_KINDS)
    chosen = backward | (row.kind == Kind.F)
    op_class = 2 * (copy * layout.stages + row.stage) + 1 - (row.kind == Kind.F)
    order = op_class[chosen]
    stays_full = (row.kind == Kind.B) & (problem.full_gains[row.stage] | keeps_full)
    halved = (row.kind == Kind.B) & ~stays_full
    weight = row.kind == Kind.W
    # Ws that have run before each op, that of a halved backward after itself; their growth from op to op is what is forced.
    done = np.cumsum(weight | halved) - halved
    forced = np.diff(done[chosen], prepend=0) if problem.split_backward else np.zeros_like(order)
    joined = np.zeros_like(order)
    if layout.overlaps:
        # With its W after it, a pair would take longer than its two ops apart.
        group = np.where(halved & problem.split_backward, NO_GROUP, row.group)[chosen]
        joined[:-1] = (group[1:] == group[:-1]) & (group[1:] != NO_GROUP)
    prefer = np.zeros_like(order)
    if layout.decides_weight:
        owes = ((row.kind == Kind.I) | halved, weight | halved)
        preferences = _preferences(op_class, *owes)
        prefer[: len(preferences)] = preferences
    mode, lead = _modes(row, chosen) if layout.decides_mode else (np.zeros_like(order), np.zeros_like(order))
    microbatch = (row.microbatch - copy * layout.turns)[chosen]
    return RowDecisions(order, forced, joined, stays_full[chosen].astype(np.int64), prefer, mode, lead, microbatch)


def _preferences(op_class: Ints, owes: Bools, runs: Bools) -> Ints:
    """Return 1 + the class of each W in turn, below 0 for the one owed the longest."""
    queue: deque[int] = deque()
    preferences = []
    for number, owing, running in zip(op_class.tolist(), owes.tolist(), runs.tolist(), strict=True):
        if owing:
            queue.append(number)
        if running and number in queue:
            preferences.append(-1 - number if queue[0] == number else 1 + number)
            queue.remove(number)
    return np.array(preferences, np.int64)


def _modes(row: Columns, chosen: Bools) -> tuple[Ints, Ints]:
    """Return the mode of the microbatch of each forward and backward, and the lead of its RELOAD."""
    key = (row.stage.astype(np.int64) << 40) | (row.microbatch.astype(np.int64) << 16) | row.slice
    mode = np.full(len(row), KEPT)
    mode[np.isin(key, key[row.kind == Kind.R])] = RECOMPUTED
    mode[np.isin(key, key[row.kind == Kind.OFFLOAD])] = OFFLOADED
    place: Ints = np.cumsum(chosen) - chosen
    lead = np.zeros(len(row), np.int64)
    fetched = np.flatnonzero(row.kind == Kind.RELOAD)
    at = dict(zip(key[fetched].tolist(), place[fetched].tolist(), strict=True))
    for op in np.flatnonzero(chosen & (row.kind != Kind.F) & (mode == OFFLOADED)).tolist():
        lead[op] = place[op] - at.get(int(key[op]), int(place[op]))
    return mode[chosen], lead[chosen]
