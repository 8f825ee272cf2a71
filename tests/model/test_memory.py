import numpy as np
import pytest

from pipeplan.costs import Limits, Memory
from pipeplan.foundation.errors import CostError
from pipeplan.model import (
    Kind,
    Placement,
    Timeline,
    held_throughout,
    in_activations,
    memory_changes,
    memory_levels,
    memory_moments,
    parse_schedule,
)

ACTIVATION, FREED_BY_WEIGHT = np.array([4.0, 8.0]), np.array([1.0, 10.0])


@pytest.mark.parametrize(
    ("text", "sizes", "parts", "levels"),
    [
        ("0F0 0I0 0W0\n1F0 1I0 1W0", ([4, 8], [1, 10]), {}, [4, 1, 0, 8, 10, 0]),
        ("0F0 0F1 0R0 0B0 0B1", ([3], [3]), {}, [0, 3, 6, 3, 0]),
        ("0F0 0F1 0R0 0B0 0B1", ([3], [3]), {"recompute_keeps": [1]}, [1, 4, 6, 3, 0]),
        ("0F0 0F1 0OFFLOAD0 0RELOAD0 0I0 0W0 0B1", ([3], [1]), {}, [3, 6, 3, 6, 4, 3, 0]),
        ("0F0 0F1 0OFFLOAD0 0RELOAD0 0I0 0W0 0B1", ([3], [1]), {"offloaded": [2]}, [3, 6, 4, 6, 4, 3, 0]),
        ("0F0.0 0OFFLOAD0.0 0F0.1 0B0.1 0RELOAD0.0 0B0.0", ([4], [4]), {}, [2, 0, 2, 0, 2, 0]),
    ],
)
def test_what_a_rank_holds_after_each_op(text, sizes, parts, levels):
    schedule = parse_schedule(text, slices=2 if "." in text else None)
    options = {name: np.array(part, float) for name, part in parts.items()}
    assert memory_levels(schedule, *(np.array(size, float) for size in sizes), **options).tolist() == levels


def test_every_op_of_a_microbatch_together_changes_nothing():
    change = memory_changes(ACTIVATION, FREED_BY_WEIGHT)
    assert (change[Kind.F] + change[Kind.I] + change[Kind.W] == 0).all()
    assert (change[Kind.F] + change[Kind.B] == 0).all()
    assert not change[[Kind.SEND_F, Kind.RECV_B, Kind.UNSHARD]].any()


def test_when_what_is_held_changes():
    schedule = parse_schedule("0F0 0F1 0OFFLOAD0 0B1 0RELOAD0 0B0")
    start, end = np.array([0.0, 1, 1, 2.5, 4.5, 6]), np.array([1.0, 2, 2.5, 4.5, 6, 8])
    assert memory_moments(Timeline(schedule, start, end)).tolist() == [0, 1, 2.5, 4.5, 4.5, 8]
    waits = np.array([1.0, 2, 1.5, 4.0, 7.5, 9.5])
    late = Timeline(schedule, np.array([0.0, 1, 1, 2, 6, 7.5]), waits)
    assert memory_moments(late).tolist() == [0, 1, 2, 4, 4, 9.5]


def test_a_ranks_chunks_share_one_activation():
    sizes = in_activations(Placement.v(1), ACTIVATION, FREED_BY_WEIGHT, np.array([1.0, 0]), np.array([2.0, 8]))
    assert [size.tolist() for size in sizes] == [[0.5, 0.5], [0.125, 0.625], [0.125, 0], [0.25, 0.5]]
    nothing = in_activations(Placement.v(1), np.zeros(2), np.zeros(2))
    assert [size.tolist() for size in nothing] == [[0.5, 0.5], [0.5, 0.5], [0, 0], [0.5, 0.5]]


def test_the_rule_has_every_part_in_its_unit():
    memory = Memory(ACTIVATION, FREED_BY_WEIGHT, np.zeros(2), True, ACTIVATION / 4, ACTIVATION / 2)
    placement = Placement.linear(2)
    for limits, whole in ((None, np.ones(2)), (Limits(np.ones(2), in_activations=False), ACTIVATION)):
        rule = memory.rule(placement, limits)
        assert rule.recompute_keeps.tolist() == (whole / 4).tolist()
        assert rule.offloaded.tolist() == (whole / 2).tolist()


def test_static_sizes_count_for_each_copy_of_the_model():
    assert held_throughout(Placement.bidirectional(2), np.array([5.0, 7.0])).tolist() == [12, 12]


def test_the_rule_is_in_the_unit_of_the_limits():
    memory, placement = (
        Memory(ACTIVATION, FREED_BY_WEIGHT, np.array([100.0, 200.0]), in_bytes=True),
        Placement.linear(2),
    )
    in_bytes = memory.rule(placement, Limits(np.array([120.0, 230.0]), in_activations=False))
    assert (in_bytes.limit.tolist(), in_bytes.unit) == ([20, 30], "bytes")
    assert in_bytes.activation.tolist() == [4, 8]
    assert memory.rule(placement, Limits(np.array([2.0, 3.0]), in_activations=True)).activation.tolist() == [1, 1]
    assert np.isinf(memory.rule(placement, None).limit).all()


def test_limits_that_do_not_fit_are_refused():
    memory = Memory(ACTIVATION, FREED_BY_WEIGHT, np.zeros(2), in_bytes=False)
    with pytest.raises(CostError, match="memory limit: 3 values for 2 ranks"):
        memory.rule(Placement.linear(2), Limits(np.ones(3), in_activations=True))
    with pytest.raises(CostError, match="a memory limit in bytes needs activation bytes"):
        memory.rule(Placement.linear(2), Limits(np.ones(2), in_activations=False))
