"""``zb-auto``: the one-chunk zero-bubble schedule of its authors' greedy heuristic under a memory limit."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

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


class Switches(NamedTuple):
    """The heuristic's three switches.

    Attributes
    ----------
    early
        If True, a rank may idle before its first I: its last warm-up forward ends before that I can start.
    prioritize
        If True, a rank that is ahead of the next one skips a forward so that its next I is not late.
    greedy
        If True, a W fills any wait, even a shorter one.
    """

    early: bool
    prioritize: bool
    greedy: bool


EARLY, PRIORITIZE, GREEDY = range(3)

CHOICES = tuple(Switches(*choice) for choice in product((True, False), repeat=3))
"""All combinations of the switches, in the order in which they are tried."""


def build_zb_auto(shape: Shape, costs: Costs, limits: Limits | None = None) -> Schedule:
    """A warm-up as long as memory allows, then a forward and an I per round, with Ws where a rank would idle.

    This is the zero-bubble authors' greedy heuristic for one chunk per rank. Three choices are not decided by a rule:
    may a rank idle before its first I, may it skip a forward to run an I earlier, and may a W delay another op. All
    combinations are tried, and the schedule with the smallest longest span wins. ZB-1p is this heuristic with p
    activations per rank, ZB-2p with 2p.

    Three ranks, four microbatches, p activations, equal times::

        rank 0 | 0F0 0F1 0F2 .   .   0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3
        rank 1 | .   1F0 1F1 .   1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3
        rank 2 | .   .   2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3

    Idle time is about that of ZB-H1 with p activations, and almost none with 2p. The peak is within the limit, which
    must hold at least one microbatch on each rank. Any shape is valid; times, memory and limits may differ between
    ranks.

    Source: Qi, Wan, Huang, Lin, Zero Bubble Pipeline Parallelism (2024), section 3.1.

    Raises
    ------
    InfeasibleError
        If a limit is less than one microbatch needs on its rank.
    """
    placement = Placement.linear(shape.ranks)
    per_rank = rank_costs(placement, costs, limits)
    for rank, of_rank in enumerate(per_rank):
        of_rank.require_room(zb_auto.name, rank, of_rank.forward_room, "the memory of one microbatch")
    best = best_run(per_rank, shape.microbatches, costs.transfer.time())
    return to_schedule(best, placement, shape.microbatches)


def best_run(per_rank: list[RankCosts], microbatches: int, transfer: float) -> list[GreedyRank]:
    """Return the ranks with all ops placed, under the first setting with the smallest longest span."""
    runs: list[_Heuristic] = []
    for choice in CHOICES:
        # A setting that differs only in switches that changed nothing gives the same ops again.
        if not any(run.same_under(choice) for run in runs):
            runs.append(_Heuristic(per_rank, microbatches, transfer, choice))
            runs[-1].run()
    return min((run.ranks for run in runs), key=lambda ranks: max(rank.span for rank in ranks))


class _Heuristic:
    def __init__(self, per_rank: list[RankCosts], microbatches: int, transfer: float, choice: Switches) -> None:
        self.ranks = greedy_ranks(per_rank, chunks=1)
        self.arrivals = ArrivalTimes(Placement.linear(len(per_rank)), self.ranks, transfer)
        self.last = len(per_rank) - 1
        self.microbatches = microbatches
        self.transfer = transfer
        self.choice = choice
        # Which switches decided anything. Known only of those that are on, which are tried first.
        self.decided = [not on for on in choice]

    def run(self) -> None:
        self._warm_up()
        for _ in range(1, self.microbatches):
            self._round()
        for rank in self.ranks:
            rank.finish()

    def same_under(self, choice: Switches) -> bool:
        """Return True if this run is known to place the same ops under another setting."""
        return all(
            ours == theirs or not decided
            for ours, theirs, decided in zip(self.choice, choice, self.decided, strict=True)
        )

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
        """Place Ws that make room for the next op or fill the wait for its input."""
        here.make_room(change)
        here.fill_wait(arrives)
        wait = arrives - here.clock
        if here.owed and wait > 0:
            if wait > here.largest_bubble - here.bubble:
                here.place_weight()
            elif self.choice.greedy:
                self.decided[GREEDY] = True
                here.place_weight()

    # Warm-up

    def _warm_up(self) -> None:
        """Place the forwards before each rank's first I, and that I."""
        for rank in range(self.last + 1):
            self._forward(rank)
        extra = self._more_forwards(early=self.choice.early)
        self.decided[EARLY] |= extra != self._more_forwards(early=False)
        for rank, count in enumerate(extra):
            for _ in range(count):
                self._forward(rank)
        for rank in range(self.last, -1, -1):
            self._input(rank)

    def _more_forwards(self, *, early: bool) -> list[int]:
        """Return the number of forwards on each rank, beyond the first, while the first microbatch travels down and back."""
        extra = [0] * (self.last + 1)
        returns = self.ranks[self.last].clock + self.ranks[self.last].costs.backward_input
        for rank in range(self.last - 1, -1, -1):
            here = self.ranks[rank]
            extra[rank] = self._forwards_until(here, returns + self.transfer, early=early)
            busy = here.clock + extra[rank] * here.costs.forward
            returns = max(busy, returns + self.transfer) + here.costs.backward_input
        return self._descending(extra)

    def _forwards_until(self, here: GreedyRank, deadline: float, *, early: bool) -> int:
        """Return how many forwards fit into memory and the wait.

        With ``early`` none may end after the deadline, else none may start after it.
        """
        clock, count = here.clock, 0
        forward = here.costs.forward
        while count + 1 < self.microbatches and here.fits(count * here.costs.held + here.costs.forward_room):
            late = clock + forward > deadline if early else clock >= deadline
            if late:
                break
            clock += forward
            count += 1
        return count

    def _descending(self, extra: list[int]) -> list[int]:
        """Limit each rank to fewer forwards than the previous one, unless it does all microbatches."""
        for rank in range(1, self.last + 1):
            extra[rank] = min(extra[rank], extra[rank - 1])
            if extra[rank] == extra[rank - 1] and 1 + extra[rank] < self.microbatches:
                extra[rank] = max(extra[rank] - 1, 0)
        return extra

    # Rounds: on every rank a forward, if one is due, then an I

    def _round(self) -> None:
        for rank, due in enumerate(self._forwards_due()):
            if due:
                self._forward(rank)
        for rank in range(self.last, -1, -1):
            if rank == 0 and len(self.ranks[0].forwards[0]) == self.microbatches:
                self.ranks[0].finish()
            self._input(rank)

    def _forwards_due(self) -> list[bool]:
        """Return a flag per rank: True if it runs a forward in this round, which requires that the next rank does too."""
        due = [len(rank.forwards[0]) < self.microbatches for rank in self.ranks]
        for rank in range(self.last - 1, -1, -1):
            due[rank] = due[rank] and due[rank + 1]
            if due[rank] and self.choice.prioritize and self._skips(rank):
                self.decided[PRIORITIZE] = True
                due[rank] = False
        return due

    def _skips(self, rank: int) -> bool:
        """Return True if a forward here would delay the I that follows the next rank's next forward and I."""
        here, following = self.ranks[rank], self.ranks[rank + 1]
        if len(here.forwards[0]) < len(following.forwards[0]) + 2:
            return False
        due = following.clock + following.costs.forward + following.costs.backward_input + self.transfer
        if here.clock >= due:
            return True
        if here.clock + here.costs.forward + self._time_for_room(here) <= due:
            return False
        return due - here.clock <= here.largest_bubble - here.bubble

    @staticmethod
    def _time_for_room(here: GreedyRank) -> float:
        """Return the time of the Ws that must run before the next forward fits."""
        count = 0
        while count < len(here.owed) and not here.fits(here.costs.forward_room - count * here.costs.freed_by_weight):
            count += 1
        return count * here.costs.backward_weight


zb_auto = Strategy(
    name="zb-auto",
    title="the zero-bubble authors' heuristic under a memory limit: ZB-1p with p activations, ZB-2p with 2p",
    placement="linear",
    shapes="any ranks and microbatches; times, memory and limits may differ between ranks",
    bubble=Formula("about that of ZB-H1 with p activations, almost none with 2p"),
    memory=Formula("within the limit, which is at least one activation per rank"),
    paper="Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 3.1",
    build=FromCosts(build_zb_auto, default_limit="none"),
)

FAMILY = (zb_auto,)
