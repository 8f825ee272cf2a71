"""Searches whose schedules have the collectives of sharded stages."""

from dataclasses import replace

import numpy as np
import pytest

from pipeplan.checking import check
from pipeplan.costs import Limits, Settings
from pipeplan.extensions.search import Problem, search
from pipeplan.model import Kind, Placement, Schedule
from pipeplan.passes import ShardingRule, add_megatron_collectives, add_reduce_grad, add_unshard_reshard
from pipeplan.simulation import simulate
from pipeplan.strategies import strategy


def sharded(placement: Placement, microbatches: int, limit: float | None, rule: ShardingRule) -> Problem:
    stages = placement.stages
    settings = Settings(
        forward_times=[1.0] * stages,
        unshard_times=[1.5] * stages,
        reduce_times=[1.0 + stage % 3 for stage in range(stages)],
        activation_bytes=[1.0] * stages,
        parameter_bytes=[10.0] * stages,
        gradient_bytes=[2.0] * stages,
    )
    limits = None if limit is None else Limits(np.full(placement.ranks, limit), in_activations=False)
    return Problem(placement, microbatches, settings.costs(placement), limits, sharding=rule)


def named(name: str, ranks: int, microbatches: int, chunks: int) -> Schedule:
    found = strategy(name)
    return found(found.shape(ranks, microbatches, chunks))


def test_a_search_is_not_worse_than_its_starts_with_their_own_collectives() -> None:
    placement = Placement.loop(2, 2)
    start = named("interleaved-1f1b", 2, 4, 2)
    starts = [
        add_megatron_collectives(start),
        add_reduce_grad(add_unshard_reshard(start, max_active_stages=1)),
    ]
    for limit in (None, 20.0, 32.0):
        problem = sharded(placement, 4, limit, ShardingRule("pytorch", 1))
        fitting = [each for each in starts if problem.fits(simulate(each, problem.costs))]
        assert fitting
        result = search(problem, evaluations=500, start=fitting)
        schedule = result.schedule
        check(schedule, memory=problem.memory_rule).require_valid()
        assert schedule.has(Kind.UNSHARD)
        assert problem.fits(result.simulation)
        makespan = result.simulation.timeline.makespan
        assert makespan == simulate(schedule, problem.costs).timeline.makespan
        assert all(makespan <= simulate(each, problem.costs).timeline.makespan for each in fitting)
        assert result.bound.value <= makespan * (1 + 1e-9)
    again = search(problem, evaluations=500, start=fitting)
    assert again.schedule == schedule


def test_search_with_the_rule_of_a_trainer() -> None:
    """Every schedule that it judges has the collectives of the rule."""
    for rule in (ShardingRule("pytorch", 2), ShardingRule("megatron")):
        problem = sharded(Placement.loop(2, 2), 4, 40.0, rule)
        result = search(problem, evaluations=400)
        schedule = result.schedule
        wide = (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD)
        plain = schedule.keep(~np.isin(schedule.columns.kind, [int(kind) for kind in wide]))
        assert rule(plain) == schedule
        assert problem.fits(result.simulation)


@pytest.mark.slow
def test_search_on_streams() -> None:
    problem = replace(sharded(Placement.loop(2, 2), 4, 40.0, ShardingRule("pytorch", 2)), communication="streams")
    result = search(problem, evaluations=300)
    assert {Kind.UNSHARD, Kind.SEND_F} <= result.schedule.kinds
    check(result.schedule, memory=problem.memory_rule, streams=problem.streams).require_valid()
