"""How many small tasks a second a sweep does on one worker and on two, and what it adds to each.

Run with ``make bench-sweeps``. Prints rates and ratios; asserts that every task has its answer, never a time. Tasks are of
about a millisecond of Python, as an estimate of a configuration is, and of nothing at all.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from pipeplan.foundation.sweeps import SweepTask, sweep

TASKS = 10_000
LOOPS = 40_000
"""Of a task: about a millisecond."""


def add(number: int) -> int:
    """A millisecond of Python."""
    total = number
    for each in range(LOOPS):
        total += each & 1
    return total - LOOPS // 2


def same(number: int) -> int:
    """No work at all: what is left is the sweep's own."""
    return number


def timed(job: Callable[[], list[int]]) -> float:
    """Seconds of a job that must give every number."""
    begin = time.perf_counter()
    found = job()
    seconds = time.perf_counter() - begin
    assert sorted(found) == list(range(TASKS))
    return seconds


def swept(function: Callable[[int], int], **how: Any) -> list[int]:
    """Every answer of a sweep."""
    tasks = [SweepTask(str(number), number) for number in range(TASKS)]
    return [finished.required() for finished in sweep(function, tasks, answer=int, asked={"tasks": TASKS}, **how)]


def main() -> None:
    """Print the table."""
    plain = timed(lambda: [add(number) for number in range(TASKS)])
    nothing = timed(lambda: [same(number) for number in range(TASKS)])
    print(f"{TASKS:,} tasks of {1e3 * plain / TASKS:.2f} ms; a plain loop does {TASKS / plain:,.0f} a second\n")
    print(f"{'':34}{'tasks/s':>9}{'times a loop':>14}{'added to an empty task':>25}")
    with tempfile.TemporaryDirectory() as folder:
        for name, how in (
            ("one worker", {}),
            ("one worker, stored", {"store": "one"}),
            ("two workers", {"workers": 2}),
            ("two workers, stored", {"workers": 2, "store": "two"}),
            ("two workers, all in the store", {"workers": 2, "store": "two"}),
        ):
            seconds, empty = (
                timed(
                    lambda function=function, how=how: swept(function, **_placed(how, Path(folder) / function.__name__))
                )
                for function in (add, same)
            )
            _row(name, seconds, plain, empty - nothing)
    seconds = timed(lambda: Parallel(n_jobs=2)(delayed(add)(number) for number in range(TASKS)))
    empty = timed(lambda: Parallel(n_jobs=2)(delayed(same)(number) for number in range(TASKS)))
    _row("joblib.Parallel, two workers", seconds, plain, empty - nothing)


def _placed(how: dict[str, Any], place: Path) -> dict[str, Any]:
    return how | ({"store": place.with_suffix(f".{how['store']}")} if "store" in how else {})


def _row(name: str, seconds: float, plain: float, added: float) -> None:
    print(f"{name:34}{TASKS / seconds:9,.0f}{plain / seconds:14.2f}{1e6 * added / TASKS:22.0f} us")


if __name__ == "__main__":
    main()
