import pytest

from pipeplan.costs import Settings
from pipeplan.errors import ShapeError
from pipeplan.model import Timeline
from pipeplan.simulation import simulate
from pipeplan.strategies.bitpipe import bitpipe, build_bitpipe
from tests.slow_simulator import peak_activations, worst_bubble
from tests.strategies.picture import picture
from tests.strategies.tables import documented_table

TABLE = """\
rank 0 | 0F0 0F1 .   3F2 4F2 3F3 4F3 7F0 7B0 7F1 7B1 4B2 3B2 4B3 3B3 0B0 .   0B1
rank 1 | .   1F0 2F2 1F1 2F3 5F2 6F0 5F3 6F1 6B0 5B2 6B1 5B3 2B2 1B0 2B3 1B1 .
rank 2 | .   1F2 2F0 1F3 2F1 5F0 6F2 5F1 6F3 6B2 5B0 6B3 5B1 2B0 1B2 2B1 1B3 .
rank 3 | 0F2 0F3 .   3F0 4F0 3F1 4F1 7F2 7B2 7F3 7B3 4B0 3B0 4B1 3B1 0B2 .   0B3"""

# The figure "scale to more micro-batches" of the authors' repository, four ranks and eight microbatches of which 1, 2, 5
# and 6 enter at rank 0: order of the ops of ranks 0 and 1, with its colors for chunk 0 (f, b) and chunk 1 (F, B).
FIGURE = (
    "f1 f2 f3 F3 f4 F4 F1 B1 F2 B2 B3 b3 B4 b4 b1 f5 f6 b2 f7 F7 f8 F8 F5 B5 F6 B6 B7 b7 B8 b8 b5 b6",
    "f1 f3 f2 f4 F3 F1 F4 F2 B1 B3 B2 B4 b3 b1 b4 b2 f5 f7 f6 f8 F7 F5 F8 F6 B5 B7 B6 B8 b7 b5 b8 b6",
)
NUMBERS = (1, 2, 5, 6, 3, 4, 7, 8)
"""The figure's number of each microbatch: the first half here enters at rank 0."""


def simulated(ranks: int, microbatches: int, variant: str | None = None, *, backward: float = 2.0) -> Timeline:
    schedule = bitpipe(bitpipe.shape(ranks, microbatches, variant=variant))
    return simulate(schedule, Settings(times_per="stage", backward_times=backward).costs(schedule.placement)).timeline


def test_timing_table() -> None:
    assert picture(simulated(4, 4, backward=1.0)) == TABLE == documented_table(build_bitpipe)


def test_the_order_and_the_length_are_those_of_the_papers_figure() -> None:
    timeline = simulated(4, 8)
    for row, figure in zip(timeline.schedule, FIGURE, strict=False):
        letters = ((op.kind.name.upper() if op.stage > 3 else op.kind.name.lower()) for op in row)
        assert [f"{letter}{NUMBERS[op.microbatch]}" for letter, op in zip(letters, row, strict=True)] == figure.split()
    assert timeline.makespan == 53
    assert simulated(4, 4).makespan == 28


@pytest.mark.parametrize("ranks", [2, 4, 6, 10])
def test_bubble_and_memory_are_the_papers(ranks: int) -> None:
    shape = bitpipe.shape(ranks, ranks)
    idle = worst_bubble(bitpipe(shape))
    assert idle / (3 * ranks + idle) == pytest.approx((ranks - 2) / (3 * ranks + ranks - 2))
    assert max(peak_activations(bitpipe(shape))) == ranks == bitpipe.memory.value(shape)


@pytest.mark.parametrize("variant", bitpipe.variants)
@pytest.mark.parametrize("units", [1, 2, 5])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_idle_time_is_exact(ranks: int, units: int, variant: str) -> None:
    shape = bitpipe.shape(ranks, units * ranks, variant=variant)
    assert worst_bubble(bitpipe(shape)) == bitpipe.bubble.value(shape)
    assert simulated(ranks, units * ranks, "direct", backward=1.0).idle.max() == ranks - 2


@pytest.mark.parametrize(
    ("ranks", "microbatches", "rule"),
    [(3, 6, "an even number of ranks, not 3"), (4, 6, "a multiple of 4 microbatches")],
)
def test_refused_shapes(ranks: int, microbatches: int, rule: str) -> None:
    with pytest.raises(ShapeError, match=rule):
        bitpipe(bitpipe.shape(ranks, microbatches))
