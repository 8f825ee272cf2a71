import numpy as np
import pytest

from pipeplan.costs import Limits, Memory
from pipeplan.errors import CostError
from pipeplan.model import (
    Kind,
    Placement,
    held_throughout,
    in_activations,
    memory_changes,
    memory_levels,
    parse_schedule,
)

ACTIVATION, FREED_BY_WEIGHT = np.array([4.0, 8.0]), np.array([1.0, 10.0])


def test_what_a_rank_holds_after_each_op():
    schedule = parse_schedule("0F0 0I0 0W0\n1F0 1I0 1W0")
    assert memory_levels(schedule, ACTIVATION, FREED_BY_WEIGHT).tolist() == [4, 1, 0, 8, 10, 0]


def test_a_recomputed_forward_keeps_nothing():
    schedule = parse_schedule("0F0 0F1 0R0 0B0 0B1")
    assert memory_levels(schedule, np.array([3.0]), np.array([3.0])).tolist() == [0, 3, 6, 3, 0]


def test_every_op_of_a_microbatch_together_changes_nothing():
    change = memory_changes(ACTIVATION, FREED_BY_WEIGHT)
    assert (change[Kind.F] + change[Kind.I] + change[Kind.W] == 0).all()
    assert (change[Kind.F] + change[Kind.B] == 0).all()
    assert not change[[Kind.SEND_F, Kind.RECV_B, Kind.UNSHARD]].any()


def test_a_ranks_chunks_share_one_activation():
    activation, freed_by_weight = in_activations(Placement.v(1), ACTIVATION, FREED_BY_WEIGHT)
    assert activation.tolist() == [0.5, 0.5]
    assert freed_by_weight.tolist() == [0.125, 0.625]


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
