"""Schedules that a bound must not be above: built by greedy rules, and searched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

from pipeplan.extensions.search import Choices, Problem, search
from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import Kind, Schedule, from_ops
from pipeplan.model.op import Op
from pipeplan.simulation import Bound
from tests.simulation.soundness.instances import Instance
from tests.slow_simulator import needs

Job = tuple[Kind, int, int, int]
"""Kind, stage, microbatch, slice."""

GREEDY = 12
"""How many greedy schedules are built for an instance."""


def witnesses(instance: Instance, *, evaluations: int) -> Iterator[tuple[str, Schedule]]:
    """Schedules of an instance, by where they come from; not all are within its limits."""
    for number in range(GREEDY):
        schedule = greedy(instance, Random(f"greedy {instance.seed} {number}"))
        if schedule is not None:
            yield f"greedy rule {number}", schedule
    if instance.placement.copies == 1 and instance.slices == 1 and evaluations:
        schedule = searched(instance, evaluations)
        if schedule is not None:
            yield "search", schedule


def searched(instance: Instance, evaluations: int) -> Schedule | None:
    """What the search finds while it knows of no bound: a wrong one would end it."""
    try:
        problem = Problem(
            instance.placement,
            instance.microbatches,
            instance.costs,
            instance.limits,
            instance.objective,
            Choices(split=instance.split != "none"),
        )
        vars(problem)["bound"] = Bound(0.0, "none")
        return search(problem, evaluations=evaluations, seed=instance.seed).simulation.schedule
    except PipeplanError:
        return None


def jobs(instance: Instance, random: Random | None = None) -> Iterator[Job]:
    """All ops, with the backwards that are to be full as B; by chance where any may be."""
    cells = product(range(instance.placement.stages), range(instance.microbatches), range(instance.slices))
    for stage, microbatch, part in cells:
        full = instance.split == "none" or (instance.split == "any" and random is not None and random.random() < 0.5)
        yield Kind.F, stage, microbatch, part
        for kind in (Kind.B,) if full else (Kind.I, Kind.W):
            yield kind, stage, microbatch, part


def rank_of(instance: Instance, job: Job) -> int:
    placement = instance.placement
    return placement.rank_of[job[2] * placement.copies // instance.microbatches][job[1]]


def takes(instance: Instance, job: Job) -> float:
    costs = instance.costs.occupied(instance.placement, instance.slices)
    times = {Kind.F: costs.forward, Kind.B: costs.backward, Kind.I: costs.backward_input, Kind.W: costs.backward_weight}
    return float(times[job[0]][job[1]]) / instance.slices


def changes(instance: Instance, job: Job) -> float:
    """By how much a job changes what its rank holds."""
    rule = instance.costs.memory.rule(instance.placement, instance.limits)
    held, kept = float(rule.activation[job[1]]), float(rule.freed_by_weight[job[1]])
    return {Kind.F: held, Kind.B: -held, Kind.I: kept - held, Kind.W: -kept}[job[0]] / instance.slices


def of_rows(instance: Instance, rows: Sequence[Sequence[Job]]) -> Schedule:
    """The schedule of each rank's jobs in order."""
    columns = [from_ops([Op(kind, stage, mb, part) for kind, stage, mb, part in row]) for row in rows]
    return Schedule.from_rows(instance.placement, instance.microbatches, columns, slices=instance.slices)


def greedy(instance: Instance, random: Random) -> Schedule | None:
    """Whatever can start first, by priorities drawn for each kind; microbatches enter as their whole way fits the limits."""
    every = list(jobs(instance, random))
    limit = instance.costs.memory.rule(instance.placement, instance.limits).limit
    weigh = {kind: random.random() - (kind in {Kind.B, Kind.I}) * random.choice((0.0, 0.5)) for kind in Kind}
    left, ready = set(every), dict.fromkeys(range(instance.placement.ranks), 0.0)
    ended: dict[Job, float] = {}
    level = dict.fromkeys(ready, 0.0)
    rows: list[list[Job]] = [[] for _ in ready]
    transfer, delay = instance.costs.transfer.time(instance.slices), random.choice((0.0, 0.0, 2.0))
    stages, present = instance.placement.stages, set(every)
    sources = {
        job: [
            (need, rank_of(instance, need) != rank_of(instance, job))
            for need in needs(Op(*job), present, stages, instance.slices)
        ]
        for job in every
    }
    while left:
        best: tuple[Any, ...] | None = None
        for job in sorted(left):
            rank = rank_of(instance, job)
            if any(source not in ended for source, _ in sources[job]):
                continue
            if level[rank] + changes(instance, job) > limit[rank] * (1 + 1e-12):
                continue
            arrival = max((ended[source] + transfer * message for source, message in sources[job]), default=0.0)
            start = max(arrival, ready[rank])
            key = (start + delay * weigh[job[0]], weigh[job[0]], job[2], random.random())
            if best is None or key < best[0]:
                best = key, job, rank, start
        if best is None:
            return None
        _, job, rank, start = best
        left.remove(job)
        rows[rank].append(job)
        level[rank] += changes(instance, job)
        ended[job] = ready[rank] = start + takes(instance, job)
    return of_rows(instance, rows)
