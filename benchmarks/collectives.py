"""How far the trainers' places of collectives are from the best that are found, for the same rows of compute ops.

    python -m benchmarks.collectives [--instances 1000] [--seed 0] [--workers 2]

Draws shapes, schedules, times of gathers and reductions relative to the forward, and memory limits that leave room for one
to all stages of a rank beside its activations and gradients. Prints a table: the share of instances that a rule fits, and
how much longer its step is than with the best places found, and than the rows alone, where collectives take no time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

import numpy as np

from pipeplan.costs import Costs, Limits, Settings
from pipeplan.errors import ShapeError
from pipeplan.model import Schedule
from pipeplan.passes import add_megatron_collectives, add_reduce_grad, add_unshard_reshard
from pipeplan.simulation import best_collectives, simulate
from pipeplan.strategies import strategy

SCHEDULES = {
    1: ("1f1b", "gpipe", "zb-h1"),
    2: ("interleaved-1f1b", "looped-bfs", "interleaved-zb", "zbv", "dualpipev"),
    3: ("interleaved-1f1b", "looped-bfs", "interleaved-zb"),
    4: ("interleaved-1f1b", "looped-bfs", "interleaved-zb"),
}
"""Schedules by chunks per rank."""

EVALUATIONS = 300
"""Placements that are tried for one instance, at most."""

EQUAL = 1e-9
"""Relative difference up to which two makespans are equal."""


@dataclass(frozen=True)
class Instance:
    """A schedule of compute ops, costs, and limits."""

    schedule: Schedule
    costs: Costs
    limits: Limits
    resident: int


def drawn(number: int, seed: int) -> Instance:
    """Return an instance; the same numbers give the same one."""
    random = np.random.default_rng([seed, number])
    while True:
        ranks, chunks = int(random.integers(2, 9)), int(random.integers(1, 5))
        microbatches = ranks * int(random.integers(1, 32 // ranks + 1))
        rule = strategy(str(random.choice(SCHEDULES[chunks])))
        try:
            schedule = rule(rule.shape(ranks, microbatches, None if rule.fixed_chunks else chunks))
        except ShapeError:  # too few microbatches for this schedule
            continue
        break
    stages = schedule.stages
    forward = random.uniform(0.8, 1.25, stages)
    size = random.uniform(0.8, 1.25, stages)
    gather = np.exp(random.uniform(np.log(0.1), np.log(4.0))) * size
    settings = Settings(
        forward_times=forward.tolist(),
        unshard_times=gather.tolist(),
        reduce_times=(gather * random.uniform(1.0, 2.0)).tolist(),
        activation_bytes=(random.uniform(0.05, 0.5) * np.ones(stages)).tolist(),
        parameter_bytes=size.tolist(),
        gradient_bytes=(size * random.integers(3)).tolist(),
    )
    costs = settings.costs(schedule.placement)
    held = simulate(schedule, costs).memory.peak_bytes
    assert held is not None
    resident = int(random.integers(1, schedule.placement.chunks + 1))
    limit = float(held.max() + resident * size.max())
    return Instance(schedule, costs, Limits(np.full(ranks, limit), in_activations=False), resident)


def rules(schedule: Schedule) -> Iterator[tuple[str, Schedule]]:
    """Yield the names of rules and their placements."""
    for active in (1, 2, 3, 4):
        yield f"PyTorch, {active} active", add_reduce_grad(add_unshard_reshard(schedule, max_active_stages=active))
    ahead = add_unshard_reshard(schedule, max_active_stages=3, unshard_lookahead="auto")
    yield "PyTorch, 3 active, lookahead auto", add_reduce_grad(ahead)
    yield "Megatron-LM", add_megatron_collectives(schedule)


TUNED = "PyTorch, best number that fits"


def measured(number: int, seed: int, evaluations: int = EVALUATIONS) -> dict[str, float]:
    """Return the makespan of each rule that fits, of the best places, of the rows alone, and the bound of the placement."""
    instance = drawn(number, seed)
    schedule, costs, limits = instance.schedule, instance.costs, instance.limits
    found: dict[str, float] = {}
    for name, placed in rules(schedule):
        simulation = simulate(placed, costs)
        held = simulation.memory.peak_bytes
        assert held is not None
        if (held <= limits.values * (1 + EQUAL)).all():
            found[name] = simulation.timeline.makespan
            if "active" in name and "lookahead" not in name:
                found[TUNED] = min(found.get(TUNED, np.inf), found[name])
    best = best_collectives(schedule, costs, limits=limits, evaluations=evaluations)
    simulation = simulate(best, costs, limits=limits)
    held = simulation.memory.peak_bytes
    assert held is not None
    if (held <= limits.values * (1 + EQUAL)).all():
        found["best"] = simulation.timeline.makespan
    free = replace(costs, unshard=None, reduce=None)
    return found | {"rows alone": simulate(schedule, free).timeline.makespan, "bound": simulation.bound.value}


def table(measurements: list[dict[str, float]]) -> list[str]:
    """Return the lines of the table."""
    names = [name for name, _ in rules(drawn(0, 0).schedule)]
    lines = [
        "| rule | fits | equal to the best | median | p90 | worst | median over the rows alone |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in (*names[:3], TUNED, *names[4:], "best"):
        fitting = [each for each in measurements if name in each and "best" in each]
        over = [each[name] / each["best"] - 1 for each in fitting]
        alone = [each[name] / each["rows alone"] - 1 for each in fitting]
        equal = sum(excess <= EQUAL for excess in over) / max(len(over), 1)
        shares = [equal, median(over), float(np.percentile(over, 90)), max(over), median(alone)]
        figures = " | ".join(f"{share:.1%}" for share in shares)
        lines.append(f"| {name} | {len(fitting) / len(measurements):.1%} | {figures} |")
    gaps = [each["best"] / each["bound"] - 1 for each in measurements if "best" in each]
    lines.append("")
    lines.append(
        f"The best places are {median(gaps):.1%} (median), {float(np.percentile(gaps, 90)):.1%} (p90), {max(gaps):.1%} "
        "(worst) above the bound of any order of ops on the placement."
    )
    return lines


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    options = parser.parse_args()
    job = partial(measured, seed=options.seed, evaluations=options.evaluations)
    with ProcessPoolExecutor(options.workers) as pool:
        measurements = list(pool.map(job, range(options.instances), chunksize=10))
    print("\n".join(table(measurements)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
