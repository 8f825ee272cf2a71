"""The suites of schedules find nothing in random cases, and a fault that is planted within a few."""

import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeplan import checking
from pipeplan.checking import checker, structure
from pipeplan.extensions.search import op_layout as layout
from pipeplan.extensions.search import problem
from pipeplan.extensions.search.op_layout import flatten
from pipeplan.extensions.search.run import Run
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import Kind, memory_levels, parse_schedule
from pipeplan.model import dependency as rules
from pipeplan.simulation import Bound, idle, simulator
from pipeplan.simulation.chain import Chains
from tests.torture.schedules import BOUNDS, KERNELS, MUTANTS, SCHEDULES, SEARCHES, SIMULATOR
from tests.torture.schedules.oracle import Oracle
from tests.torture.schedules.ways import as_python, both_ways, run_by
from tests.torture.suite import Found, Suite

TIMES_AS_MANY = int(os.environ.get("TORTURE", "1"))
FIRST = int(os.environ.get("TORTURE_SEED", "0"))
"""Cases of each suite relative to its sample, and the first seed; ``make torture`` sets both."""


@pytest.mark.parametrize("suite", SCHEDULES, ids=[suite.name for suite in SCHEDULES])
def test_random_cases_find_nothing(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    why = suite.needs()
    if why is not None:
        pytest.skip(why)

    for seed in range(FIRST, FIRST + suite.sample * TIMES_AS_MANY):
        try:
            suite.attempt(seed, tmp_path)
        except Exception as error:
            error.add_note(f"{suite.name}, seed {seed}")
            raise


def finds(suite: Suite, tmp_path: Path, most: int, says: str = "", *, first: int = 0) -> None:
    """Some case of the suite finds something, of which it says this."""
    said = []
    for seed in range(first, first + most):
        try:
            suite.attempt(seed, tmp_path)
        except Exception as found:  # whatever else a case stumbles over is found too
            said.append(str(found))
            if says in said[-1]:
                return
    pytest.fail(f"{suite.name} found {said[:3] or 'nothing'} in {most} cases")


def nothing(*_: object, **__: object) -> list[object]:
    return []


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (checker, "check_channels"),
        (checker, "check_messages"),
        (checker, "check_order"),
        (checker, "check_progress"),
        (checker, "check_memory"),
        (checker, "check_reduce_grad"),
        (structure, "_duplicates"),
        (structure, "_offloads"),
        (structure, "_overlaps"),
        (structure, "_wrong_ranks"),
    ],
)
def test_a_rule_that_the_checker_forgets(module, name, tmp_path, monkeypatch):
    monkeypatch.setattr(module, name, nothing)
    finds(MUTANTS, tmp_path, 150, "misses" if name != "check_progress" else "the checker finds nothing")


@pytest.mark.parametrize("kind", [Kind.W, Kind.RELOAD, Kind.SEND_F])
def test_what_an_op_waits_for_and_everybody_forgets(kind, tmp_path, monkeypatch):
    monkeypatch.delitem(rules.OWN_STAGE, kind)
    finds(MUTANTS, tmp_path, 150)


def test_a_format_that_loses_pairs(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys.modules["pipeplan.formats.pytorch_csv"], "format_cells", lambda row: [str(op) for op in row]
    )
    finds(MUTANTS, tmp_path, 60, "comes back from CSV")


def test_ranks_that_cannot_meet_and_are_said_to(tmp_path, monkeypatch):
    monkeypatch.setattr(checker, "check_rendezvous", nothing)
    finds(MUTANTS, tmp_path, 60, "ranks that meet stop")


def test_transfers_that_cost_nothing(tmp_path, monkeypatch):
    timed = simulator._TIME_OPS
    free = lambda inputs, outputs, work: timed(  # noqa: E731
        (inputs[0], inputs[1]._replace(delay=np.zeros(1))), outputs, work=work
    )
    monkeypatch.setattr(simulator, "_TIME_OPS", free)
    finds(SIMULATOR, tmp_path, 30)


def test_memory_that_is_counted_where_it_is_not(tmp_path, monkeypatch):
    def one_more(schedule, *sizes, **factors):
        levels = memory_levels(schedule, *sizes, **factors)
        levels[schedule.where(Kind.R)] += 1e-6
        return levels

    monkeypatch.setattr("pipeplan.simulation.simulator.memory_levels", one_more)
    finds(SIMULATOR, tmp_path, 60, "what is held in")


def test_idle_time_that_nobody_explains(tmp_path, monkeypatch):
    monkeypatch.setattr(idle.IdleTimes, "totals", lambda self, ranks: np.zeros((ranks, 9)))
    finds(SIMULATOR, tmp_path, 30, "the reasons' sum")


def test_a_chain_that_breaks_off(tmp_path, monkeypatch):
    whole = Chains.holder
    monkeypatch.setattr(Chains, "holder", lambda self, op: -1 if op % 7 == 3 else whole(self, op))
    finds(SIMULATOR, tmp_path, 30)


def shifts(number, out):
    """Python's numbers have no end."""
    out[0] = number[0] << 62 >> 62


def test_a_kernel_that_is_another_compiled():
    with run_by(both_ways(Counter())), pytest.raises(Found, match=r"into its output 0 .* at \(0,\), 64 and 0"):
        Kernel(shifts)([np.array([64])], [np.zeros(1, np.int64)], work=1)


def test_the_harness_leaves_kernels_as_they_were():
    kernel, out = Kernel(shifts), np.zeros(1, np.int64)
    with run_by(as_python):
        kernel([np.array([3])], [out], work=10**9)
    kernel([np.array([2])], [out], work=1)
    assert (out.tolist(), kernel.evaluations) == ([2], 1)


def test_a_candidate_that_is_worth_another_number(tmp_path, monkeypatch):
    def at_once(encoder):
        flat = flatten(encoder)
        return flat._replace(delay=0 * flat.delay)

    monkeypatch.setattr(layout, "flatten", at_once)
    finds(KERNELS, tmp_path, 40, "its schedule takes")


@pytest.mark.skipif(BOUNDS.needs() is not None, reason=str(BOUNDS.needs()))
def test_bounds_that_are_too_high(tmp_path, monkeypatch):
    from pipeplan.simulation import round_trips

    trip = round_trips._trip
    monkeypatch.setattr(round_trips, "_trip", lambda *given, **more: replace(trip(*given, **more), around=1e4))
    finds(BOUNDS, tmp_path, 12, "round trips")


def test_the_oracle_itself():
    """A row that is right, a W before its I, and ranks that wait for each other."""
    for text, found in {
        "0F0 0I0 0W0": [],
        "0F0 0W0 0I0": ["order at rank 0, op 1 (0W0)"],
        "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1": ["deadlock at rank 0, op 1 (0B0)", "deadlock at rank 1, op 1 (1F1)"],
    }.items():
        schedule = parse_schedule(text)
        rows = [list(row) for row in schedule]
        wrong = Oracle(schedule.placement, schedule.microbatches, 1, rows).findings()
        assert sorted(map(str, wrong)) == found
        assert checking.check(schedule).valid == (not found)


@pytest.mark.skipif(SEARCHES.needs() is not None, reason=str(SEARCHES.needs()))
def test_searches_that_judge_no_schedule_as_it_is_or_prove_too_much(tmp_path, monkeypatch):
    def decoded(run, lineage):
        return replace(
            lineage, judged=run.problem.judge(run.schedule(lineage)) if run.problem.is_judged else lineage.value
        )

    with monkeypatch.context() as patch:
        patch.setattr(Run, "take_as_it_is", nothing)
        patch.setattr(Run, "judged", decoded)
        finds(SEARCHES, tmp_path, 4, " is found by ", first=2261)
    monkeypatch.setattr(problem, "lower_bound", lambda *given, **more: Bound(1e4, "nothing"))
    finds(SEARCHES, tmp_path, 12, "the bound is 10000 (nothing)")
