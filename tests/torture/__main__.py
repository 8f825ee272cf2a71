"""Random cases of every suite for a while: ``python -m tests.torture [SUITE ...] --seconds 600 --workers 2 --seed 0``.

Prints a line for each finding, which shows it again, then a table; the exit code is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

from tests.torture.running import Verdict, tried
from tests.torture.suite import Suite
from tests.torture.suites import SUITES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites that the command line names, all of them by default."""
    by_name = {suite.name: suite for suite in SUITES}
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[[], *by_name], metavar="SUITE", help=", ".join(by_name))
    parser.add_argument("--seconds", type=float, default=600.0, help="time after which no case starts (600)")
    parser.add_argument("--cases", type=int, default=10**9, help="cases of each suite (as many as fit in the time)")
    parser.add_argument("--seed", type=int, default=0, help="seed of each suite's first case (0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    options = parser.parse_args(arguments)
    chosen = [by_name[name] for name in dict.fromkeys(options.suites)] or list(SUITES)
    able = [suite for suite in chosen if suite.needs() is None]
    outcomes = {suite.name: Counter[str]() for suite in chosen}
    spent: dict[str, float] = defaultdict(float)
    findings = 0
    for verdict in _verdicts(able, options, spent):
        outcomes[verdict.suite][verdict.outcome] += 1
        if verdict.fault is not None:
            findings += 1
            print(verdict.line, flush=True)
    for suite in chosen:
        counts = ", ".join(f"{outcome} {count}" for outcome, count in outcomes[suite.name].most_common())
        print(f"{suite.name:<10} {spent[suite.name]:6.0f} s  {suite.needs() or counts}")
    return 1 if findings else 0


def _verdicts(suites: Sequence[Suite], options: argparse.Namespace, spent: dict[str, float]) -> Iterator[Verdict]:
    """Try cases in parallel; the next case is of the suite that has had the least of its share of the time."""
    begin = time.monotonic()
    started = Counter[str]()
    running: set[Future[Verdict]] = set()
    with ProcessPoolExecutor(options.workers) as pool:
        while True:
            left = [suite for suite in suites if started[suite.name] < options.cases]
            while left and len(running) < options.workers and time.monotonic() - begin < options.seconds:
                suite = min(left, key=lambda each: (spent[each.name] / each.share, started[each.name]))
                running.add(pool.submit(tried, suite.name, options.seed + started[suite.name]))
                started[suite.name] += 1
                left = [suite for suite in suites if started[suite.name] < options.cases]
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                verdict = future.result()
                spent[verdict.suite] += verdict.seconds
                yield verdict


if __name__ == "__main__":
    sys.exit(main())
