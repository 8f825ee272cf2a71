"""Bytes of parameters and their state, against the tables of ZeRO and of the trainers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.extensions.planning.workload import RankParameters, state_bytes

N = 1_000_000


@pytest.mark.parametrize(
    ("zero", "gradient_bytes", "masters", "shards", "expected"),
    [
        (0, 4, "beside", 8, 18),
        (1, 4, "beside", 8, 6 + 12 / 8),
        (1, 2, "beside", 8, 4 + 12 / 8),
        (2, 4, "beside", 8, 2 + 16 / 8),
        (3, 4, "beside", 8, 18 / 8),
        (3, 4, "only", 8, 16 / 8),
        (3, 4, "none", 8, 10 / 8),
    ],
)
def test_bytes_a_parameter(zero: int, gradient_bytes: float, masters: str, shards: int, expected: float):
    """arXiv 1910.02054 Figure 1 with 32-bit gradients; Megatron-LM docs dist_optimizer; FSDP2 with 32-bit parameters."""
    state = state_bytes(
        RankParameters(dense=N),
        zero=zero,
        shards=shards,
        expert_shards=1,
        gradient_bytes=gradient_bytes,
        masters=masters,  # type: ignore[arg-type]
    )
    assert state.total == pytest.approx(expected * N)


def test_moments_of_16_bits_halve_their_bytes():
    states = [
        state_bytes(RankParameters(dense=N), zero=0, shards=1, expert_shards=1, moment_bytes=size) for size in (4, 2)
    ]
    assert [state.optimizer for state in states] == [12 * N, 8 * N]


@given(st.integers(0, N), st.integers(0, N), st.integers(0, 3), st.integers(1, 64), st.integers(1, 64))
def test_experts_are_sharded_over_their_own_replicas(
    dense: int, expert: int, zero: int, shards: int, expert_shards: int
):
    both, one, other = (
        state_bytes(parameters, zero=zero, shards=shards, expert_shards=expert_shards).total
        for parameters in (
            RankParameters(dense=dense, expert=expert),
            RankParameters(dense=dense),
            RankParameters(expert=expert),
        )
    )
    assert both == pytest.approx(one + other)
    swapped = state_bytes(RankParameters(dense=expert), zero=zero, shards=expert_shards, expert_shards=1)
    assert other == pytest.approx(swapped.total)
