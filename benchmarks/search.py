"""How good the search is: against the best published schedules at the same memory, and against proven optima.

Run with ``make bench-search``, or ``python -m benchmarks.search --seconds 10 --only v8``. Prints, for each instance, ours,
the best published at that memory, the bound, the gap, and when ours was found; asserts the values that are claimed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeplan.costs import Limits, Settings
from pipeplan.kernels import compile_loop
from pipeplan.model import Placement
from pipeplan.search import Instance, search
from pipeplan.search.arrays import Plan
from pipeplan.search.candidate import Encoder
from pipeplan.search.evaluate_kernel import INFEASIBLE, evaluate
from pipeplan.search.list_scheduling import earliest, list_schedule

Times = tuple[float, float, float, float]
"""F, I and W of a stage, and a transfer."""


@dataclass(frozen=True, slots=True)
class Goal:
    """An instance, the best published value at its memory and whose it is, and what ours must not exceed."""

    name: str
    instance: Instance
    published: float
    by: str
    target: float


def v_instance(
    ranks: int, microbatches: int, times: Times, chunks: float, sizes: tuple[float, float] | None = None
) -> Instance:
    """A V under a cap of so many chunk activations; ``sizes``: bytes of a chunk's activation, and what only W frees."""
    placement = Placement.v(ranks)
    bytes_held = {} if sizes is None else {"activation_bytes": 2 * sizes[0], "weight_activation_bytes": 2 * sizes[1]}
    forward, backward_input, backward_weight, transfer = times
    settings = Settings(
        forward_times=forward,
        backward_input_times=backward_input,
        backward_weight_times=backward_weight,
        p2p_time=transfer,
        times_per="stage",
        **bytes_held,  # type: ignore[arg-type]
    )
    limits = Limits(np.full(ranks, chunks / 2), in_activations=True)
    return Instance(placement, microbatches, settings.costs(placement), limits)


def layer_sizes(hidden: int, heads: int, sequence: int) -> tuple[float, float]:
    """Bytes of a transformer layer's activations for each token, and the part that only W frees."""
    return 34 * hidden + 5 * heads * sequence, 32 * hidden


def goals() -> Iterator[Goal]:
    """The rows of the table."""
    common = (100.0, 120.0, 80.0, 10.0)
    for chunks, published, by, target in (
        (8, 20_280, "v_auto", 18_759),
        (10, 17_140, "V-Half", 16_960),
        (12, 16_540, "v_auto", 16_540),
        (16, 15_570, "handcraft_zbv", 15_540),
    ):
        yield Goal(f"v8x24 100/120/80/10 at {chunks}", v_instance(8, 24, common, chunks), published, by, target)
    measured = (14407.0, 14380.0, 9676.0, 1610.0)
    for chunks, published, by in ((8, 2_549_088, "v_auto"), (10, 2_205_641, "v_auto"), (12, 2_128_715, "v_auto")):
        sizes = (303_104.0, 131_072.0)
        name = f"v8x24 14407/14380/9676/1610 at {chunks}"
        yield Goal(name, v_instance(8, 24, measured, chunks, sizes), published, by, published)
    for ranks, microbatches, times, model, published, target in (
        (8, 24, (18522.0, 18086.0, 9337.0, 601.0), (2304, 24, 1024), 2_356_049, 2_349_482),
        (8, 24, (29718.0, 29444.0, 19927.0, 527.0), (4096, 32, 1024), 4_022_743, 4_014_501),
        (16, 48, measured, (4096, 32, 1024), 4_029_303, 4_014_173),
    ):
        case = v_instance(ranks, microbatches, times, 2 * ranks, layer_sizes(*model))
        numbers = "/".join(f"{time:.0f}" for time in times)
        yield Goal(f"v{ranks}x{microbatches} {numbers} at {2 * ranks}", case, published, "zbv-heuristic", target)
    equal = (100.0, 100.0, 100.0, 0.0)
    yield Goal("v8x24 100/100/100/0 at 12", v_instance(8, 24, equal, 12), 15_500, "v_auto", 15_500)
    yield Goal("v4x8 6/4/4/1 at 8", v_instance(4, 8, (6.0, 4.0, 4.0, 1.0), 8), 247, "zbv-heuristic", 245)


def table(seconds: float, workers: int, only: str) -> list[str]:
    """Print a row for each goal, and return those that were missed."""
    missed = []
    print(f"{'instance':44} {'ours':>12} {'published':>12} {'by':14} {'bound':>12} {'gap':>7} {'found after':>11}")
    for goal in goals():
        if only not in goal.name:
            continue
        result = search(goal.instance, seconds=seconds, workers=workers)
        mark = "" if result.value <= goal.target else f"  target {goal.target:.0f} missed"
        missed += [goal.name] if mark else []
        print(
            f"{goal.name:44} {result.value:12.0f} {goal.published:12.0f} {goal.by:14} {result.bound.value:12.0f} "
            f"{result.gap:7.2%} {result.history[-1].seconds:10.1f}s{mark}",
            flush=True,
        )
    return missed


def evaluator() -> None:
    """What the compiled evaluator takes an op, over a whole schedule."""
    encoder = Encoder(v_instance(8, 24, (100.0, 120.0, 80.0, 10.0), 16))
    plan: Plan = list_schedule(encoder, earliest(encoder), 600.0).plan
    compiled, scratch = compile_loop(evaluate), encoder.scratch()
    times = []
    for _ in range(2000):
        begin = time.perf_counter()
        compiled(encoder.shop, plan, 0, 0.0, INFEASIBLE / 2, scratch)
        times.append(time.perf_counter() - begin)
    ops = encoder.positions * 1.5
    print(f"evaluator: {np.median(times) / ops * 1e9:.1f} ns an op ({ops:.0f} ops, call included)")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="instances whose name holds this")
    options = parser.parse_args()
    evaluator()
    missed = table(options.seconds, options.workers, options.only)
    assert not missed, f"worse than claimed: {missed}"


if __name__ == "__main__":
    main()
