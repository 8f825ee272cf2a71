"""The suite ``kernels``: compiled against plain Python, and the search's timing against the simulator's."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipeplan.checking import check
from pipeplan.extensions.search import search
from pipeplan.foundation.errors import DeadlockError
from pipeplan.passes import insert_communication, without_communication
from pipeplan.simulation import simulate
from tests.torture import Found
from tests.torture.schedules.evaluations import CLOSE, moved
from tests.torture.schedules.oracle import WITHIN
from tests.torture.schedules.problems import long_problem, random_problem
from tests.torture.schedules.random_costs import random_costs, varied
from tests.torture.schedules.shapes import random_schedule
from tests.torture.schedules.ways import Call, as_python, both_ways, run_by

INTERPRETED = 40
"""Cases before the first whose kernels are compiled: a sample needs no compiler."""

COMPILED = 16
"""One of so many cases is run both ways: compiling takes longer than all else."""


def attempt(seed: int) -> None:
    """A schedule simulated and checked, a candidate moved, or a whole search, each with its kernels run both ways."""
    random = Random(f"kernels {seed}")
    compiles = seed >= INTERPRETED and seed % COMPILED == COMPILED // 2
    call: Call = both_ways if compiles else as_python
    kind = random.choices(("simulate", "move", "in part", "search"), (2, 4, 1, 1))[0]
    with run_by(call):
        if kind == "simulate":
            _simulate(random)
        elif kind == "search":
            _search(random)
        else:
            problem = long_problem(random) if kind == "in part" else random_problem(random)
            moved(random, problem, locally=kind == "in part")


def _simulate(random: Random) -> None:
    """The kernels of every level of communication, with copies and without, and those of the checker."""
    schedule = random_schedule(random, messages=False, stage_wide=False)
    lowered = insert_communication(schedule, receives=random.choice(("early", "late")))
    whole = random.random() < 0.5
    costs = random_costs(random, schedule.placement, schedule.slices, whole=whole)
    costs = varied(random, costs, schedule.microbatches, whole=whole)
    check(lowered, sends="blocking")
    simulate(schedule, costs)
    simulate(without_communication(lowered), costs, communication="contended")
    try:
        simulate(lowered, costs, communication="blocking")
    except DeadlockError:
        return


def _search(random: Random) -> None:
    """All engines, a little of each: what they find is right, within the limits, worth what is said, and above the bound."""
    problem = random_problem(random, most=24)
    if random.random() < 0.2:
        problem = replace(problem, communication="streams")
    result = search(problem, evaluations=random.choice((0, 50, 400)), seed=random.randrange(100))
    report = check(result.schedule, memory=problem.memory_limit)
    if not report.valid:
        raise Found(f"{problem}: what is found is not right: {report.problems[0]}")
    takes = problem.value(problem.simulated(result.schedule).timeline)
    if abs(takes - result.value) > CLOSE * takes:
        raise Found(f"{problem}: what is found is worth {result.value}, and takes {takes}")
    if result.bound.value > result.value * (1 + WITHIN):
        raise Found(
            f"{problem}: the bound is {result.bound.value} ({result.bound.reason}), and {result.value} is found"
        )
