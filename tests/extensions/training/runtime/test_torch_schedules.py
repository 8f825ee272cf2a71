import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from pipeplan.model import Schedule, schedule_from_cells
from pipeplan.passes import without_waits
from pipeplan.strategies import strategy
from tests.conformance import conformance
from tests.extensions.training.runtime.lowered import comparable
from tests.extensions.training.runtime.torch_schedules import NAMES, from_torch


def rows(cells: list[str]) -> Schedule:
    return schedule_from_cells([[cell for cell in row.split() if cell != "."] for row in cells])


def shape(key: str) -> tuple[str, int, int, int]:
    name, ranks, microbatches, chunks = key.split("|")[:4]
    return name, int(ranks[2:]), int(microbatches[2:]), int(chunks[1:])


def test_every_recorded_order_is_read() -> None:
    for key, cells in conformance("torch_orders.json")["orders"].items():
        assert from_torch(*shape(key)) == rows(cells), key


def test_every_recorded_lowering_is_read() -> None:
    """They are of a release whose runtime has no ops that wait."""
    lowered = conformance("torch_orders.json")["lowered"]
    kept = {key: cells for key, cells in lowered.items() if shape(key)[0] not in ("GPipe", "1F1B")}
    assert kept
    for key, cells in kept.items():
        lowered_now = from_torch(*shape(key), communication=True)
        if without_waits(lowered_now) == lowered_now:
            assert lowered_now == rows(cells), key
        assert comparable(lowered_now) == comparable(rows(cells)), key


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("ranks", "microbatches"), [(2, 4), (3, 6), (4, 12)])
def test_our_strategy_of_that_name_is_the_same(name: str, ranks: int, microbatches: int) -> None:
    theirs = from_torch(name, ranks, microbatches)
    ours = strategy(theirs.name)
    assert ours(ours.shape(ranks, microbatches, theirs.placement.chunks)) == theirs
