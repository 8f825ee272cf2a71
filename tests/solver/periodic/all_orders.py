"""The least period of one microbatch on a line, from every circular order of every rank."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product

import numpy as np

from pipeplan.solver import Problem
from pipeplan.solver.exact.integer_problem import Job
from pipeplan.solver.periodic.repeated import Repeated


def by_trying_all_orders(case: Problem) -> float:
    """The least period of one microbatch on a line, from every circular order of every rank: the longest cycle's ratio."""
    jobs = Repeated(case, 1)
    ranks = [jobs.integers.jobs_on(rank) for rank in range(case.placement.ranks)]
    fits = int(case.memory_limit.limit[0])
    orders = [[(row[0], *rest) for rest in permutations(row[1:])] for row in ranks]
    best = np.inf
    for rows in product(*orders):
        for rounds in product(range(fits + 1), repeat=2 * len(rows)):
            best = min(best, _period_of(jobs, rows, rounds, fits, best))
    return best


def _period_of(jobs: Repeated, rows: Sequence[Sequence[Job]], rounds: Sequence[int], fits: int, best: float) -> float:
    """The least period, by halving, of rows whose I and W run so many rounds after their F; infinite above the limit."""
    late: dict[Job, int] = {}
    for row, number in zip(rows, range(0, len(rounds), 2), strict=True):
        place = {job.kind.name: at for at, job in enumerate(row)}
        late[row[0]] = 0
        for job in row:
            if job.kind.name != "F":
                late[job] = rounds[number + (job.kind.name == "W")]
        level = late[next(job for job in row if job.kind.name == "W")] + (place["W"] > 0)
        if level > fits:
            return float(np.inf)
    low, high = 0.0, min(best, 1000.0)
    if not _runs(jobs, rows, late, high):
        return float(np.inf)
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if _runs(jobs, rows, late, middle) else (middle, high)
    return round(high, 2)


def _runs(jobs: Repeated, rows: Sequence[Sequence[Job]], late: dict[Job, int], period: float) -> bool:
    """Whether starts exist (Bellman and Ford): a job waits for what it needs, and for the one before it in its row."""
    edges = []
    for row in rows:
        for one, other in zip(row, (*row[1:], row[0]), strict=True):
            apart = late[one] - late[other] + (other == row[0])
            edges.append((one, other, jobs.time(one) - apart * period))
        for job in row:
            edges += [(source, job, jobs.time(source) + delay) for source, delay in jobs.needs(job)]
    start = dict.fromkeys(late, 0.0)
    for _ in range(len(start) + 1):
        changed = False
        for one, other, least in edges:
            if start[other] < start[one] + least - 1e-9:
                start[other], changed = start[one] + least, True
        if not changed:
            return True
    return False
