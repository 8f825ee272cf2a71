"""Batches whose microbatches differ in length: gaps to the bound, orders for a data loader, and steps as they are predicted.

``python -m benchmarks.varying_batches gaps`` searches random batches, and orders them as a data loader would.
``python -m benchmarks.varying_batches runs`` trains batches in their own order and in a better one, on a model that sleeps
for each token of a microbatch: its steps can be predicted on a machine that others use too.
"""

from __future__ import annotations

import argparse
import time
from statistics import mean, median

import numpy as np
import torch
from torch import Tensor, nn

import pipeplan
from benchmarks.napping import WIDTH, nap
from pipeplan.runtime import Model

TOKENS = 64
"""Tokens of the longest microbatch of a run."""

NAP = 0.002, 0.002, 0.0015
"""Seconds that a token takes in F, I and W of a layer."""


def batch(seed: int, microbatches: int, sigma: float) -> list[float]:
    """Log-normal lengths with a mean of 4,096 tokens."""
    lengths = np.exp(np.random.default_rng(seed).normal(0, sigma, microbatches))
    return (lengths * 4096 / lengths.mean()).tolist()


class LongLayer(nn.Module):
    """A linear layer over the tokens of a sequence, that sleeps for each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output, with naps on both ways back."""
        forward, backward_input, backward_weight = (x.shape[1] * seconds for seconds in NAP)
        rested = nap(x, forward, backward_input)
        return nn.functional.linear(rested, nap(self.linear.weight, 0.0, backward_weight))


def model() -> Model:
    """Four layers."""
    return Model(
        name="napping",
        layers=(LongLayer,) * 4,
        batch=lambda generator: tuple(torch.randn(1, TOKENS, WIDTH, generator=generator) for _ in range(2)),
        loss=nn.functional.mse_loss,
        weights=(1.0,) * 4,
    )


def gaps(batches: int, seconds: float) -> None:
    """Print the gap of searched batches to their bounds, and the time and the gain of an order for a data loader."""
    replanner = pipeplan.Replanner("1f1b", ranks=8, microbatches=32)
    found, worse, times, gains = [], 0, [], []
    for seed in range(batches):
        lengths = batch(seed, 32, 0.3 + 0.7 * seed / max(batches - 1, 1))
        settings = {"ranks": 8, "lengths": lengths, "placement": "linear"}
        result = pipeplan.search(seconds=seconds, **settings)
        given = pipeplan.simulate("1f1b", ranks=8, lengths=lengths).makespan
        found.append(result.gap)
        worse += result.makespan > given
        begin = time.perf_counter()
        order = replanner.plan(lengths)
        times.append(time.perf_counter() - begin)
        gains.append(order.gain)
    print(f"{batches} batches, 8 ranks, 32 microbatches, {seconds:g} s each")
    print(f"gap to the bound     mean {mean(found):.2%}, largest {max(found):.2%}; worse than the given order: {worse}")
    print(f"order for a loader   median {1e3 * median(times):.0f} ms, longest {1e3 * max(times):.0f} ms")
    print(f"its gain over 1f1b   mean {mean(gains):.1%}, least {min(gains):.1%}")


def runs(batches: int) -> None:
    """Print predicted and measured gains of reordered steps."""
    forward, backward_input, backward_weight = (1e3 * TOKENS * seconds for seconds in NAP)
    costs = {
        "ranks": 4,
        "forward_times": forward,
        # Nothing asks for the gradient of the first stage's input.
        "backward_input_times": [0.001, *[backward_input] * 3],
        "backward_weight_times": backward_weight,
        "time_unit": "ms",
    }
    for seed in range(batches):
        tokens = np.array(batch(seed, 12, 0.8))
        lengths = np.maximum(np.round(TOKENS * tokens / tokens.max()), 1)
        order = pipeplan.Replanner("1f1b", **costs)(lengths.tolist())
        rows = [lengths.tolist(), lengths[list(order)].tolist()]
        done = [
            pipeplan.run(
                "1f1b", lengths=row, reference_length=TOKENS, model="benchmarks.varying_batches:model", steps=7, **costs
            )
            for row in rows
        ]
        shown = (f"{run.predicted_seconds:.3f} s predicted, {run.step_seconds.median:.3f} s measured" for run in done)
        print(f"batch {seed}:", "; reordered ".join(shown))
        predicted, measured = (
            1 - done[1].predicted_seconds / done[0].predicted_seconds,
            1 - done[1].step_seconds.median / done[0].step_seconds.median,
        )
        spread = max(run.step_seconds.spread for run in done)
        print(f"  gain {predicted:.1%} predicted, {measured:.1%} measured; steps vary by {spread:.1%}")


def main() -> None:
    """Measure one of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("gaps", "runs"))
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each search")
    options = parser.parse_args()
    if options.what == "gaps":
        gaps(options.batches, options.seconds)
    else:
        runs(options.batches)


if __name__ == "__main__":
    main()
