"""Random tight instances: how far the search's answers are above their bounds where memory is short.

``python -m benchmarks.tight`` takes ten seconds for each of 200; their numbers are their seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.search_goals import Times, case
from pipeplan.extensions.search import Problem, search
from pipeplan.model import Objective, Placement

COUNT = 200
"""How many there are."""


def tight_problem(number: int) -> tuple[str, Problem]:
    """The instance of this number: 2 to 6 ranks, up to three microbatches a rank, limits from the least one to half of p."""
    random = np.random.default_rng([14, number])
    ranks = int(random.integers(2, 7))
    shapes = [Placement.linear(ranks), Placement.v(ranks), Placement.v(ranks), Placement.loop(ranks, 2)]
    if ranks <= 4:
        shapes += [Placement.wave(ranks, 4), Placement.loop(ranks, 3)]
    placement = shapes[random.integers(len(shapes))]
    chunks = placement.chunks
    microbatches = int(random.integers(ranks, 2 * ranks + ranks // chunks + 1))
    forward, backward_input, backward_weight = map(float, random.integers(5, 16, 3))
    times: Times = (forward, backward_input, backward_weight, float(random.integers(0, 3)))
    held = int(random.integers(chunks, max(chunks * ranks // 2, chunks + 1) + 1))
    objective: Objective = "span" if random.random() < 0.25 else "makespan"
    text = "/".join(f"{time:g}" for time in times)
    name = f"{number}: {placement.name} {ranks}x{microbatches}, {chunks} chunks per rank, {text} at {held}, {objective}"
    return name, case(placement, microbatches, times, held, objective=objective)


@dataclass(frozen=True, slots=True)
class Tight:
    """How far searches stayed above their bounds: a gap for each instance, in the order of their numbers."""

    names: tuple[str, ...]
    gaps: tuple[float, ...]

    @property
    def proven(self) -> int:
        """How many answers are proven optimal."""
        return sum(gap <= 1e-9 for gap in self.gaps)

    def __str__(self) -> str:
        worst = max(range(len(self.gaps)), key=self.gaps.__getitem__)
        return (
            f"{len(self.gaps)} random tight instances: mean gap {sum(self.gaps) / len(self.gaps):.2%}, "
            f"{self.proven} proven optimal, worst {self.gaps[worst]:.2%} ({self.names[worst]})"
        )


def searched(
    numbers: Iterable[int], *, seconds: float = 10.0, workers: int = 2, evaluations: int | None = None
) -> Tight:
    """Search each of these instances, and say of those that are not proven optimal how far they are from it."""
    names, gaps = [], []
    for name, problem in map(tight_problem, numbers):
        allowed = seconds if evaluations is None else None
        result = search(problem, workers=workers, seconds=allowed, evaluations=evaluations)
        names.append(name)
        gaps.append(result.optimality_gap)
        if not result.optimal:
            print(f"not proven: {name}: {result.value:g}, at least {result.bound.value:g}, {gaps[-1]:.2%}", flush=True)
    return Tight(tuple(names), tuple(gaps))


def main() -> None:
    """Print what is open, and the mean."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--every", type=int, default=1, help="take one in so many")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print(searched(range(0, options.count, options.every), seconds=options.seconds, workers=options.workers))


if __name__ == "__main__":
    main()
