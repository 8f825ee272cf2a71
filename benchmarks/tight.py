"""Random tight instances: how far the search's answers are above their bounds where memory is short."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.search import Times, case
from pipeplan.model import Placement
from pipeplan.solver import Objective, Problem


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
    times: Times = tuple(float(time) for time in (*random.integers(5, 16, 3), random.integers(0, 3)))
    held = int(random.integers(chunks, max(chunks * ranks // 2, chunks + 1) + 1))
    objective: Objective = "span" if random.random() < 0.25 else "makespan"
    text = "/".join(f"{time:g}" for time in times)
    name = f"{number}: {placement.name} {ranks}x{microbatches}, {chunks} chunks a rank, {text} at {held}, {objective}"
    return name, case(placement, microbatches, times, held, objective=objective)


def tight_problems(count: int = 200) -> Iterator[tuple[str, Problem]]:
    """So many of them."""
    yield from map(tight_problem, range(count))
