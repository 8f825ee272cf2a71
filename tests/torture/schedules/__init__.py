"""Schedules: broken ones, simulated ones, the kernels below, bounds and proofs, each judged by something independent."""

from __future__ import annotations

from importlib.util import find_spec

from tests.torture.schedules import kernels, mutants, simulations
from tests.torture.suite import Suite

__all__ = ["KERNELS", "MUTANTS", "SCHEDULES", "SIMULATOR"]


def _ortools() -> str | None:
    return None if find_spec("ortools") else "the exact models need OR-Tools: the extra 'search'"


MUTANTS = Suite(
    "mutants",
    "right schedules broken, or changed and not broken: checker, simulator and formats against rules said once more",
    mutants.attempt,
    sample=60,
)
SIMULATOR = Suite(
    "simulator",
    "right schedules on random costs: times, memory, idle times and chains against the obvious slow simulator",
    simulations.attempt,
    sample=30,
)
KERNELS = Suite(
    "kernels",
    "every kernel compiled against plain Python, and what the search takes a candidate for against its simulation",
    kernels.attempt,
    limit=300.0,
    sample=12,
    share=1.5,
)

SCHEDULES = (MUTANTS, SIMULATOR, KERNELS)
