"""The second opinion: every order of the jobs of a tiny case, one by one.

Jobs are placed in the order of their starts (of equal ones the lower rank first), each as soon as it can. Every job takes
time, so whatever it waits for started before it: each order of each rank is reached exactly once. Microbatches, alike in
every number, are numbered in the order in which they begin, and nothing else is assumed about them. A branch is left only
when no rest of it can beat the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.extensions.search.case import WholeCase
from tests.extensions.search.replay import Job, Turn, change, duration


@dataclass
class Enumeration:
    """The search over all orders of a case; ``best`` is None where none fits."""

    shop: WholeCase
    best: int | None = None
    rows: list[list[Turn]] | None = None
    visited: int = 0
    _now: list[list[Turn]] = field(init=False)
    _free: list[int] = field(init=False)
    _first: list[int | None] = field(init=False)
    _held: list[int] = field(init=False)
    _left: list[int] = field(init=False)
    _end: dict[Job, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        case = self.shop.case
        ranks = range(case.ranks)
        self._now = [[] for _ in ranks]
        self._free = [0 for _ in ranks]
        self._first = [None for _ in ranks]
        self._held = [0 for _ in ranks]
        self._left = [2 * case.microbatches * len(case.stages_on(rank)) for rank in ranks]
        self._place((0, -1))

    def _place(self, after: tuple[int, int]) -> None:
        """Go on with every turn that starts after the given time and rank."""
        self.visited += 1
        if not any(self._left):
            self._keep()
            return
        for rank in range(self.shop.case.ranks):
            for turn in self._turns(rank):
                begin = max(self._free[rank], *(self._ready(job) for job in turn))
                if (begin, rank) > after and self._fits(rank, turn) and not self._is_beaten(rank, begin, turn):
                    self._do(rank, begin, turn, after)

    def _do(self, rank: int, begin: int, turn: Turn, after: tuple[int, int]) -> None:
        before = self._free[rank], self._first[rank], self._held[rank], self._left[rank]
        self._free[rank] = begin + duration(self.shop, turn)
        self._first[rank] = begin if self._first[rank] is None else self._first[rank]
        for job in turn:
            self._held[rank] += change(self.shop, job)
            self._left[rank] += {"F": -1, "B": -1, "I": 0, "W": -1}[job.kind]
            self._end[job] = self._free[rank]
        self._now[rank].append(turn)
        self._place((begin, rank))
        self._now[rank].pop()
        for job in turn:
            del self._end[job]
        self._free[rank], self._first[rank], self._held[rank], self._left[rank] = before

    def _turns(self, rank: int) -> Iterator[Turn]:
        """What a rank could do next: everything whose inputs are done, and pairs of such."""
        forwards: list[Job] = []
        backwards: list[Job] = []
        for stage in self.shop.case.stages_on(rank):
            for microbatch in range(self.shop.case.microbatches):
                forward, full, inputs, weights = (Job(kind, stage, microbatch) for kind in "FBIW")
                if forward not in self._end:
                    begun = microbatch == 0 or Job("F", 0, microbatch - 1) in self._end
                    if begun if stage == 0 else self._done(stage - 1, microbatch, "F") is not None:
                        forwards.append(forward)
                elif full not in self._end and inputs not in self._end:
                    if stage == self.shop.case.stages - 1 or self._done(stage + 1, microbatch, "BI") is not None:
                        backwards += [full, inputs] if self.shop.case.split else [full]
                elif inputs in self._end and weights not in self._end:
                    yield (weights,)
        for job in (*forwards, *backwards):
            yield (job,)
        if self.shop.pairs is not None:
            for forward in forwards:
                for backward in backwards:
                    yield forward, backward

    def _done(self, stage: int, microbatch: int, kinds: str) -> int | None:
        ends = (self._end.get(Job(kind, stage, microbatch)) for kind in kinds)
        return next((end for end in ends if end is not None), None)

    def _ready(self, job: Job) -> int:
        """When what a job waits for has arrived; all of it is done."""
        kind, stage, microbatch = job
        if kind == "W":
            return self._done(stage, microbatch, "I") or 0
        if kind == "F":
            source, kinds = stage - 1, "F"
        else:
            source, kinds = stage + 1, "BI"
        own = 0 if kind == "F" else self._done(stage, microbatch, "F") or 0
        if not 0 <= source < self.shop.case.stages:
            return own
        return max(own, (self._done(source, microbatch, kinds) or 0) + self.shop.transfer_between(source, stage))

    def _fits(self, rank: int, turn: Turn) -> bool:
        cap, held = self.shop.caps[rank], self._held[rank]
        for job in turn:
            held += change(self.shop, job)
            if cap is not None and held > cap:
                return False
        return True

    def _is_beaten(self, rank: int, begin: int, turn: Turn) -> bool:
        if self.best is None:
            return False
        first = self._first[rank]
        since = 0 if self.shop.case.objective == "makespan" else begin if first is None else first
        return begin + duration(self.shop, turn) - since >= self.best

    def _keep(self) -> None:
        spans = [free - (first or 0) for free, first in zip(self._free, self._first, strict=True)]
        value = max(self._free if self.shop.case.objective == "makespan" else spans)
        if self.best is None or value < self.best:
            self.best, self.rows = value, [list(row) for row in self._now]
