"""What parameters hold on a rank throughout a step: themselves, their gradients, and what the optimizer keeps of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeplan.workload.work import RankParameters

Masters = Literal["beside", "only"]
"""Parameters in 32 bits, which the optimizer updates: ``beside`` those in 16 that products read (Megatron), or ``only``
these, of which products get a 16-bit copy when they run (PyTorch's FSDP2 with mixed precision)."""

MOMENTS = 8
"""Bytes that Adam keeps of a parameter: two moments in 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Bytes on a rank.

    Attributes
    ----------
    weights, gradients, optimizer
        Parameters that products read (or that are gathered for them), accumulated gradients, and 32-bit parameters with
        both moments.
    """

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer


def state_bytes(
    parameters: RankParameters,
    *,
    zero: int,
    shards: int,
    expert_shards: int,
    gradient_bytes: float = 4,
    weight_bytes: float = 2,
    masters: Masters = "beside",
) -> State:
    """Bytes of a rank's parameters and their state under Adam.

    Parameters
    ----------
    zero
        What is sharded: 0 nothing, 1 optimizer state, 2 gradients too, 3 parameters too (ZeRO, arXiv 1910.02054).
    shards, expert_shards
        Over how many ranks: d c of dense parameters, the expert data degree of routed experts.
    gradient_bytes
        Of an accumulated gradient: 4, or 2 where it stays in 16 bits.
    weight_bytes
        Of a parameter that products read; more than 2 where 8-bit copies stand beside it.
    masters
        Where the 32-bit parameters are.
    """
    weight, optimizer = (4.0, float(MOMENTS)) if masters == "only" else (weight_bytes, 4.0 + MOMENTS)

    def held(bytes_a_parameter: float, *, from_stage: int) -> float:
        over = (shards, expert_shards) if zero >= from_stage else (1, 1)
        return bytes_a_parameter * (parameters.dense / over[0] + parameters.expert / over[1])

    return State(
        weights=held(weight, from_stage=3),
        gradients=held(gradient_bytes, from_stage=2),
        optimizer=held(optimizer, from_stage=1),
    )
