"""Every order of the ops of a tiny step whose microbatches differ, one by one: a second opinion that knows no turns.

Ops are placed in the order of their starts (of equal ones the lower rank first), each as soon as it can, as in
``independent_enumeration``; nothing is assumed about which microbatch goes when. A branch is left where a rank's remaining
work alone takes it to the best or beyond.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeplan.model.op import Kind, Op


class Job(NamedTuple):
    """An op: F, I and W, or F and B."""

    kind: str
    stage: int
    microbatch: int


@dataclass
class Step:
    """A step: times by kind, stage and microbatch, transfers by stage, and what a forward holds until its W or B.

    ``best`` is the least makespan, None where nothing fits.
    """

    ranks: tuple[int, ...]
    times: dict[str, list[list[int]]]
    transfer: list[list[int]]
    held: list[list[int]]
    limit: int | None = None
    best: int | None = None
    rows: list[list[Op]] = field(default_factory=list)
    _free: list[int] = field(init=False)
    _held: list[int] = field(init=False)
    _left: list[int] = field(init=False)
    _end: dict[Job, int] = field(default_factory=dict)
    _now: list[list[Job]] = field(init=False)

    def __post_init__(self) -> None:
        ranks = range(max(self.ranks) + 1)
        self._free, self._held = [0 for _ in ranks], [0 for _ in ranks]
        self._now = [[] for _ in ranks]
        self._left = [
            sum(sum(row[stage]) for row in self.times.values() for stage, of in enumerate(self.ranks) if of == rank)
            for rank in ranks
        ]
        self._place((0, -1))

    @property
    def microbatches(self) -> range:
        return range(len(self.times["F"][0]))

    @property
    def back(self) -> str:
        """The kind that goes back: I where backwards are split, else B."""
        return "I" if "I" in self.times else "B"

    def _place(self, after: tuple[int, int]) -> None:
        if not any(self._left):
            if self.best is None or max(self._free) < self.best:
                self.best = max(self._free)
                self.rows = [[Op(Kind[job.kind], job.stage, job.microbatch) for job in row] for row in self._now]
            return
        for job in [job for rank in range(len(self._free)) for job in self._ready_on(rank)]:
            rank = self.ranks[job.stage]
            begin = max(self._free[rank], self._arrival(job))
            late = self.best is not None and begin + self._left[rank] >= self.best
            if (begin, rank) > after and not late and self._fits(job):
                self._do(job, rank, begin)

    def _do(self, job: Job, rank: int, begin: int) -> None:
        before = self._free[rank], self._held[rank], self._left[rank]
        time = self.times[job.kind][job.stage][job.microbatch]
        self._free[rank] = self._end[job] = begin + time
        self._left[rank] -= time
        self._held[rank] += self._change(job)
        self._now[rank].append(job)
        self._place((begin, rank))
        self._now[rank].pop()
        del self._end[job]
        self._free[rank], self._held[rank], self._left[rank] = before

    def _ready_on(self, rank: int) -> Iterator[Job]:
        for stage in [stage for stage, of in enumerate(self.ranks) if of == rank]:
            for microbatch in self.microbatches:
                for kind in self.times:
                    job = Job(kind, stage, microbatch)
                    if job not in self._end and all(need in self._end for need, _ in self._needs(job)):
                        yield job

    def _needs(self, job: Job) -> Iterator[tuple[Job, int]]:
        kind, stage, microbatch = job
        if kind == "F" and stage > 0:
            yield Job("F", stage - 1, microbatch), self._hop(stage - 1, microbatch)
        if kind == "W":
            yield Job("I", stage, microbatch), 0
        if kind == self.back:
            yield Job("F", stage, microbatch), 0
            if stage < len(self.ranks) - 1:
                yield Job(kind, stage + 1, microbatch), self._hop(stage, microbatch)

    def _hop(self, stage: int, microbatch: int) -> int:
        return self.transfer[stage][microbatch] if self.ranks[stage] != self.ranks[stage + 1] else 0

    def _arrival(self, job: Job) -> int:
        return max((self._end[need] + hop for need, hop in self._needs(job)), default=0)

    def _change(self, job: Job) -> int:
        size = self.held[job.stage][job.microbatch]
        return {"F": size, "I": 0}.get(job.kind, -size)

    def _fits(self, job: Job) -> bool:
        rank = self.ranks[job.stage]
        return self.limit is None or self._held[rank] + max(self._change(job), 0) <= self.limit
