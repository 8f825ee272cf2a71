"""Proofs that look at a few ranks: what these cannot do any sooner, whatever the others do, no schedule can.

Where memory is short it is often a single rank that holds up all others, and its jobs are few: a proof takes a second where
one over all ranks would take hours. Where one rank is not enough, it is looked at together with another: on random
instances of 3 to 6 ranks under tight limits, two or three ranks mostly prove what all of them would.

A solver is never asked for the least value, only whether a value can be kept to: that it cannot is shown the sooner, the
smaller the value is, so every answer raises the bound, and the time goes where it still can be raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pipeplan.solver.exact.engine import REASON
from pipeplan.solver.exact.model import ExactModel
from pipeplan.solver.exact.proof import Proof, Proofs, Task, can_prove, solver_seconds_left
from pipeplan.solver.exact.scope import Scope
from pipeplan.solver.run import Run

Ranks = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FewRanks:
    """Raises the bound by exact proofs over one rank, then over more of them.

    Every set of ranks gets a little time for each question; one that takes longer is asked for less, and gets twice as much
    in the next round. To the set that is done and has the highest bound every other rank is added in turn.

    Attributes
    ----------
    largest
        It leaves alone sets of ranks with more ops than this.
    share
        How much of what is left of the budget it may spend.
    first_seconds
        How long a question may take in the first round, in seconds of the solver's.
    step
        Bounds are raised by at least this share at a time, as long as a value may be so much higher.
    """

    largest: int = 400
    share: float = 0.4
    first_seconds: float = 0.25
    step: float = 0.001

    def __call__(self, run: Run) -> None:
        """Prove; does nothing without OR-Tools. On a budget of evaluations it gives the same answer every time."""
        if can_prove(run) and not run.is_over:
            sets = _Sets(self, Proofs(run))
            side_by_side = 1 if sets.proofs.repeatable else run.workers
            sets.proofs.carry_out(sets.next, sets.learn, side_by_side=side_by_side)


class _Set:
    """A set of ranks, and what is proven of it.

    Attributes
    ----------
    low, high
        The least value that the ranks can keep to is at least ``low``, and at most ``high`` or better than any that helps.
    seconds
        How long the next question may take.
    stride
        How far above ``low`` the next question asks.
    """

    def __init__(self, integers_of: Proofs, ranks: Ranks, low: int, seconds: float) -> None:
        self._proofs, self.ranks, self.low, self.seconds = integers_of, ranks, low, seconds
        self.high = integers_of.beaten
        self.stride = 0
        self.at_work = False

    @cached_property
    def model(self) -> ExactModel:
        """The constraints of these ranks."""
        integers = self._proofs.integers
        return ExactModel(integers, 0, self._proofs.beaten - 1, Scope(integers, self.ranks))

    @property
    def finished(self) -> bool:
        """Whether it is known what the ranks can keep to, or that they can keep to what is proven otherwise."""
        return min(self.high, self._proofs.beaten) <= max(self.low, self._proofs.least)

    @property
    def reason(self) -> str:
        """Why no schedule is better, in words."""
        if self.model.scope.whole:
            return REASON
        if len(self.ranks) == 1:
            return f"rank {self.ranks[0]} alone cannot be done sooner: the exact solver's proof"
        listed = ", ".join(map(str, self.ranks[:-1]))
        return f"ranks {listed} and {self.ranks[-1]} together cannot be done sooner: the exact solver's proof"


class _Sets:
    """The sets of ranks that are looked at, and how far each is."""

    def __init__(self, options: FewRanks, proofs: Proofs) -> None:
        self.options, self.proofs, self.run = options, proofs, proofs.run
        self.until = (1 - options.share) * solver_seconds_left(self.run)
        self.seconds = options.first_seconds
        self.sets: dict[Ranks, _Set] = {}
        for rank in range(self.run.problem.placement.ranks):
            self._add((rank,), 0)

    def next(self) -> Proof | None:
        """The next question; None while there is none, or when the time is up."""
        left = solver_seconds_left(self.run) - self.until
        if left <= 0:
            return None
        waiting = [one for one in self.sets.values() if not (one.finished or one.at_work)]
        if all(one.seconds > self.seconds for one in waiting):
            if any(one.at_work and one.seconds <= self.seconds for one in self.sets.values()):
                return None
            if not self._grow():
                if not waiting:
                    return None
                self.seconds *= 2
            return self.next()
        soon = [one for one in waiting if one.seconds <= self.seconds]
        return self._question(min(soon, key=lambda one: (-one.low, -len(one.ranks), one.ranks)), left)

    def _question(self, one: _Set, left: float) -> Proof:
        """Whether a set can keep to what is proven otherwise, and then to more and more."""
        least = max(one.low, self.proofs.least)
        most = min(least + one.stride, min(one.high, self.proofs.beaten) - 1)
        task = Task(least=least, most=most, first=True, seconds=min(one.seconds, left))
        one.at_work = True
        return Proof(one.model, task, reason=one.reason, seed=self.run.seed, repeatable=self.proofs.repeatable)

    def learn(self, proof: Proof) -> None:
        """Take what a proof tells of its set."""
        one = self.sets[tuple(proof.model.scope.ranks)]
        one.at_work = False
        smallest = max(int(self.options.step * self.proofs.least), 1)
        if proof.value is not None:
            one.high = proof.value
            one.stride = (one.high - one.low) // 2
        elif proof.finished:
            one.low = proof.bound
            gap = min(one.high, self.proofs.beaten) - one.low
            one.stride = min(max(2 * one.stride, smallest), gap // 2) if one.high < self.proofs.beaten else gap // 2
        else:
            one.stride //= 4
            one.seconds *= 2

    def _add(self, ranks: Ranks, low: int) -> bool:
        """Take a set of ranks, unless it is known or too large."""
        ops = sum(len(self.proofs.integers.jobs_on(rank)) for rank in ranks)
        if ranks in self.sets or ops > self.options.largest:
            return False
        self.sets[ranks] = _Set(self.proofs, ranks, low, self.seconds)
        return True

    def _grow(self) -> bool:
        """Add every other rank in turn to the best sets that are done; whether there was one to add."""
        done = sorted((one for one in self.sets.values() if one.finished), key=lambda one: (-one.low, -len(one.ranks)))
        best = [one for one in done if (one.low, len(one.ranks)) == (done[0].low, len(done[0].ranks))]
        ranks = set(range(self.run.problem.placement.ranks))
        added = [
            self._add(tuple(sorted((*one.ranks, rank))), one.low)
            for one in best
            for rank in sorted(ranks.difference(one.ranks))
        ]
        return any(added)
