"""Predicted against measured steps on this machine: the model is profiled, then trained with each schedule.

``python -m benchmarks.predicted_and_measured`` starts two processes on the CPU, a thread each. For every placement the
model's stages and what ranks lose between ops are measured; then each schedule of that placement is predicted and run:
GPipe, 1F1B, interleaved 1F1B, ZBV, and one that is searched on the very costs. Rounds go through all of it anew, as the
speed of a machine drifts; the medians count. A prediction is off by ``predicted / measured - 1``; "nothing lost" is the same
without what is lost between ops. Run it on an idle machine: other work takes time from ops that was not there when they were
measured. ``--model benchmarks.napping:model`` sleeps instead of computing, and minds that less.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pipeplan
from pipeplan.foundation.readable import units_in

PLACEMENTS = {"linear": ("gpipe", "1f1b"), "loop": ("interleaved-1f1b",), "v": ("zbv",)}
"""The published schedules that are run on each placement; the first one is profiled."""

SEARCHED = "searched"
"""The name of the searched schedule, on the linear placement."""

NOTHING_LOST = {"op_gap": 0.0, "message_time": 0.0}


@dataclass(slots=True)
class Steps:
    """Milliseconds of a schedule's step: predicted and measured in each round, and predicted with nothing lost."""

    predicted: list[float] = field(default_factory=list)
    ideal: list[float] = field(default_factory=list)
    measured: list[float] = field(default_factory=list)

    @property
    def error(self) -> float:
        """Of the medians."""
        return median(self.predicted) / median(self.measured) - 1

    @property
    def ideal_error(self) -> float:
        """The same with nothing lost."""
        return median(self.ideal) / median(self.measured) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is trained, and how often."""

    model: str
    microbatches: int
    steps: int
    repeats: int
    seconds: float


def one_round(options: Options, found: dict[str, Steps]) -> None:
    """Profile, predict and run everything once."""
    for names in PLACEMENTS.values():
        profile = pipeplan.profile(names[0], ranks=2, model=options.model, repeats=options.repeats, device="cpu")
        costs: dict[str, Any] = profile.to_dict() | {"microbatches": options.microbatches}
        for name in names:
            _predict_and_run(name, name, costs, options, found)
        if "1f1b" in names:
            best = pipeplan.search(placement="linear", seconds=options.seconds, **costs)
            _predict_and_run(SEARCHED, best.schedule, costs, options, found)


def _predict_and_run(
    name: str, schedule: Any, costs: dict[str, Any], options: Options, found: dict[str, Steps]
) -> None:
    steps = found.setdefault(name, Steps())
    steps.predicted.append(pipeplan.simulate(schedule, **costs).makespan)
    steps.ideal.append(pipeplan.simulate(schedule, **(costs | NOTHING_LOST)).makespan)
    trained = pipeplan.run(schedule, model=options.model, steps=options.steps, warmup=2, device="cpu", **costs)
    steps.measured.append(trained.run.median_step_seconds * units_in("s", "ms"))


def report(found: dict[str, Steps]) -> Iterator[str]:
    """A row a schedule, in Markdown."""
    yield "| schedule | measured, ms | nothing lost | error | predicted | error |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, steps in found.items():
        measured = sorted(steps.measured)
        yield (
            f"| {name} | {median(measured):.1f} ({measured[0]:.1f} to {measured[-1]:.1f}) | {median(steps.ideal):.1f} | "
            f"{steps.ideal_error:+.1%} | {median(steps.predicted):.1f} | {steps.error:+.1%} |"
        )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="gpt-tiny")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=15, help="timed steps of a run")
    parser.add_argument("--repeats", type=int, default=15, help="measured rounds of a profile")
    parser.add_argument("--seconds", type=float, default=3.0, help="of the search")
    given = parser.parse_args()
    options = Options(
        model=given.model,
        microbatches=given.microbatches,
        steps=given.steps,
        repeats=given.repeats,
        seconds=given.seconds,
    )
    found: dict[str, Steps] = {}
    for number in range(given.rounds):
        one_round(options, found)
        print(f"round {number + 1} of {given.rounds}", *report(found), "", sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
