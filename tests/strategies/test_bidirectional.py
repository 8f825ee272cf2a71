"""Published makespans, bubbles and orders of pipelines in both directions."""

import pytest

from pipeplan.costs import Settings
from pipeplan.model import Timeline
from pipeplan.simulation import simulate
from pipeplan.strategies.bidirectional import bitpipe, chimera
from pipeplan.strategies.dualpipe import dualpipe, dualpipev
from tests.slow_simulator import peak_activations, worst_bubble


def test_critical_path_of_one_unit():
    """p forwards and 2p - 2 backwards, where the backward is the longer."""
    schedule = chimera(chimera.shape(6, 6))
    times = Settings(times_per="stage", forward_times=100.0, backward_times=201.0)
    assert simulate(schedule, times.costs(schedule.placement)).timeline.makespan == 6 * 100 + 10 * 201


# The figure "scale to more micro-batches" of the authors' repository, four ranks and eight microbatches of which 1, 2, 5
# and 6 enter at rank 0: order of the ops of ranks 0 and 1, with its colors for chunk 0 (f, b) and chunk 1 (F, B).
FIGURE = (
    "f1 f2 f3 F3 f4 F4 F1 B1 F2 B2 B3 b3 B4 b4 b1 f5 f6 b2 f7 F7 f8 F8 F5 B5 F6 B6 B7 b7 B8 b8 b5 b6",
    "f1 f3 f2 f4 F3 F1 F4 F2 B1 B3 B2 B4 b3 b1 b4 b2 f5 f7 f6 f8 F7 F5 F8 F6 B5 B7 B6 B8 b7 b5 b8 b6",
)
NUMBERS = (1, 2, 5, 6, 3, 4, 7, 8)
"""The figure's number of each microbatch: the first half here enters at rank 0."""


def bitpipe_run(ranks: int, microbatches: int, variant: str | None = None, *, backward: float = 2.0) -> Timeline:
    schedule = bitpipe(bitpipe.shape(ranks, microbatches, variant=variant))
    return simulate(schedule, Settings(times_per="stage", backward_times=backward).costs(schedule.placement)).timeline


def test_the_order_and_the_length_are_those_of_the_papers_figure() -> None:
    timeline = bitpipe_run(4, 8)
    for row, figure in zip(timeline.schedule, FIGURE, strict=False):
        letters = ((op.kind.name.upper() if op.stage > 3 else op.kind.name.lower()) for op in row)
        assert [f"{letter}{NUMBERS[op.microbatch]}" for letter, op in zip(letters, row, strict=True)] == figure.split()
    assert timeline.makespan == 53
    assert bitpipe_run(4, 4).makespan == 28


@pytest.mark.parametrize("ranks", [2, 4, 6, 10])
def test_bubble_and_memory_are_the_papers(ranks: int) -> None:
    shape = bitpipe.shape(ranks, ranks)
    idle = worst_bubble(bitpipe(shape))
    assert idle / (3 * ranks + idle) == pytest.approx((ranks - 2) / (3 * ranks + ranks - 2))
    assert max(peak_activations(bitpipe(shape))) == ranks == bitpipe.memory.value(shape)


@pytest.mark.parametrize(("strategy", "depth"), [(dualpipe, 4), (dualpipev, 8)])
def test_published_bubble_with_a_cheaper_overlap(strategy, depth):
    schedule = strategy(strategy.shape(8, 32))
    times = Settings(
        times_per="stage", forward_times=4.0, backward_times=7.0, backward_weight_times=3.0, overlap_times=9.0
    )
    idle = simulate(schedule, times.costs(schedule.placement)).timeline.idle
    assert idle.max() == (depth - 1) * (9 + 7 - 3 * 3)
