"""The suites of schedules find nothing in random cases, and a fault that is planted within a few."""

import os
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from pipeplan import checking
from pipeplan.costs import Costs
from pipeplan.extensions.search.op_layout import flatten
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import Kind, memory_levels, parse_schedule
from tests.torture import Found
from tests.torture.schedules.oracle import Oracle
from tests.torture.schedules.ways import both_ways, run_by

TIMES_AS_MANY = int(os.environ.get("TORTURE", "1"))
FIRST = int(os.environ.get("TORTURE_SEED", "0"))
"""Cases of each suite relative to its sample, and the first seed; ``make torture`` sets both."""

SAMPLES = {"mutants": 40, "simulations": 40, "pairs": 1100, "streams": 150, "kernels": 12, "bounds": 8, "searches": 10}
"""Number of cases of each suite that the tests try."""


def attempt(suite: str, seed: int) -> None:
    """Try one case of a suite. Those that need an exact model are skipped without OR-Tools."""
    if suite in ("bounds", "searches"):
        pytest.importorskip("ortools", reason="the exact models need OR-Tools: the extra 'search'")
    import_module(f"tests.torture.schedules.{suite}").attempt(seed)


@pytest.mark.parametrize("suite", SAMPLES)
def test_random_cases_find_nothing(suite):
    for seed in range(FIRST, FIRST + SAMPLES[suite] * TIMES_AS_MANY):
        try:
            attempt(suite, seed)
        except Exception as error:
            error.add_note(f"{suite}, seed {seed}")
            raise


def nothing(*_: object, **__: object) -> list[object]:
    return []


def more_while_recomputing(schedule, *sizes, **factors):
    levels = memory_levels(schedule, *sizes, **factors)
    levels[schedule.where(Kind.R)] += 1e-6
    return levels


def without_delays(encoder):
    flat = flatten(encoder)
    return flat._replace(delay=0 * flat.delay)


def long_trips(right):
    return lambda *arguments, **options: replace(right(*arguments, **options), around=1e4)


FAULTS = [
    ("mutants", "checking.checker.check_channels", nothing, "misses"),
    ("mutants", "checking.checker.check_progress", nothing, "the checker finds nothing"),
    ("mutants", "checking.checker.check_rendezvous", nothing, "ranks that meet stop"),
    ("mutants", "checking.structure._duplicates", nothing, "misses"),
    ("mutants", "formats.pytorch_csv.format_cells", lambda row: [str(op) for op in row], "comes back from CSV"),
    ("simulations", "simulation.simulator.memory_levels", more_while_recomputing, "what is held in"),
    ("simulations", "simulation.idle.IdleTimes.totals", lambda _, ranks: np.zeros((ranks, 9)), "the reasons' sum"),
    ("simulations", "simulation.critical.Chains.holder", lambda self, op: -1, ""),
    ("kernels", "extensions.search.op_layout.flatten", without_delays, "its schedule takes"),
]


@pytest.mark.parametrize(("suite", "place", "fault", "message"), FAULTS, ids=[place for _, place, *_ in FAULTS])
def test_a_planted_fault_is_found(suite, place, fault, message, monkeypatch):
    monkeypatch.setattr(f"pipeplan.{place}", fault)
    assert_found(suite, message)


def test_a_bound_that_is_too_high_is_found(monkeypatch):
    from pipeplan.simulation import round_trips

    monkeypatch.setattr(round_trips, "_trip", long_trips(round_trips._trip))
    assert_found("bounds", "round trips")


def test_pairs_that_take_no_account_of_the_backwards_stage_are_found(monkeypatch):
    right = Costs.pair_times
    monkeypatch.setattr(Costs, "pair_times", lambda self, forward, _, *more: right(self, forward, forward, *more))
    assert_found("pairs", "by the slow simulator")


def assert_found(suite: str, message: str) -> None:
    """Some of the first cases of a suite show a fault with this message."""
    messages = []
    for seed in range(200):
        try:
            attempt(suite, seed)
        except Exception as error:  # a fault may also make a case fail in another way
            messages.append(str(error))
            if message in messages[-1]:
                return
    pytest.fail(f"{suite} found {messages[:3] or 'nothing'}")


def test_a_kernel_that_computes_something_else_when_compiled_is_found():
    def copies(number, out):
        out[0] = number[0]

    def zeroes(inputs, outputs):
        outputs[0][0] = 0

    kernel = Kernel(copies)
    vars(kernel)["entry"] = zeroes
    with run_by(both_ways), pytest.raises(Found, match=r"into its output 0 .* at \(0,\), 64 and 0"):
        kernel([np.array([64])], [np.zeros(1, np.int64)])


def test_the_oracle_knows_orders_and_deadlocks():
    for text, findings in {
        "0F0 0I0 0W0": [],
        "0F0 0W0 0I0": ["order at rank 0, op 1 (0W0)"],
        "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1": ["deadlock at rank 0, op 1 (0B0)", "deadlock at rank 1, op 1 (1F1)"],
    }.items():
        schedule = parse_schedule(text)
        rows = [list(row) for row in schedule]
        wrong = Oracle(schedule.placement, schedule.microbatches, 1, rows).findings()
        assert sorted(map(str, wrong)) == findings
        assert checking.check(schedule).valid == (not findings)
