import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from pipeplan.errors import InputError, ShapeError, UnknownNameError
from pipeplan.model import Schedule, schedule_from_cells
from pipeplan.passes import without_waits
from pipeplan.runtime import from_torch, torch_internals
from pipeplan.strategies import strategy
from tests.conformance import conformance
from tests.runtime.lowered import comparable


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


@pytest.mark.parametrize("name", torch_internals.SCHEDULE_CLASSES)
@pytest.mark.parametrize(("ranks", "microbatches"), [(2, 4), (3, 6), (4, 12)])
def test_our_strategy_of_that_name_is_the_same(name: str, ranks: int, microbatches: int) -> None:
    theirs = from_torch(name, ranks, microbatches)
    ours = strategy(theirs.name)
    assert ours(ours.shape(ranks, microbatches, theirs.placement.chunks)) == theirs


@pytest.mark.parametrize("name", torch_internals.SCHEDULE_CLASSES)
def test_live_objects_classes_and_names_agree(name: str) -> None:
    cls = torch_internals.schedule_class(name)
    chunks = 1 if name in ("GPipe", "1F1B") else 2
    live = torch_internals.instantiate(cls, 2, 4, chunks)
    assert from_torch(live) == from_torch(cls, 2, 4) == from_torch(f"Schedule{name}", 2, 4) == from_torch(name, 2, 4)


def test_shapes_that_pytorch_refuses() -> None:
    with pytest.raises(ShapeError, match=r"refuses this shape.*exactly 2 stages per rank"):
        from_torch("ZBVZeroBubble", 2, 4, 3)
    with pytest.raises(ShapeError, match="1 chunk"):
        from_torch("GPipe", 2, 4, 2)
    with pytest.raises(ShapeError, match="greater than or equal to the number of stages"):
        from_torch("1F1B", 4, 2)


def test_what_is_no_schedule() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'ZBVZeroBubble'"):
        from_torch("ZBVZeroBuble", 2, 4)
    with pytest.raises(InputError, match="needs its shape"):
        from_torch("GPipe")
    with pytest.raises(InputError, match="not a schedule class"):
        from_torch(dict, 2, 4)
    with pytest.raises(InputError, match="not a schedule of torch"):
        from_torch([1])
    with pytest.raises(InputError, match="has its own shape"):
        from_torch(torch_internals.instantiate(torch_internals.schedule_class("ZBVZeroBubble"), 2, 4, 2), 2, 4)
    with pytest.raises(InputError, match="no order with communication"):
        from_torch("GPipe", 2, 4, communication=True)
