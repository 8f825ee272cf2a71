"""``zb-auto``: the one-chunk zero-bubble schedule that its authors' greedy heuristic finds under a memory limit.

Stage r on rank r. A warm-up as long as memory and the return of the first microbatch allow, then in each round a forward
and an I on every rank, with Ws where a rank would idle or is out of memory. Three choices that no rule decides well (may a
rank idle before its first I; may it skip a forward for an I's sake; may a W delay an op) are all tried. ZB-1p is this under
p activations a rank, here with 3 ranks, 4 microbatches and equal times; ZB-2p is it under 2p::

    rank 0   0F0 0F1 0F2  .   .  0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3
    rank 1       1F0 1F1  .  1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3
    rank 2           2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3

Qi, Wan, Huang, Lin: Zero Bubble Pipeline Parallelism, ICLR 2024, section 3.1.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from pipeplan.costs import Costs, Limits
from pipeplan.model import Kind, Placement, Schedule
from pipeplan.strategies.greedy_rank import (
    Arrivals,
    GreedyRank,
    RankCosts,
    greedy_ranks,
    largest_bubble,
    rank_costs,
    to_schedule,
)
from pipeplan.strategies.protocol import Formula, FromCosts, Shape, Strategy


class Switches(NamedTuple):
    """The heuristic's three switches.

    Attributes
    ----------
    early
        Whether a rank may idle before its first I: the last warm-up forward ends in time for it.
    prioritize
        Whether a rank that is ahead of the next one skips a forward so that the next I is not late.
    greedy
        Whether a W goes into any wait, however short.
    """

    early: bool
    prioritize: bool
    greedy: bool


CHOICES = tuple(Switches(*choice) for choice in product((True, False), repeat=3))
"""All are tried, in this order."""


def build_zb_auto(shape: Shape, costs: Costs, limits: Limits | None = None) -> Schedule:
    """The heuristic's schedule of least longest span over its eight settings.

    Parameters
    ----------
    shape
        p and m.
    costs
        Of p stages, each with its own times and memory.
    limits
        The limit of every rank; none where none is given.

    Raises
    ------
    InfeasibleError
        If a limit is less than one microbatch alone holds on its rank.
    """
    placement = Placement.linear(shape.ranks)
    per_rank = rank_costs(placement, costs, limits)
    for rank, of_rank in enumerate(per_rank):
        of_rank.require_room(zb_auto.name, rank, of_rank.forward_room, "one microbatch alone holds that much")
    best = best_run(per_rank, shape.microbatches, costs.transfer.time())
    return to_schedule(best, placement, shape.microbatches)


def best_run(per_rank: list[RankCosts], microbatches: int, transfer: float) -> list[GreedyRank]:
    """The ranks with all ops placed, under the first choice of least longest span."""
    runs = (_Heuristic(per_rank, microbatches, transfer, choice).run() for choice in CHOICES)
    return min(runs, key=_longest_span)


def _longest_span(ranks: list[GreedyRank]) -> float:
    return max(rank.span for rank in ranks)


class _Heuristic:
    def __init__(self, per_rank: list[RankCosts], microbatches: int, transfer: float, choice: Switches) -> None:
        self.ranks = greedy_ranks(per_rank, chunks=1)
        self.arrivals = Arrivals(Placement.linear(len(per_rank)), self.ranks, transfer)
        self.last = len(per_rank) - 1
        self.microbatches = microbatches
        self.transfer = transfer
        self.choice = choice

    def run(self) -> list[GreedyRank]:
        self._warm_up()
        for _ in range(1, self.microbatches):
            self._round()
        for rank in self.ranks:
            rank.finish()
        return self.ranks

    def _forward(self, rank: int) -> None:
        here = self.ranks[rank]
        arrives = self.arrivals.of(Kind.F, rank) or 0.0
        self._prepare(here, here.costs.forward_room, arrives)
        here.place_forward(0, arrives)

    def _input(self, rank: int) -> None:
        here = self.ranks[rank]
        arrives = self.arrivals.of(Kind.I, rank) or 0.0
        self._prepare(here, here.costs.input_change, arrives)
        here.place_input(0, arrives)

    def _prepare(self, here: GreedyRank, change: float, arrives: float) -> None:
        """Ws that make room for the next op or fill the wait for what it needs."""
        here.make_room(change)
        here.fill_wait(arrives)
        wait = arrives - here.clock
        if here.owed and wait > 0 and (self.choice.greedy or wait > largest_bubble(self.ranks) - here.bubble):
            here.place_weight()

    # Warm-up

    def _warm_up(self) -> None:
        """The forwards before each rank's first I, and that I."""
        for rank in range(self.last + 1):
            self._forward(rank)
        for rank, more in enumerate(self._more_forwards()):
            for _ in range(more):
                self._forward(rank)
        for rank in range(self.last, -1, -1):
            self._input(rank)

    def _more_forwards(self) -> list[int]:
        """How many forwards each rank does beyond the first while the first microbatch travels down and back."""
        more = [0] * (self.last + 1)
        returns = self.ranks[self.last].clock + self.ranks[self.last].costs.backward_input
        for rank in range(self.last - 1, -1, -1):
            here = self.ranks[rank]
            more[rank] = self._forwards_until(here, returns + self.transfer)
            busy = here.clock + more[rank] * here.costs.forward
            returns = max(busy, returns + self.transfer) + here.costs.backward_input
        return self._descending(more)

    def _forwards_until(self, here: GreedyRank, deadline: float) -> int:
        """Forwards that fit into memory and the wait; with ``early`` none ends late, without it none starts late."""
        clock, count = here.clock, 0
        forward = here.costs.forward
        while count + 1 < self.microbatches and here.fits(count * here.costs.held + here.costs.forward_room):
            late = clock + forward > deadline if self.choice.early else clock >= deadline
            if late:
                break
            clock += forward
            count += 1
        return count

    def _descending(self, more: list[int]) -> list[int]:
        """Each rank fewer than the one before it, unless it does all microbatches, and never more."""
        for rank in range(1, self.last + 1):
            more[rank] = min(more[rank], more[rank - 1])
            if more[rank] == more[rank - 1] and 1 + more[rank] < self.microbatches:
                more[rank] = max(more[rank] - 1, 0)
        return more

    # Rounds: a forward where one is due, then an I

    def _round(self) -> None:
        for rank, due in enumerate(self._forwards_due()):
            if due:
                self._forward(rank)
        for rank in range(self.last, -1, -1):
            if rank == 0 and len(self.ranks[0].forwards[0]) == self.microbatches:
                self.ranks[0].finish()
            self._input(rank)

    def _forwards_due(self) -> list[bool]:
        """Which ranks do a forward this round; one does only if the next rank does."""
        due = [len(rank.forwards[0]) < self.microbatches for rank in self.ranks]
        for rank in range(self.last - 1, -1, -1):
            due[rank] = due[rank] and due[rank + 1] and not (self.choice.prioritize and self._skips(rank))
        return due

    def _skips(self, rank: int) -> bool:
        """Whether a forward here would delay the I that the next rank can hand over after its own next forward and I."""
        here, following = self.ranks[rank], self.ranks[rank + 1]
        if len(here.forwards[0]) < len(following.forwards[0]) + 2:
            return False
        due = following.clock + following.costs.forward + following.costs.backward_input + self.transfer
        if here.clock >= due:
            return True
        if here.clock + here.costs.forward + self._time_for_room(here) <= due:
            return False
        return due - here.clock <= largest_bubble(self.ranks) - here.bubble

    @staticmethod
    def _time_for_room(here: GreedyRank) -> float:
        """How long the Ws take that must go before the next forward fits."""
        count = 0
        while count < len(here.owed) and not here.fits(here.costs.forward_room - count * here.costs.freed_by_weight):
            count += 1
        return count * here.costs.backward_weight


zb_auto = Strategy(
    name="zb-auto",
    title="the zero-bubble authors' heuristic under a memory limit: ZB-1p with p activations, ZB-2p with 2p",
    placement="linear",
    shapes="any ranks and microbatches; times, memory and limits of each rank its own",
    bubble=Formula("about that of ZB-H1 with p activations, near none with 2p"),
    memory=Formula("within the limit, from one activation a rank"),
    paper="Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 3.1",
    build=FromCosts(build_zb_auto, default_limit="none"),
)

FAMILY = (zb_auto,)
