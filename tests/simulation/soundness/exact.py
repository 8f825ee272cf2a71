"""The best schedule of a small instance, as CP-SAT finds it within a time: a witness, whatever it says of its optimality."""

from __future__ import annotations

from random import Random

from ortools.sat.python import cp_model

from pipeplan.model import Kind, Schedule
from tests.simulation.soundness.instances import Instance
from tests.simulation.soundness.witnesses import Job, changes, jobs, needs, of_rows, rank_of, takes, ways_back

FINE = 24
"""Parts of a unit of time and memory that everything is a multiple of, nearly; the rest is rounded."""


def solved(instance: Instance, seconds: float) -> Schedule | None:
    """Each rank's ops by their starts in the best answer; None where none was found."""
    every = list(jobs(instance, Random(f"full {instance.seed}")))
    backward = ways_back(every)
    model = cp_model.CpModel()
    length = {job: _whole(takes(instance, job)) for job in every}
    message = _whole(instance.costs.transfer.time(instance.slices))
    horizon = sum(length.values()) + 2 * message * len(every)
    start = {job: model.new_int_var(0, horizon, "") for job in every}
    for job in every:
        for source, sent in needs(instance, job, backward):
            model.add(start[job] >= start[source] + length[source] + message * sent)
    for rank in range(instance.placement.ranks):
        _one_at_a_time(model, instance, [job for job in every if rank_of(instance, job) == rank], rank, start, length)
    end = model.new_int_var(0, horizon, "")
    for rank in range(instance.placement.ranks):
        first = model.new_int_var(0, horizon, "")
        for job in every:
            if rank_of(instance, job) == rank:
                model.add(first <= start[job])
                model.add(end >= start[job] + length[job] - (first if instance.objective == "span" else 0))
    model.minimize(end)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.cp_model_presolve = False
    solver.parameters.max_time_in_seconds = seconds
    if solver.solve(model) not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        return None
    rows: list[list[Job]] = [[] for _ in range(instance.placement.ranks)]
    for job in sorted(every, key=lambda one: solver.value(start[one])):
        rows[rank_of(instance, job)].append(job)
    return of_rows(instance, rows)


def _one_at_a_time(
    model: cp_model.CpModel,
    instance: Instance,
    here: list[Job],
    rank: int,
    start: dict[Job, cp_model.IntVar],
    length: dict[Job, int],
) -> None:
    """The rank's ops one after the other, within its limit; what is alike in the order of microbatches."""
    model.add_no_overlap([model.new_fixed_size_interval_var(start[job], length[job], "") for job in here])
    limit = float(instance.costs.memory.rule(instance.placement, instance.limits).limit[rank])
    times = [start[job] if job[0] is Kind.F else start[job] + length[job] for job in here]
    steps = [_whole(changes(instance, job)) for job in here]
    model.add_reservoir_constraint(times, steps, -sum(map(abs, steps)), int(limit * FINE * (1 + 1e-9)))


def _whole(value: float) -> int:
    return round(value * FINE)
