"""``zbv-heuristic``: the V-shaped schedule of the zero-bubble authors' greedy heuristic under a memory limit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pipeplan.costs import Costs, Limits
from pipeplan.model import Kind, Placement, Schedule
from pipeplan.strategies.greedy_rank import (
    ArrivalTimes,
    GreedyRank,
    RankCosts,
    greedy_ranks,
    rank_costs,
    to_schedule,
)
from pipeplan.strategies.protocol import Formula, FromCosts, Shape, Strategy


class Fill(NamedTuple):
    """Permission for a W in a wait that is shorter than the W: before I of chunk 1, and before F."""

    before_input: bool
    before_forward: bool


SETTINGS = (Fill(True, True), Fill(True, False), Fill(False, True), Fill(False, False))
"""All settings, in the order in which they are tried."""


class _Refined(NamedTuple):
    """The ranks of the last run under a setting, and the permissions that any of its runs used or did not have."""

    ranks: list[GreedyRank]
    fill: Fill
    used: Fill

    def same_under(self, fill: Fill) -> bool:
        """Return True if these runs are known to place the same ops under another setting."""
        return all(ours == theirs or not used for ours, theirs, used in zip(self.fill, fill, self.used, strict=True))


def build_zbv_heuristic(shape: Shape, costs: Costs, limits: Limits | None = None) -> Schedule:
    """Two chunks per rank on a V: a warm-up as long as memory allows, then alternately an I and an F, with Ws in the waits.

    F of chunk 0 flows from rank 0 to p - 1 and F of chunk 1 back to rank 0; I of chunk 1 flows from rank 0 to p - 1 and
    I of chunk 0 back. Ws run where a rank would idle or is out of memory. Whether a W may delay an I or an F is not
    decided by a rule: all four settings are tried, and the schedule with the smallest largest bubble wins.

    Two ranks, three microbatches, p activations (2p chunk activations), equal times::

        rank 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 0I1 3W2 0I2 0W1 0W2 .
        rank 1 | .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 1I1 2I2 1I2 2W1 1W1 2W2 1W2

    With p activations, m >= 2p - 1, F = I = W and free transfers, no rank idles between its first op and its last. In
    general, 1.5p activations leave little idle time. The peak is within the limit, by default p activations; the smallest
    limit applies to all ranks, because the V loads them equally. Any shape is valid. Where stages differ, the order is
    that of equal stages: with the mean times of the rank in the middle, as in the authors' implementation, and the largest
    memory.

    Source: Qi, Wan, Huang, Lin, Zero Bubble Pipeline Parallelism (2024), section 6 (ZB-V).

    Raises
    ------
    InfeasibleError
        If a limit is less than p activations; with m < p, whose first wave is shorter, if an op does not fit.
    """
    placement = Placement.v(shape.ranks)
    if limits is None:
        limits = Limits(np.full(shape.ranks, float(shape.ranks)), in_activations=True)
    per_rank = _equal_ranks(placement, costs, limits)
    if shape.microbatches >= shape.ranks:
        _require_room(per_rank)
    tightest = min(per_rank, key=lambda rank: rank.limit)
    best = best_run([tightest] * shape.ranks, shape.microbatches, costs.transfer.time())
    return to_schedule(best, placement, shape.microbatches)


def best_run(per_rank: list[RankCosts], microbatches: int, transfer: float) -> list[GreedyRank]:
    """Return the ranks with all ops placed, under the first setting with the smallest largest bubble.

    Costs and limits must be equal on all ranks.
    """
    runs: list[_Refined] = []
    for fill in SETTINGS:
        # A setting that differs only in permissions that nothing used gives the same ops again.
        if not any(run.same_under(fill) for run in runs):
            runs.append(_refined(per_rank, microbatches, transfer, fill))
    return min((run.ranks for run in runs), key=lambda ranks: ranks[0].largest_bubble)


def _equal_ranks(placement: Placement, costs: Costs, limits: Limits | None) -> list[RankCosts]:
    """Return ranks that differ in nothing but their limits: with the middle time of all ranks, and the largest memory."""
    chunks = [rank_costs(placement, costs, limits, chunk) for chunk in range(2)]
    every = [of_rank for of_chunk in chunks for of_rank in of_chunk]
    times = (
        sorted((getattr(first, name) + getattr(second, name)) / 2 for first, second in zip(*chunks, strict=True))
        for name in ("forward", "backward_input", "backward_weight")
    )
    forward, backward_input, backward_weight = (of_ranks[len(of_ranks) // 2] for of_ranks in times)
    return [
        replace(
            of_rank,
            forward=forward,
            backward_input=backward_input,
            backward_weight=backward_weight,
            held=max(other.held for other in every),
            freed_by_weight=max(other.freed_by_weight for other in every),
        )
        for of_rank in chunks[0]
    ]


def _require_room(per_rank: list[RankCosts]) -> None:
    """Check the memory for the forwards that rank 0 runs before the first microbatch has travelled down and up the V."""
    chunks = 2 * len(per_rank)
    for rank, costs in enumerate(per_rank):
        needed = (chunks - 1) * costs.held + costs.forward_room
        costs.require_room(
            zbv_heuristic.name, rank, needed, f"{chunks} chunk activations on a V of {chunks // 2} ranks"
        )


def _refined(per_rank: list[RankCosts], microbatches: int, transfer: float, fill: Fill) -> _Refined:
    """Repeat runs, each with the bubbles of the previous one approved, as long as the largest bubble shrinks."""
    first = _Heuristic(per_rank, microbatches, transfer, fill)
    best, used = first.run(), first.used
    while True:
        approved = [rank.bubble for rank in best]
        again = _Heuristic(per_rank, microbatches, transfer, fill, approved)
        shorter = again.stays_below(best[0].largest_bubble)
        used = Fill(*map(max, used, again.used))
        if not shorter:
            return _Refined(best, fill, used)
        best = again.ranks


class _Heuristic:
    """One run under one setting.

    ``approved`` are the ranks' bubbles in the previous run: a rank may idle for the difference between its own and the
    largest.
    """

    def __init__(
        self,
        per_rank: list[RankCosts],
        microbatches: int,
        transfer: float,
        fill: Fill,
        approved: list[float] | None = None,
    ) -> None:
        self.ranks = greedy_ranks(per_rank, chunks=2)
        self.arrivals = ArrivalTimes(Placement.v(len(per_rank)), self.ranks, transfer)
        self.last = len(per_rank) - 1
        self.microbatches = microbatches
        self.transfer = transfer
        self.fill = fill
        # Which permissions placed a W. Known only of those that are given, which are tried first.
        self.used = Fill(not fill.before_input, not fill.before_forward)
        bubbles = approved or [0.0] * len(per_rank)
        self.approved = [max(bubbles) - bubble for bubble in bubbles]

    def run(self) -> list[GreedyRank]:
        self.stays_below(math.inf)
        return self.ranks

    def stays_below(self, bubble: float) -> bool:
        """Place all ops; return False as soon as the largest bubble, which never shrinks, is not below this one."""
        self._first_wave()
        self._even_out()
        for _ in range(2 * self.microbatches):
            if self.ranks[0].largest_bubble >= bubble:
                return False
            for rank in self.ranks:
                rank.make_room(rank.costs.input_change)
            self._inputs()
            self._forwards()
        for rank in self.ranks:
            rank.finish()
        return self.ranks[0].largest_bubble < bubble

    # The first forwards

    def _first_wave(self) -> None:
        """Place the first microbatch down and up the V, and F0s where a rank would wait for it to come back."""
        for rank in range(self.last + 1):
            self._forward(rank, 0)
        for rank in range(self.last, -1, -1):
            if rank < self.last:
                self._forwards_until(rank, self.ranks[rank + 1].forwards[1][0] + self.transfer)
            self._forward(rank, 1)

    def _forwards_until(self, rank: int, deadline: float) -> None:
        """Place F0s on ranks 0 to ``rank``, as many as end by ``deadline`` and leave room for the F1s that follow."""
        here = self.ranks[rank]
        costs = here.costs
        while (
            here.fits(costs.held * (1 + 2 * rank) + costs.forward_room)
            and here.clock + costs.forward <= deadline
            and len(here.forwards[0]) < self.microbatches
        ):
            for upstream in range(rank + 1):
                self._forward(upstream, 0)

    def _even_out(self) -> None:
        """Alternate forwards of both chunks on the last ranks, until no rank has fewer forwards than the previous one."""
        chunk = 0
        for rank in range(1, self.last + 1):
            while self._is_behind(rank):
                for other in range(self.last, rank - 1, -1):
                    if len(self.ranks[other].forwards[chunk]) < self.microbatches:
                        self._forward(other, chunk)
                chunk = 1 - chunk

    def _is_behind(self, rank: int) -> bool:
        here, before = self.ranks[rank].forwards, self.ranks[rank - 1].forwards
        fewer = len(here[0]) + len(here[1]) < len(before[0]) + len(before[1])
        return fewer or len(here[1]) <= len(before[1]) < self.microbatches

    # Rounds: on every rank an I, then an F

    def _inputs(self) -> None:
        """Place each rank's next I: first chunk 0 from the last rank up, then chunk 1 from the first rank down."""
        chunks = [self._input_chunk(rank) for rank in range(self.last + 1)]
        for rank in range(self.last, -1, -1):
            if chunks[rank] == 0:
                self._input(rank, 0)
        for rank in range(self.last + 1):
            if chunks[rank] == 1:
                self._input(rank, 1)

    def _input_chunk(self, rank: int) -> int:
        second, first = self.ranks[rank].inputs[1], self.ranks[rank].inputs[0]
        if len(first) == len(second):
            return 1
        if rank == self.last or len(second) == self.microbatches:
            return 0
        return 0 if len(first) < len(self.ranks[rank + 1].inputs[0]) else 1

    def _input(self, rank: int, chunk: int) -> None:
        here, arrives = self.ranks[rank], self.arrivals.of(Kind.I, rank, chunk)
        if arrives is None:
            here.place_input(chunk)
            return
        if self._fill_wait(rank, arrives, beyond=chunk == 0 or self.fill.before_input) and chunk == 1:
            self.used = self.used._replace(before_input=True)
        here.place_input(chunk, arrives)

    def _forwards(self) -> None:
        for rank in range(self.last + 1):
            chunk = self._forward_chunk(rank)
            if chunk is not None:
                self.ranks[rank].make_room(self.ranks[rank].costs.forward_room)
                self._forward(rank, chunk, fill=True)

    def _forward_chunk(self, rank: int) -> int | None:
        first, second = (len(ends) for ends in self.ranks[rank].forwards)
        if second == self.microbatches:
            return None
        if second == first:
            return 0
        if rank == self.last or second < len(self.ranks[rank + 1].forwards[1]):
            return 1
        can_start = rank == 0 or first < len(self.ranks[rank - 1].forwards[0])
        return 0 if first < self.microbatches and can_start else None

    def _forward(self, rank: int, chunk: int, *, fill: bool = False) -> None:
        """Place the chunk's next F; with ``fill``, place Ws in the wait for its input."""
        here, arrives = self.ranks[rank], self.arrivals.of(Kind.F, rank, chunk)
        if arrives is None:
            here.place_forward(chunk)
            return
        if fill and self._fill_wait(rank, arrives, beyond=self.fill.before_forward):
            self.used = self.used._replace(before_forward=True)
        here.place_forward(chunk, arrives)

    def _fill_wait(self, rank: int, arrives: float, *, beyond: bool) -> bool:
        """Place Ws in the wait; with ``beyond``, place one more if idling would exceed the largest bubble allowed.

        Return True if one more was placed.
        """
        here = self.ranks[rank]
        here.fill_wait(arrives)
        if not (beyond and here.owed):
            return False
        allowed = max(here.largest_bubble, self.approved[rank])
        if arrives - here.clock <= allowed - here.bubble:
            return False
        here.place_weight()
        return True


zbv_heuristic = Strategy(
    name="zbv-heuristic",
    title="the zero-bubble authors' V-shaped heuristic under a memory limit",
    placement="v",
    shapes="any ranks and microbatches; the same times and memory on every stage",
    bubble=Formula("none with p activations, m >= 2p-1, F = I = W and free transfers; little with 1.5p in general"),
    memory=Formula(
        "within the limit, which is at least p activations per rank (less may do for m < p)",
        lambda shape: min(shape.ranks, shape.microbatches),
    ),
    paper="Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 6",
    build=FromCosts(build_zbv_heuristic, default_limit="p activations (2p chunk activations)"),
    chunks=2,
)

FAMILY = (zbv_heuristic,)
