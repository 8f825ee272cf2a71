"""The suite ``searches``: random searches against every published order and an exact model.

Times are those of the obvious slow simulator, whatever is simulated: published orders exactly as they are, what the search
starts from, what it finds, and the orders that the model finds. A search is worse than none of them that it has seen, and
neither a bound nor a proof is above what any of them reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np

from pipeplan.checking import check
from pipeplan.costs import Communication, Limits, Settings
from pipeplan.extensions.search import Problem, search
from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import Floats, Kind, Objective, Op, Placement, Schedule, Streams
from pipeplan.passes import insert_communication
from pipeplan.simulation import timed_only
from pipeplan.strategies import STRATEGIES, Strategy
from tests.extensions.search.case import Case
from tests.extensions.search.independent_model import solve
from tests.extensions.search.replay import schedule_of
from tests.slow_simulator import pair_time, slow_simulate
from tests.slow_streams import slow_streams
from tests.torture import Found
from tests.torture.schedules.problems import random_problem
from tests.torture.schedules.simulations import spans_of
from tests.torture.schedules.ways import as_python, run_by

CLOSE = 1e-9
"""The share by which sums of the same numbers in another order may differ."""

MODELLED = 8
"""Stages times microbatches up to which the exact model answers in a fraction of a second."""


def attempt(seed: int) -> None:
    """One search with a small budget, at one level of communication."""
    random = Random(f"searches {seed}")
    problem = _problem(random)
    orders = {name: schedule for name, schedule in published(problem) if _fits(problem, schedule)}
    values = {name: value_of(problem, schedule) for name, schedule in orders.items()}
    starts = []
    if orders and random.random() < 0.3:
        starts.append(_start(random, problem, orders[random.choice(sorted(orders))]))
        values["the start"] = value_of(problem, starts[0])
    evaluations = random.choice((0, 0, 30, 30, 200, 200, 1000))
    what = f"{_words(problem)}, {evaluations} evaluations, from {starts or 'no start'}"
    with run_by(as_python):
        result = search(problem, evaluations=evaluations, seed=seed, start=starts)
    check(result.schedule, memory=problem.memory_limit).require_valid()
    value = value_of(problem, result.schedule)
    if not np.isclose(value, result.value, rtol=CLOSE):
        raise Found(f"{what}: {result.value:.12g} is found by {result.found_by}, and takes {value:.12g}")
    best = min(values, key=values.__getitem__, default=None)
    if best is not None and value > values[best] * (1 + CLOSE):
        raise Found(f"{what}: {value:.12g} is found by {result.found_by}, and {best} takes {values[best]:.12g}")
    # Variants and sizes of groups, whose names have options, are starts of a search, and no published schedules.
    own = {name: values[name] for name in orders if " " not in name}
    named = np.inf if result.published is None else result.published.value
    if named > min(own.values(), default=named) * (1 + CLOSE):
        raise Found(
            f"{what}: {result.published} is named as the best published schedule, and {min(own, key=own.__getitem__)} is"
        )
    reached = min([value, *values.values()])
    if problem.placement.stages * problem.microbatches <= MODELLED and (case := _case(problem)) is not None:
        least, reachable = _modelled(problem, case)
        if value < least * (1 - CLOSE):
            raise Found(f"{what}: {value:.12g} is found, and nothing is below {least:.12g}: {case.command()}")
        reached = min(reached, reachable)
    if result.bound.value > reached * (1 + CLOSE):
        raise Found(
            f"{what}: the bound is {result.bound.value:.12g} ({result.bound.reason}), and {reached:.12g} is reached"
        )
    if result.optimal and value > reached * (1 + CLOSE):
        raise Found(f"{what}: {value:.12g} is called optimal, and {reached:.12g} is reached")


def _problem(random: Random) -> Problem:
    """One of any kind, or one of those that strategies are made for, at any level of communication."""
    problem = random_problem(random, most=random.choice((MODELLED, 16, 24))) if random.random() < 0.5 else _even(random)
    streams: Streams = random.choice(("rank", "direction", "edge"))
    levels: tuple[Communication, ...] = ("edge", "contended", "streams", "streams")
    return replace(problem, communication=random.choice(levels), costs=replace(problem.costs, streams=streams))


def _even(random: Random) -> Problem:
    """Stages that take the same, and enough microbatches for all ranks."""
    ranks = random.choice((2, 2, 3, 4))
    placement = random.choice(
        (Placement.linear(ranks), Placement.linear(ranks), Placement.v(ranks), Placement.loop(ranks, 2))
    )
    microbatches = random.choice((ranks, 2 * ranks, random.randint(1, 10)))
    forward, inputs, weights = (float(random.choice((1, 2, 2, 3, 5))) for _ in range(3))
    saved = random.choice((0.0, 0.0, 0.5, 1.0))
    settings = Settings(
        forward_times=forward,
        backward_input_times=inputs,
        backward_weight_times=weights,
        backward_times=inputs + weights,
        overlap_times=forward + inputs + weights - saved if saved else None,
        p2p_time=random.choice((0.0, 0.2, 1.0)),
        op_gap=random.choice((0.0, 0.0, 0.25)),
        message_time=random.choice((0.0, 0.0, 0.5)),
        times_per="stage",
    )
    limit = random.choice((None, None, ranks, 2.0 * ranks))
    limits = None if limit is None else Limits(np.full(ranks, float(limit)), in_activations=True)
    objective: Objective = random.choice(("makespan", "makespan", "span"))
    return Problem(placement, microbatches, settings.costs(placement), limits, objective=objective)


def _start(random: Random, problem: Problem, schedule: Schedule) -> Schedule:
    """A published order as it is, or with messages of its own where schedules hold them."""
    if not problem.holds_messages or random.random() < 0.5:
        return schedule
    return insert_communication(schedule, delays=np.array([random.choice((0, 0, 1, 2)) for _ in range(len(schedule))]))


def _words(problem: Problem) -> str:
    return (
        f"{problem.objective}, {problem.communication}, {problem.placement.rank_of}, {problem.microbatches} microbatches, "
        f"{problem.slices} slices"
    )


def published(problem: Problem) -> Iterator[tuple[str, Schedule]]:
    """Every published order of a problem's placement, in every variant and size of groups, by name; each order once."""
    seen = set()
    for strategy in STRATEGIES.values():
        for name, options in _ways(strategy, problem):
            try:
                shape = strategy.shape(
                    problem.placement.ranks, problem.microbatches, problem.placement.chunks, **options
                )
                schedule = (
                    strategy(shape, problem.costs, problem.limits) if strategy.looks_at_costs else strategy(shape)
                )
            except PipeplanError:
                continue
            order = str([list(map(str, row)) for row in schedule]), str(schedule.columns.group)
            fits = schedule.placement.rank_of == problem.placement.rank_of and schedule.slices == problem.slices
            if fits and order not in seen:
                seen.add(order)
                yield name, schedule


def _ways(strategy: Strategy, problem: Problem) -> Iterator[tuple[str, dict[str, Any]]]:
    for variant in strategy.variants or (None,):
        for group in (None, *range(1, problem.microbatches + 1)) if strategy.grouped else (None,):
            slices = problem.slices if strategy.slices > 1 and problem.slices > 1 else None
            options = {"variant": variant, "group_size": group, "slices": slices}
            words = [f"{name}={value}" for name, value in options.items() if value is not None]
            yield " ".join([strategy.name, *words]), options


def _fits(problem: Problem, schedule: Schedule) -> bool:
    """Whether the search may answer it: within the limits, and of what the problem decides on."""
    kinds = {kind.name for kind in schedule.kinds}
    pairs = problem.costs.has_pair_times and not problem.choices.overlap and bool(schedule.joined.any())
    return (
        not pairs
        and ("I" not in kinds or problem.choices.split)
        and ("R" not in kinds or problem.choices.recompute)
        and check(schedule, memory=problem.memory_limit).valid
    )


def value_of(problem: Problem, schedule: Schedule) -> float:
    """The objective of a schedule, by the slow simulator."""
    if problem.communication == "streams":
        timeline = slow_streams(problem.with_messages(schedule), problem.costs, problem.costs.streams)
        timeline = timed_only(timeline)
    else:
        timeline = slow_simulate(schedule, problem.costs, problem.communication)
    return float(timeline.makespan if problem.objective == "makespan" else max(spans_of(timeline, problem.costs)))


def _case(problem: Problem) -> Case | None:
    """The problem in exact numbers, each op with what it loses; None where the model knows less than the search."""
    costs, rule, choices = problem.occupied, problem.memory_limit, problem.choices
    paired = problem.costs.has_pair_times and problem.costs.overhead.message_time > 0
    varied = problem.costs.factors is not None
    if problem.placement.copies > 1 or problem.slices > 1 or choices.frees_memory or paired or varied:
        return None

    def exact(values: Floats) -> tuple[Fraction, ...] | None:
        numbers = tuple(Fraction(float(value)).limit_denominator(8) for value in values)
        return numbers if [float(number) for number in numbers] == [float(value) for value in values] else None

    limited = bool(np.isfinite(rule.limit).all())
    lists: dict[str, Any] = {
        "forward": costs.forward,
        "backward": costs.backward,
        "inputs": costs.backward_input,
        "weights": costs.backward_weight,
        "transfer": np.array([costs.transfer.time()]),
    }
    if choices.overlap and costs.has_pair_times:
        stages, gap = range(costs.stages), problem.costs.overhead.op_gap
        for kind, forward in product((Kind.B, Kind.I), stages):
            together = [pair_time(Op(Kind.F, forward, 0), Op(kind, other, 0), problem.costs) + gap for other in stages]
            lists[f"{kind.name}{forward}"] = np.array(together)
    lists |= {"activation": rule.activation, "kept": rule.freed_by_weight, "limits": rule.limit} if limited else {}
    exact_lists = {name: exact(np.asarray(values, float)) for name, values in lists.items()}
    if None in exact_lists.values() or not (limited or np.isinf(rule.limit).all()):
        return None
    transfer = exact_lists.pop("transfer")
    pairs = {
        kind: [exact_lists.pop(f"{kind}{stage}") for stage in range(costs.stages)] for kind in "BI" if "B0" in lists
    }
    assert transfer is not None
    return Case(
        placement="",
        rank_of=problem.placement.rank_of[0],
        microbatches=problem.microbatches,
        transfer=transfer[0],
        in_activations=False,
        objective=problem.objective,
        split=choices.split,
        pairs=pairs or None,  # type: ignore[arg-type]
        **exact_lists,  # type: ignore[arg-type]
    )


def _modelled(problem: Problem, case: Case) -> tuple[float, float]:
    """What no order is below, transfers that hinder each other or not; and what the model's own order takes."""
    answer = solve(case, seconds=3.0)
    if answer.rows is None:
        return float(answer.lowest), np.inf
    return float(answer.lowest), value_of(problem, schedule_of(answer.shop, answer.rows))
