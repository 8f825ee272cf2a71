"""The least makespan where microbatches may be recomputed, by trying every row of every rank: microbatches in any order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product

import numba
import numpy as np

from pipeplan.solver import Problem

Op = tuple[str, int, int, bool, bool]
"""Kind (F, I or W), stage, microbatch, whether it is recomputed, whether its backward runs in full."""


def least_makespan(problem: Problem, most: int = 1_000_000, *, compiled: bool = True) -> float | None:
    """The least makespan of all schedules with one copy of the model; None if that is more than ``most`` tries."""
    rows = [_rows(problem, rank) for rank in range(problem.placement.ranks)]
    if np.prod([len(of_rank) for of_rank in rows]) > most:
        return None
    packed = [_pack(problem, of_rank) for of_rank in rows]
    width = max(one.shape[1] for one in packed)
    counts = np.array([len(one) for one in packed])
    table = np.full((len(packed), counts.max(), width, 4), -1.0)
    for rank, one in enumerate(packed):
        table[rank, : len(one), : one.shape[1]] = one
    least = _LEAST if compiled else _least
    return float(least(table, counts, 2 * problem.placement.stages * problem.microbatches, *_waits(problem)))


def _rows(problem: Problem, rank: int) -> list[tuple[Op, ...]]:
    """Every row of a rank that fits."""
    stages = [stage for stage in range(problem.placement.stages) if problem.placement.rank_of[0][stage] == rank]
    cells = list(product(stages, range(problem.microbatches)))
    full_ways = {
        cell: (False, True) if problem.full_gains[cell[0]] else (not problem.split_backward,) for cell in cells
    }
    found: list[tuple[Op, ...]] = []
    rule = problem.memory_limit
    limit = rule.limit[rank] * (1 + 1e-9)
    for ways in product(*(product((False, True), full_ways[cell]) for cell in cells)):
        todo = [
            [(kind, *cell, *way) for kind in ("FI" if way[1] else "FIW")] for cell, way in zip(cells, ways, strict=True)
        ]
        _extend(problem, limit, [], 0.0, todo, found, numbered=rank == problem.placement.rank_of[0][0])
    return list(_with_least_recomputed(found))


def _with_least_recomputed(rows: list[tuple[Op, ...]]) -> Iterator[tuple[Op, ...]]:
    """The rows without those that recompute more than others of the same order, and are no sooner for it."""
    by_order: dict[tuple[object, ...], list[frozenset[tuple[str, int, int]]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: sum(op[3] for op in row)):
        again = frozenset(op[:3] for op in row if op[3])
        fewer = by_order[tuple((*op[:3], op[4]) for op in row)]
        if not any(other <= again for other in fewer):
            fewer.append(again)
            yield row


def _extend(problem, limit, row, held, todo, found, *, numbered):
    if not any(todo):
        found.append(tuple(row))
        return
    rule = problem.memory_limit
    for place, ops in enumerate(todo):
        if not ops:
            continue
        kind, stage, microbatch, again, full = ops[0]
        forward = kind == "F"
        if numbered and forward and stage == 0 and sum(op[0] == "F" and op[1] == 0 for op in row) != microbatch:
            continue
        activation, keeps = rule.activation[stage], rule.recompute_keeps[stage]
        freed = 0.0 if full else rule.freed_by_weight[stage]
        if forward:
            levels = [held + (keeps if again else activation)]
        elif kind == "I":
            levels = [held + (activation - keeps if again else 0.0)]
            levels.append(levels[0] - activation + freed)
        else:
            levels = [held - freed]
        if max(levels) > limit:
            continue
        rest = [other[1:] if number == place else other for number, other in enumerate(todo)]
        _extend(problem, limit, [*row, ops[0]], levels[-1], rest, found, numbered=numbered)


def _pack(problem: Problem, rows: list[tuple[Op, ...]]) -> np.ndarray:
    """For each op of each row: its number (-1 for W), its time, that of its R."""
    costs, microbatches = problem.costs, problem.microbatches
    packed = np.full((len(rows), max(map(len, rows)), 4), -1.0)
    for number, row in enumerate(rows):
        for place, (kind, stage, microbatch, again, full) in enumerate(row):
            backward = costs.backward if full else costs.backward_input
            time = {"F": costs.forward, "I": backward, "W": costs.backward_weight}[kind][stage]
            which = -1 if kind == "W" else 2 * (stage * microbatches + microbatch) + (kind == "I")
            extra = costs.recompute[stage] if again and kind == "I" else 0.0
            packed[number, place] = which, time, extra, 1.0
    return packed


def _waits(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """What each op waits for, and how long a transfer takes from there."""
    stages, microbatches, rank_of = problem.placement.stages, problem.microbatches, problem.placement.rank_of[0]
    source = np.full(2 * stages * microbatches, -1)
    delay = np.zeros(len(source))
    for stage, microbatch, backward in product(range(stages), range(microbatches), range(2)):
        other = stage + 1 if backward else stage - 1
        here = 2 * (stage * microbatches + microbatch) + backward
        if 0 <= other < stages:
            source[here] = 2 * (other * microbatches + microbatch) + backward
            delay[here] = problem.costs.transfer.time() if rank_of[other] != rank_of[stage] else 0.0
        elif backward:
            source[here] = here - 1
    return source, delay


def _least(table, counts, ops, source, delay):
    ranks = len(counts)
    best = np.inf
    chosen = np.zeros(ranks, np.int64)
    while True:
        clock, cursor, ends = np.zeros(ranks), np.zeros(ranks, np.int64), np.full(ops, -1.0)
        moved = True
        while moved:
            moved = False
            for rank in range(ranks):
                row = table[rank, chosen[rank]]
                while cursor[rank] < len(row) and row[cursor[rank], 3] > 0:
                    which = int(row[cursor[rank], 0])
                    begin = clock[rank] + row[cursor[rank], 2]
                    if which >= 0 and source[which] >= 0:
                        if ends[source[which]] < 0:
                            break
                        begin = max(begin, ends[source[which]] + delay[which])
                    clock[rank] = begin + row[cursor[rank], 1]
                    if which >= 0:
                        ends[which] = clock[rank]
                    cursor[rank] += 1
                    moved = True
        done = True
        for rank in range(ranks):
            row = table[rank, chosen[rank]]
            done = done and (cursor[rank] == len(row) or row[cursor[rank], 3] < 0)
        if done:
            best = min(best, clock.max())
        rank = 0
        while rank < ranks:
            chosen[rank] += 1
            if chosen[rank] < counts[rank]:
                break
            chosen[rank] = 0
            rank += 1
        if rank == ranks:
            return best


_LEAST = numba.njit(_least)
