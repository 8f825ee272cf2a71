"""Bounds against schedules, on as many random instances as one likes.

``python -m tests.simulation.soundness --instances 5000 --seed 0`` judges the instances of seeds 0 to 4999, and the small
cases of the same seeds against the independent exact model. It prints every violation with the command that shows it
again, and counts at the end; Ctrl-C ends it with the counts so far.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.simulation.soundness.instances import instance
from tests.simulation.soundness.judge import Verdict, judge, judged_case


def main(arguments: list[str] | None = None) -> int:
    """Judge the instances asked for; the exit code is 1 where there was a violation."""
    asked = _parser().parse_args(arguments)
    seeds = range(asked.seed, asked.seed + asked.instances)
    found: list[Verdict] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.workers, mp_context=context) as pool:
        waiting = [pool.submit(both, seed, asked.evaluations, asked.seconds) for seed in seeds]
        try:
            for done, job in enumerate(as_completed(waiting), start=1):
                found += job.result()
                for line in [line for verdict in job.result() for line in lines(verdict)]:
                    print(line, flush=True)
                print(f"\r{done}/{len(seeds)} seeds ", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    print("\n".join(_summary(found)))
    return 1 if any(verdict.violations for verdict in found) else 0


def both(seed: int, evaluations: int, seconds: float) -> list[Verdict]:
    """A seed's instance with its schedules, and its small case with its exact answer."""
    return [judge(instance(seed), evaluations=evaluations, seconds=seconds), judged_case(seed, seconds=10 * seconds)]


def lines(verdict: Verdict) -> list[str]:
    """Each violation with the command that shows it again."""
    again = f"python -m tests.simulation.soundness --instances 1 --seed {verdict.seed}"
    return [f"{again}  # {', '.join(verdict.kinds)}: {violation}" for violation in verdict.violations]


def _summary(found: list[Verdict]) -> list[str]:
    gaps = [verdict.gap for verdict in found if verdict.gap is not None]
    met = sum(gap < 1e-9 for gap in gaps)
    wrong = sum(bool(verdict.violations) for verdict in found)
    kinds = Counter(kind for verdict in found for kind in verdict.kinds)
    reasons = Counter(_kind_of(verdict.reason) for verdict in found)
    return [
        f"\n{len(found)} instances, {wrong} with a bound above what is reached",
        f"{len(gaps)} with a schedule within the limits: {met} meet the bound, "
        f"on average they are {sum(gaps) / max(len(gaps), 1):.2%} above",
        "by reason of the bound: " + ", ".join(f"{name} {count}" for name, count in reasons.most_common()),
        "by kind: " + ", ".join(f"{name} {count}" for name, count in kinds.most_common()),
    ]


def _kind_of(reason: str) -> str:
    kinds = ("round trips", "both ends", "must hold", "way of one", "chain", "work")
    return next((kind for kind in kinds if kind in reason), reason)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.soundness", description=__doc__)
    parser.add_argument("--instances", type=int, default=5000, help="how many seeds (5000)")
    parser.add_argument("--seed", type=int, default=0, help="the first one (0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--evaluations", type=int, default=2_000, help="of each search (2000)")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each exact model (1)")
    return parser
