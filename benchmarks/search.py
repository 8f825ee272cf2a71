"""How good the search is: against the best published schedules at the same memory, and against proofs.

Run with ``make bench-search``, or ``python -m benchmarks.search --part table --only "V 8x24"``. Its parts:

``table``
    Instances of 4 to 64 ranks (``search_goals``): ours, the best published at that memory, the bound, the gap and what it
    should be, what share of the way from the published to the bound ours goes, when it was found.
``small``
    Every instance of a grid of up to 4 ranks, 8 microbatches and four chunks per rank: how many are proven optimal, and how
    long that takes.
``tight``
    Random instances of up to 6 ranks where memory is short (``tight``): the mean gap.
``evaluator``
    What the evaluator takes for an op.

What the table's searches found when goes to ``--json``; ``benchmarks.anytime`` makes pictures of it. Asserts the values that
are claimed, and names those that are aimed at and missed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.search_goals import COMMON, EQUAL, MEASURED, Goal, Times, case, goals, known, text
from pipeplan.checking import check
from pipeplan.extensions.search import Problem, SearchResult, search
from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.list_scheduling import earliest, list_schedule
from pipeplan.model import Objective, Placement

PARTS = ("table", "small", "tight", "evaluator")

HEADS = ("instance, chunks held", "budget", "ours", "published", "by", "bound", "gap", "aim", "closed", "found after")

EVERY_TIGHT = 20
"""Of the random instances every so-manieth is solved, unless all are asked for."""


def table(seconds: float, workers: int, only: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Print a row for each goal; return what was missed, and what was found when."""
    missed, curves = [], []
    print("| " + " | ".join(HEADS) + " |\n|" + "---|" * len(HEADS))
    for goal in goals():
        if only not in goal.name:
            continue
        budget = goal.seconds or seconds
        best, by = (goal.published, goal.by) if goal.published is not None else known(goal.problem)
        result = search(goal.problem, seconds=budget, workers=workers)
        check(result.schedule, memory=goal.problem.memory_limit).require_valid()
        if result.value > min(goal.target, best) * (1 + 1e-9):
            missed.append(f"{goal.name} in {budget:g} s: {result.value:.0f}, not {min(goal.target, best):.0f}")
        print(row(goal, budget, result, best, by), flush=True)
        curves.append(curve(goal, budget, result, best, by))
    return missed, curves


def row(goal: Goal, budget: float, result: SearchResult, best: float, by: str) -> str:
    """A row of the table; what is aimed at and missed is bold."""
    ours, bound = result.value, result.bound.value
    closed = f"{(best - ours) / (best - bound):.0%}" if bound * (1 + 1e-9) < best < np.inf else "-"
    aim = "-"
    if goal.aim is not None:
        reached = result.optimal if goal.aim == 0 else result.optimality_gap <= goal.aim
        aim = ("proof" if goal.aim == 0 else f"{goal.aim:.2%}") + (", reached" if reached else ", **missed**")
    told = "none fits" if np.isinf(best) else f"{best:,.0f}"
    figures = (f"{budget:g} s", f"{ours:,.0f}", told, by, f"{bound:,.0f}", f"{result.optimality_gap:.2%}", aim, closed)
    return f"| {goal.name} | " + " | ".join(figures) + f" | {result.history[-1].seconds:.1f} s |"


def curve(goal: Goal, budget: float, result: SearchResult, best: float, by: str) -> dict[str, Any]:
    """What was found when, as plain values."""
    return {
        "instance": goal.name,
        "seconds": budget,
        "bound": result.bound.value,
        "published": None if np.isinf(best) else {"value": best, "by": by},
        "found": [[round(each.seconds, 3), each.value, each.found_by] for each in result.history],
    }


def small_problems() -> Iterator[tuple[str, Problem]]:
    """Up to 4 ranks and 8 microbatches: placements, times, limits from the least feasible to none that binds, objectives."""
    shapes = [
        (Placement.linear(3), 5),
        (Placement.linear(4), 8),
        (Placement.v(3), 5),
        (Placement.v(4), 8),
        (Placement.loop(4, 2), 8),
        (Placement.loop(4, 3), 8),
        (Placement.loop(3, 4), 6),
        (Placement.wave(3, 4), 6),
        (Placement.wave(2, 4), 8),
        (Placement.loop(4, 4), 8),
        (Placement.wave(4, 4), 8),
    ]
    times: list[Times] = [EQUAL, COMMON, MEASURED, (6.0, 4.0, 4.0, 1.0), (10.0, 10.0, 20.0, 1.0)]
    objectives: tuple[Objective, ...] = ("makespan", "span")
    for (placement, microbatches), cost, objective in product(shapes, times, objectives):
        least = placement.chunks
        for held in sorted(
            {least, (least + placement.chunks * placement.ranks) // 2, placement.chunks * placement.ranks}
        ):
            name = f"{placement.name} {placement.ranks}x{microbatches} {text(cost)} at {held}, {objective}"
            yield name, case(placement, microbatches, cost, held, objective=objective)


def proofs(seconds: float, workers: int, only: str) -> list[str]:
    """Say how many of the small instances are proven optimal and how fast; return the others."""
    took, missed = [], []
    for name, problem in small_problems():
        if only not in name:
            continue
        result = search(problem, seconds=seconds, workers=workers)
        took.append(result.seconds if result.optimal else np.inf)
        if not result.optimal:
            chunks, gap = problem.placement.chunks, f"{result.optimality_gap:.2%} above the bound"
            print(f"not proven: {name}, {chunks} chunks per rank, {gap}", flush=True)
            missed.append(f"{name} not proven")
    if took:
        print(
            f"{np.isfinite(took).sum()} of {len(took)} instances of up to 4 ranks and 8 microbatches proven optimal: "
            f"half of them within {np.median(took):.1f} s, 95 % within {np.quantile(took, 0.95, method='lower'):.1f} s"
        )
    return missed


def tight(seconds: float, workers: int, every: int) -> None:
    """The mean gap of random instances where memory is short."""
    from benchmarks.tight import COUNT, searched

    print(searched(range(0, COUNT, every), seconds=seconds, workers=workers))


def evaluator() -> None:
    """What the evaluator takes an op, over a schedule that is so long that the call counts little."""
    encoder = Encoder(case(Placement.v(32), 256, COMMON, 64))
    decisions = list_schedule(encoder, earliest(encoder), 600.0).decisions
    times = []
    for _ in range(500):
        begin = time.perf_counter()
        encoder.timed(decisions)
        times.append(time.perf_counter() - begin)
    ops = encoder.positions * 1.5
    print(f"evaluator: {np.median(times) / ops * 1e9:.1f} ns an op ({ops:.0f} ops, call included)")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="instances whose name holds this")
    parser.add_argument("--part", choices=PARTS, action="append", help="what to run (everything); repeatable")
    parser.add_argument("--json", type=Path, help="file for what the table's searches found when")
    parser.add_argument(
        "--every-tight", type=int, default=EVERY_TIGHT, help="1: all random instances, for half an hour"
    )
    options = parser.parse_args()
    parts = options.part or PARTS
    print(f"{options.workers} workers on {os.cpu_count()} cores\n")
    missed: list[str] = []
    if "table" in parts:
        missed, curves = table(options.seconds, options.workers, options.only)
        if options.json is not None:
            options.json.write_text(json.dumps(curves, indent=1) + "\n", encoding="utf-8")
        print()
    if "small" in parts:
        missed += proofs(60.0, options.workers, options.only)
    if "tight" in parts and not options.only:
        tight(10.0, options.workers, options.every_tight)
    if "evaluator" in parts:
        evaluator()
    assert not missed, "worse than claimed: " + "; ".join(missed)


if __name__ == "__main__":
    main()
