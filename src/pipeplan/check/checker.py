"""The checker: everything that is wrong with a schedule. Independent of the simulator."""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.check.memory import MemoryCap, check_memory
from pipeplan.check.order import check_order, check_progress
from pipeplan.check.problem import Problem, Report
from pipeplan.check.structure import check_structure
from pipeplan.model import Schedule, dependencies


def check(schedule: Schedule, *, cap: MemoryCap | None = None) -> Report:
    """All problems of a schedule: structure first, and where that is right, order, deadlock and memory."""
    problems = list(check_structure(schedule))
    if not problems:
        problems += _check_run(schedule)
    if cap is not None:
        problems += check_memory(schedule, cap)
    return Report(schedule, tuple(problems))


def _check_run(schedule: Schedule) -> Iterator[Problem]:
    needs = dependencies(schedule)
    disordered = list(check_order(schedule, needs))
    yield from disordered
    if not disordered:
        yield from check_progress(schedule, needs)
