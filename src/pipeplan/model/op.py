"""An op: one piece of work of one stage on one microbatch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from pipeplan.model.quantities import Bools

NO_GROUP = -1
"""The group of an op that overlaps with no other."""

NO_MICROBATCH = -1
"""The microbatch of an op that belongs to a whole stage: UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD."""


class Kind(IntEnum):
    """The work that an op does. The names are those of the text notation."""

    F = 0
    """forward"""
    B = 1
    """full backward: inputs and weights"""
    I = 2  # noqa: E741 - the field's own letter
    """backward for the inputs"""
    W = 3
    """backward for the weights"""
    R = 4
    """recompute the forward before the backward"""
    SEND_F = 5
    """send a stage's output to the next stage"""
    RECV_F = 6
    """receive a stage's input from the stage before"""
    SEND_B = 7
    """send the gradient of a stage's input to the stage before"""
    RECV_B = 8
    """receive the gradient of a stage's output from the next stage"""
    UNSHARD = 9
    """gather a stage's sharded parameters (FSDP)"""
    RESHARD = 10
    """give back a stage's gathered parameters"""
    REDUCE_GRAD = 11
    """reduce a stage's accumulated gradients over its data-parallel group"""
    OFFLOAD = 12
    """copy what a forward keeps to the host's memory, and free it on the rank"""
    RELOAD = 13
    """copy it back before the backward that needs it"""
    WAIT_SEND_F = 14
    """wait until a SEND_F is done, and let go of what it sent"""
    WAIT_SEND_B = 15
    """wait until a SEND_B is done, and let go of what it sent"""
    WAIT_REDUCE_GRAD = 16
    """wait until a REDUCE_GRAD is done"""

    @property
    def is_compute(self) -> bool:
        """Whether the op occupies its rank with work of the model."""
        return self in COMPUTE_KINDS

    @property
    def is_communication(self) -> bool:
        """Whether the op is a point-to-point message's end."""
        return self in COMMUNICATION_KINDS

    @property
    def is_stage_wide(self) -> bool:
        """Whether the op belongs to a stage and to no microbatch."""
        return self in STAGE_WIDE_KINDS

    @property
    def is_host_copy(self) -> bool:
        """Whether the op copies between its rank and the host, beside the rank's compute."""
        return self in HOST_KINDS


PASS_KINDS = (Kind.F, Kind.B, Kind.I, Kind.W)
"""The kinds that every runtime is told of: a recompute runs inside of the backward that needs it."""

COMPUTE_KINDS = (*PASS_KINDS, Kind.R)
"""The kinds that occupy a rank with work of the model."""

BACKWARD_KINDS = (Kind.B, Kind.I)
"""The kinds that hand a gradient on to the stage before."""

WEIGHT_KINDS = (Kind.B, Kind.W)
"""The kinds that add to a stage's weight gradients."""

SEND_KINDS = (Kind.SEND_F, Kind.SEND_B)
RECEIVE_KINDS = (Kind.RECV_F, Kind.RECV_B)
COMMUNICATION_KINDS = (Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)
"""The two ends of point-to-point messages."""

WAIT_OF = {
    Kind.SEND_F: Kind.WAIT_SEND_F,
    Kind.SEND_B: Kind.WAIT_SEND_B,
    Kind.REDUCE_GRAD: Kind.WAIT_REDUCE_GRAD,
}
"""The kind that waits until an op is done that its rank only starts. PyTorch's runtime has these ops since 2.15."""

WAIT_KINDS = tuple(WAIT_OF.values())
SEND_WAIT_KINDS = tuple(WAIT_OF[kind] for kind in SEND_KINDS)
"""The kinds that wait for a send of one microbatch."""

STAGE_WIDE_KINDS = (Kind.UNSHARD, Kind.RESHARD, Kind.REDUCE_GRAD, Kind.WAIT_REDUCE_GRAD)
"""The kinds that belong to a stage and to no microbatch."""

HOST_KINDS = (Kind.OFFLOAD, Kind.RELOAD)
"""The kinds that copy between a rank and its host. They occupy no compute, but the rank's link in one direction."""


def among(kind: NDArray[np.integer], kinds: Iterable[Kind]) -> Bools:
    """Whether each kind of an array is one of these, e.g. ``among(columns.kind, COMPUTE_KINDS)``; of the array's shape."""
    chosen = np.zeros(len(Kind), np.bool_)
    chosen[list(kinds)] = True
    answer: Bools = chosen[kind]
    return answer


@dataclass(frozen=True, slots=True, order=True)
class Op:
    """One op, as a person reads it. Inside schedules ops live in columns; see :class:`~pipeplan.model.columns.Columns`.

    Ops of one rank with the same ``group`` run overlapped.
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
