"""Schedules: broken ones, simulated ones, the kernels below, bounds and proofs, each judged by something independent."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tests.torture.schedules import kernels, mutants, simulations, streams
from tests.torture.suite import Suite

__all__ = ["BOUNDS", "KERNELS", "MUTANTS", "PROOFS", "SCHEDULES", "SEARCHES", "SIMULATOR", "STREAMS"]


def _ortools() -> str | None:
    return None if find_spec("ortools") else "the exact models need OR-Tools: the extra 'search'"


def _bounds(seed: int, folder: Path) -> str:
    return str(import_module("tests.torture.schedules.bounds").attempt(seed, folder))


def _proofs(seed: int, folder: Path) -> str:
    return str(import_module("tests.torture.schedules.proofs").attempt(seed, folder))


def _searches(seed: int, folder: Path) -> str:
    return str(import_module("tests.torture.schedules.searches").attempt(seed, folder))


MUTANTS = Suite(
    "mutants",
    "right schedules broken, or changed and not broken: checker, simulator and formats against rules said once more",
    mutants.attempt,
    sample=40,
)
SIMULATOR = Suite(
    "simulator",
    "right schedules on random costs: times, memory, idle times and chains against the obvious slow simulator",
    simulations.attempt,
    sample=15,
)
STREAMS = Suite(
    "streams",
    "orders with messages moved about, on each kind of streams: checker and simulator against an executor with queues",
    streams.attempt,
    sample=300,
)
KERNELS = Suite(
    "kernels",
    "every kernel compiled against plain Python, and what the search takes a candidate for against its simulation",
    kernels.attempt,
    sample=12,
)
BOUNDS = Suite(
    "bounds",
    "lower bounds of makespan and span against the best schedules at hand and an exact model",
    _bounds,
    sample=1,
    needs=_ortools,
)
PROOFS = Suite(
    "proofs",
    "searches, and what they call optimal or infeasible, against an exact model and every order",
    _proofs,
    sample=4,
    needs=_ortools,
)
SEARCHES = Suite(
    "searches",
    "searches at every level of communication: none worse than published orders as they are, or proven what is not true",
    _searches,
    sample=10,
    needs=_ortools,
)

SCHEDULES = (MUTANTS, SIMULATOR, STREAMS, KERNELS, BOUNDS, PROOFS, SEARCHES)
