"""Engines that prove: over all ranks, and over a few.

No schedule can be faster than a few ranks allow. Where memory is short it is often a single rank that holds up all others,
and its jobs are few: a proof takes a second where one over all ranks would take hours. Where one rank is not enough, it is
looked at together with another: on random instances of 3 to 6 ranks under tight limits, two or three ranks mostly prove what
all of them would.

For a few ranks the solver never minimizes: each question is whether a value is feasible. The smaller the value, the sooner
it is proven infeasible, so every such proof raises the bound, and the time is spent where the bound can still be raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

from pipeplan.extensions.search.exact.model import ExactModel
from pipeplan.extensions.search.exact.proof import Proof, Proofs, ProofTask, can_prove, proven, solver_seconds_left
from pipeplan.extensions.search.exact.scope import Scope
from pipeplan.extensions.search.run import Run

Ranks = tuple[int, ...]

Looked = tuple[Ranks, bool]
"""A set of ranks, and whether the flow through all others is looked at."""

BEST_FIRST = 4
"""Factor by which the set with the highest bound may take longer than the others."""

CLOSE = 0.004
"""Relative precision at which the least value of some ranks is known well enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FewRanks:
    """Raises the bound by exact proofs over one rank, then over more of them.

    Every set of ranks gets a little time for each question. After a timeout, the next question asks for a smaller increase
    and has twice the time. To the set that is done and has the highest bound the flow through all others is
    added, and every other rank in turn.

    Attributes
    ----------
    largest
        Most ops of a set of ranks that it tries.
    share
        Share of the remaining budget that it may spend.
    patience
        Share of its budget without progress after which it stops, because the bound is then probably the optimum.
    first_seconds
        Limit of a question in the first round, in seconds of the solver.
    step
        Bounds are raised by about this share at first, and by twice as much after each success.
    """

    largest: int = 300
    share: float = 0.4
    patience: float = 0.6
    first_seconds: float = 0.06
    step: float = 0.01

    def __call__(self, run: Run) -> None:
        """Prove; do nothing without OR-Tools. On a budget of evaluations the answer is the same every time."""
        least = min(stop - start for start, stop in pairwise(run.encoder.offsets.tolist()))
        if least <= self.largest and can_prove(run) and not run.is_over:
            sets = _Sets(self, Proofs(run))
            side_by_side = 1 if sets.proofs.repeatable else run.workers
            sets.proofs.carry_out(sets.next, sets.update_bounds, side_by_side=side_by_side)


class _Set:
    """A set of ranks, and the bounds proven for it.

    Attributes
    ----------
    low, high
        The least value that the ranks can keep to is at least ``low``, and at most ``high`` or better than any that helps.
    promise
        The bound that is proven for a part of it.
    seconds
        Limit of the next question, in seconds of the solver.
    close
        Difference of ``low`` and ``high`` from which on the set is done.
    stride
        Distance of the next question above ``low``.
    """

    def __init__(self, proofs: Proofs, looked: Looked, promise: int, seconds: float) -> None:
        self._proofs, self.looked, self.promise, self.seconds = proofs, looked, promise, seconds
        self.ranks, self.flow = looked
        self.low, self.high = 0, proofs.beaten
        self.stride = 0
        self.at_work = False
        every = len(self.ranks) == proofs.run.problem.placement.ranks
        self.close = 0 if every else int(CLOSE * proofs.least)

    @cached_property
    def model(self) -> ExactModel:
        """Model of these ranks."""
        integers = self._proofs.integers
        return ExactModel(integers, 0, self._proofs.beaten - 1, Scope(integers, self.ranks, flow=self.flow))

    @property
    def finished(self) -> bool:
        """True if the least value of these ranks is known, or is not above a bound that is proven otherwise."""
        low, beaten = max(self.low, self._proofs.least), self._proofs.beaten
        return min(self.high, beaten) <= low or (self.high < beaten and self.high - low < self.close)

    @property
    def reason(self) -> str:
        """Reason of the bound, as a sentence."""
        *others, last = map(str, self.ranks)
        some = f"ranks {', '.join(others)} and {last} together" if others else f"rank {last} alone"
        whole = self.model.scope.whole
        return proven(NOTHING_BETTER if whole else f"{some} cannot be done sooner", self._proofs.run.problem)


class _Sets:
    """The sets of ranks that are looked at, and how far each is."""

    def __init__(self, options: FewRanks, proofs: Proofs) -> None:
        self.options, self.proofs, self.run = options, proofs, proofs.run
        self.risen = solver_seconds_left(self.run)
        self.until = (1 - options.share) * self.risen
        self.patience = options.patience * options.share * self.risen
        self.least = self.proofs.least
        self.seconds = options.first_seconds
        self.may_grow = True
        self.sets: dict[Looked, _Set] = {}
        for rank in range(self.run.problem.placement.ranks):
            self._add((rank,), 0, flow=False)

    def next(self) -> Proof | None:
        """Return the next proof; None while there is none, or when the time is up."""
        now = solver_seconds_left(self.run)
        if self.proofs.least > self.least:
            self.least, self.risen = self.proofs.least, now
        left = min(now - self.until, now - (self.risen - self.patience))
        # Sets whose questions fit into the time of this round, the highest bound first; then larger sets; then more time.
        while left > 0:
            open_ = [one for one in self.sets.values() if not one.finished]
            low = max((one.low for one in open_), default=0)
            soon = [one for one in open_ if one.seconds <= self.seconds * (BEST_FIRST if one.low == low > 0 else 1)]
            if waiting := [one for one in soon if not one.at_work]:
                return self._question(min(waiting, key=_by_promise), left)
            if soon:
                return None
            if self.may_grow or not open_:
                self.may_grow = False
                if self._grow():
                    continue
            if not open_:
                # Exact values of sets that were known well enough.
                rough = [one for one in self.sets.values() if one.close]
                for one in rough:
                    one.close = 0
                if not rough:
                    return None
            self.seconds *= 2
            self.may_grow = True
        return None

    def _question(self, one: _Set, left: float) -> Proof:
        """Return the next proof for a set of ranks: that it cannot keep to the bound, nor to a few units more."""
        least = max(one.low, self.proofs.least)
        most = min(least + one.stride, min(one.high, self.proofs.beaten) - 1)
        task = ProofTask(least=least, most=most, first=True, seconds=min(one.seconds, left))
        one.at_work = True
        return Proof(one.model, task, reason=one.reason, seed=self.run.seed, repeatable=self.proofs.repeatable)

    def update_bounds(self, proof: Proof) -> None:
        """Update the bounds of a set by the outcome of its proof."""
        scope = proof.model.scope
        one = self.sets[tuple(scope.ranks), scope.flow]
        one.at_work = False
        step = max(int(self.options.step * self.proofs.least), 1)
        # Possible: ask below it. Impossible: the bound is proven, ask twice as far above. Unknown: ask for less, longer.
        if proof.value is not None:
            one.high = proof.value
            one.stride = (one.high - max(one.low, self.proofs.least)) // 2
        elif proof.finished:
            one.low = proof.bound
            one.stride = max(2 * one.stride, step)
            if one.high < self.proofs.beaten:
                one.stride = min(one.stride, (one.high - one.low) // 2)
        else:
            one.stride //= 4
            one.seconds *= 2

    def _add(self, ranks: Ranks, promise: int, *, flow: bool) -> bool:
        """Add a set of ranks, unless it is there or too large; return true if it was added."""
        ops = sum(len(self.proofs.integers.jobs_on(rank)) for rank in ranks)
        if (ranks, flow) in self.sets or ops > self.options.largest:
            return False
        self.sets[ranks, flow] = _Set(self.proofs, (ranks, flow), promise, self.seconds)
        return True

    def _grow(self) -> bool:
        """Add the best set with the flow through the others, and with each other rank; return true if any set was new."""
        if not self.sets:
            return False
        low = max(one.low for one in self.sets.values())
        best = [one for one in self.sets.values() if one.low == low]
        most = max(len(one.ranks) for one in best)
        ranks = set(range(self.run.problem.placement.ranks))
        added = []
        for one in best:
            if len(one.ranks) == most < len(ranks):
                added.append(len(best) == 1 and self._add(one.ranks, low, flow=True))
                added += [
                    self._add(tuple(sorted((*one.ranks, rank))), low, flow=False)
                    for rank in sorted(ranks.difference(one.ranks))
                ]
        return any(added)


def _by_promise(one: _Set) -> tuple[int, int, int, Looked]:
    """Sort key: the highest bound first, then more ranks, then ranks far apart, whose round trips differ the most."""
    return -max(one.low, one.promise), -len(one.ranks), one.ranks[0] - one.ranks[-1], one.looked


NOTHING_BETTER = "no schedule is better"
"""Reason of a bound that considers every rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Proves the best schedule optimal, or finds better ones.

    It uses the best schedule only as a value to beat. On small instances the proof that nothing beats the optimum takes a
    second or two; finding the optimum from nothing takes ten times that, so that it runs after the engines that find good
    schedules fast.

    Its model has no overlapped pairs, no microbatches that differ or are recomputed or offloaded, no slices, and no
    transfers that queue: it leaves problems alone whose schedules have them.

    Attributes
    ----------
    largest
        It leaves alone problems of more ops than this.
    share
        Share of the remaining budget that it may spend.
    required
        True if the engine raises an error without OR-Tools; otherwise it does nothing then.
    """

    largest: int = 800
    share: float = 1.0
    required: bool = True

    def __call__(self, run: Run) -> None:
        """Search and prove. On a budget of evaluations it uses one worker and returns the same answer every time.

        Raises
        ------
        MissingExtraError
            If OR-Tools is not installed, and ``required``.
        """
        if not can_prove(run, required=self.required) or run.is_over:
            return
        proofs = Proofs(run)
        proofs.raise_to_unit()
        if proofs.integers.size > self.largest or proofs.beaten <= proofs.least:
            return
        model = ExactModel(proofs.integers, proofs.least, proofs.beaten - 1)
        task = ProofTask(
            least=proofs.least,
            most=proofs.beaten - 1,
            seconds=self.share * solver_seconds_left(run),
            workers=run.workers,
        )
        reason = proven(NOTHING_BETTER, run.problem)
        waiting = iter([Proof(model, task, reason=reason, seed=run.seed, repeatable=proofs.repeatable)])
        proofs.carry_out(partial(next, waiting, None), lambda proof: None, side_by_side=1)
