"""An op: one unit of work of one stage on one microbatch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from pipeplan.model.values import Bools

NO_GROUP = -1
"""Group number of an op that overlaps with no other op."""

NO_MICROBATCH = -1
"""Microbatch number of a stage-wide op: UNSHARD, RESHARD, REDUCE_GRAD or WAIT_REDUCE_GRAD."""


class Kind(IntEnum):
    """Kind of work an op does. The names are those of PyTorch's text notation."""

    F = 0
    """forward"""
    B = 1
    """full backward: gradients of inputs and weights"""
    I = 2  # noqa: E741 - the field's own letter
    """backward for the inputs only"""
    W = 3
    """backward for the weights only"""
    R = 4
    """recompute the forward's activations before the backward"""
    SEND_F = 5
    """send a stage's output to the next stage"""
    RECV_F = 6
    """receive a stage's input from the previous stage"""
    SEND_B = 7
    """send the gradient of a stage's input to the previous stage"""
    RECV_B = 8
    """receive the gradient of a stage's output from the next stage"""
    UNSHARD = 9
    """gather a stage's sharded parameters (FSDP)"""
    RESHARD = 10
    """free a stage's gathered parameters (FSDP)"""
    REDUCE_GRAD = 11
    """reduce a stage's accumulated gradients over its data-parallel group"""
    OFFLOAD = 12
    """copy a forward's activations to host memory and free them on the rank"""
    RELOAD = 13
    """copy offloaded activations back to the rank before the backward that needs them"""
    WAIT_SEND_F = 14
    """wait until a SEND_F is done, then free what it sent"""
    WAIT_SEND_B = 15
    """wait until a SEND_B is done, then free what it sent"""
    WAIT_REDUCE_GRAD = 16
    """wait until a REDUCE_GRAD is done"""

    @property
    def is_compute(self) -> bool:
        """True if the op occupies its rank with computation."""
        return self in COMPUTE_KINDS

    @property
    def is_stage_wide(self) -> bool:
        """True if the op belongs to a stage and has no microbatch."""
        return self in STAGE_WIDE_KINDS


KIND_WORDS = {
    Kind.F: "forward",
    Kind.B: "backward",
    Kind.I: "backward for inputs",
    Kind.W: "backward for weights",
    Kind.R: "recompute",
    Kind.SEND_F: "send forward",
    Kind.RECV_F: "receive forward",
    Kind.SEND_B: "send backward",
    Kind.RECV_B: "receive backward",
    Kind.UNSHARD: "unshard",
    Kind.RESHARD: "reshard",
    Kind.REDUCE_GRAD: "reduce gradients",
    Kind.OFFLOAD: "offload to the host",
    Kind.RELOAD: "reload from the host",
    Kind.WAIT_SEND_F: "wait for a send forward",
    Kind.WAIT_SEND_B: "wait for a send backward",
    Kind.WAIT_REDUCE_GRAD: "wait for reduced gradients",
}
"""Words for each kind in sentences, tables and legends."""

PASS_KINDS = (Kind.F, Kind.B, Kind.I, Kind.W)
"""Kinds that every runtime can execute. Runtimes recompute inside the backward, so R is not among them."""

COMPUTE_KINDS = (*PASS_KINDS, Kind.R)
"""Kinds that occupy a rank with computation."""

BACKWARD_KINDS = (Kind.B, Kind.I)
"""Kinds that produce the gradient for the previous stage."""

WEIGHT_KINDS = (Kind.B, Kind.W)
"""The kinds that add to a stage's weight gradients."""

SEND_KINDS = (Kind.SEND_F, Kind.SEND_B)
RECEIVE_KINDS = (Kind.RECV_F, Kind.RECV_B)
COMMUNICATION_KINDS = (Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)
"""Both ends of point-to-point messages."""

WAIT_OF = {
    Kind.SEND_F: Kind.WAIT_SEND_F,
    Kind.SEND_B: Kind.WAIT_SEND_B,
    Kind.REDUCE_GRAD: Kind.WAIT_REDUCE_GRAD,
}
"""Kind that waits for an asynchronous op to complete. PyTorch's runtime has these ops since 2.15."""

WAIT_KINDS = tuple(WAIT_OF.values())
SEND_WAIT_KINDS = tuple(WAIT_OF[kind] for kind in SEND_KINDS)
"""Kinds that wait for the send of one microbatch."""

STAGE_WIDE_KINDS = (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD, Kind.WAIT_REDUCE_GRAD)
"""Kinds that belong to a stage and have no microbatch."""

COLLECTIVE_KINDS = (Kind.UNSHARD, Kind.REDUCE_GRAD)
"""Collectives of a stage's data-parallel group. They run in order on a stream of the rank and leave its compute free."""

HOST_KINDS = (Kind.OFFLOAD, Kind.RELOAD)
"""Copies between a rank and its host. They use the rank's link in one direction and leave its compute free."""

BESIDE_KINDS = (*HOST_KINDS, *COLLECTIVE_KINDS)
"""Kinds that take time beside the computation of their rank."""


def among(kind: NDArray[np.integer], kinds: Iterable[Kind]) -> Bools:
    """Return a mask of the array's shape, True where a kind is one of ``kinds``.

    For example ``among(columns.kind, COMPUTE_KINDS)``.
    """
    chosen = np.zeros(len(Kind), np.bool_)
    chosen[list(kinds)] = True
    answer: Bools = chosen[kind]
    return answer


@dataclass(frozen=True, slots=True, order=True)
class Op:
    """One op as a value, for display and tests.

    Schedules store ops in :class:`~pipeplan.model.columns.Columns`. Ops of one rank with the same ``group`` overlap.
    """

    kind: Kind
    stage: int
    microbatch: int = NO_MICROBATCH
    slice: int = 0
    group: int = NO_GROUP

    def __str__(self) -> str:
        microbatch = "" if self.microbatch == NO_MICROBATCH else str(self.microbatch)
        part = f".{self.slice}" if self.slice else ""
        return f"{self.stage}{self.kind.name}{microbatch}{part}"
