"""Whether a searched schedule is faster in seconds: profile, search, run it and the best published one, in turns.

    python -m benchmarks.search_pays [--quick] [--out DIR]

The model's head is heavy (``examples/heavy_head.py``), its stages are cut as trainers cut them (two blocks each), and the
memory limit is what 1F1B needs. Every published schedule competes that fits, with one stage a rank or two. Run it while
nothing else runs: two ranks take two cores.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import pipeplan
from examples.heavy_head import model
from pipeplan import Result, Schedule
from pipeplan.foundation.errors import PipeplanError
from pipeplan.passes import require_expressible

MEBIBYTE = 2**20
LAYOUTS = {1: (5, 5), 2: (3, 2, 2, 3)}
"""By stages a rank: layers of each stage; the embedding and the head are layers."""


def main() -> int:
    """Print what was predicted and what was measured."""
    options = parse()
    profile = pipeplan.profile(
        "interleaved-1f1b", ranks=2, model=model(), layout=LAYOUTS[2], repeats=3 if options.quick else 25
    )
    known = {name: value for name, value in asdict(profile.settings()).items() if value is not None}
    known["microbatches"] = options.microbatches
    costs = {1: joined(known), 2: known}
    rivals = published(costs)
    limit = round(1.01 * peak(next(rival for rival in rivals if rival.name == "1f1b")))
    best = min((rival for rival in rivals if peak(rival) <= limit), key=lambda rival: rival.makespan)
    found = pipeplan.search(
        placement="loop",
        seconds=3 if options.quick else 20,
        **costs[2] | {"memory_limit": limit},
    )
    print(f"limit {limit / MEBIBYTE:.0f} MiB (1F1B's peak and 1 %), {options.microbatches} microbatches\n")
    for rival in sorted(rivals, key=lambda rival: rival.makespan):
        fits = "fits" if peak(rival) <= limit else ""
        print(f"  {rival.name:24} {rival.makespan:8.0f} ms {peak(rival) / MEBIBYTE:6.0f} MiB  {fits}")
    print(f"  {'searched':24} {found.makespan:8.0f} ms {peak(found) / MEBIBYTE:6.0f} MiB  fits")
    seconds = in_turns({best.name: best.schedule, "searched": found.schedule}, costs, options.turns, options.steps)
    predicted = {best.name: best.makespan / 1e3, "searched": found.makespan / 1e3}
    print("\nschedule      predicted (s)  median measured (s)  off by   all steps (s)")
    for name, steps in seconds.items():
        off = predicted[name] / median(steps) - 1
        told = " ".join(f"{step:.3f}" for step in steps)
        print(f"{name:12} {predicted[name]:14.3f} {median(steps):20.3f} {off:+8.1%}   {told}")
    said = predicted[best.name] / predicted["searched"] - 1
    was = median(seconds[best.name]) / median(seconds["searched"]) - 1
    print(f"\nthe searched schedule was to be {said:.1%} faster than {best.name}; it was {was:.1%} faster")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        found.save(options.out / "searched.csv")
        profile.save(options.out / "heavy-head.yaml")
    return 0


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3, help="how often each schedule gets its turn")
    parser.add_argument("--steps", type=int, default=5, help="timed steps a turn")
    parser.add_argument("--quick", action="store_true", help="a coarse profile and a short search")
    parser.add_argument("--out", type=Path, help="a folder for the costs and the searched schedule")
    return parser.parse_args()


def joined(costs: dict[str, Any]) -> dict[str, Any]:
    """The costs of two stages from those of the four they are made of: one profile, so that no drift stands between them."""
    two = {name: (sum(value[:2]), sum(value[2:])) for name, value in costs.items() if isinstance(value, tuple)}
    # The first stage's backward for the inputs has nothing to do, whatever the second of four has.
    idle = costs["backward_input_times"][0]
    moved = two["backward_input_times"][0] - idle
    two["backward_input_times"] = (idle, two["backward_input_times"][1])
    two["backward_weight_times"] = (two["backward_weight_times"][0] + moved, two["backward_weight_times"][1])
    return costs | two | {"chunks": 1}


def published(costs: dict[int, dict[str, Any]]) -> list[Result]:
    """Every published schedule that PyTorch runs with one stage a rank or two."""
    results = []
    for row in pipeplan.schedules():
        for known in costs.values():
            try:
                result = pipeplan.simulate(row.name, **known)
                require_expressible(result.schedule)
            except PipeplanError:
                continue  # It has another number of stages, or PyTorch's runtime does not run it.
            results.append(result)
    return results


def peak(result: Result) -> float:
    """Of the rank that holds most, in bytes."""
    return float(max(result.to_dict()["peak_bytes"]))


def in_turns(
    schedules: dict[str, Schedule], costs: dict[int, dict[str, Any]], turns: int, steps: int
) -> dict[str, list[float]]:
    """Step times in seconds of each schedule, which run one after the other in turns: a drift hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in schedules}
    for _ in range(turns):
        for name, schedule in schedules.items():
            chunks = schedule.placement.chunks
            done = pipeplan.run(schedule, model=model(), layout=LAYOUTS[chunks], steps=steps, warmup=1, **costs[chunks])
            seconds[name] += done.run.step_seconds
    return seconds


if __name__ == "__main__":
    sys.exit(main())
