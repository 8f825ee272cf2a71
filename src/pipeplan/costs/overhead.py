"""Time that ranks spend outside of ops and transfers: gaps between ops, messages, the end of a step.

Machines are presets of these times, fitted to published runs. A machine is hardware and the framework that trains on it,
because the gap between ops depends more on the framework than on the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from pipeplan.foundation.errors import CostError
from pipeplan.foundation.readable import TIME_UNITS, units_in
from pipeplan.model import Bools, Floats, Kind, Placement, require_range


@dataclass(frozen=True, slots=True)
class Overhead:
    """Overhead of ranks, in the unit of the times.

    Attributes
    ----------
    op_gap
        Time before every op once its inputs are there: launching its kernels, and work of the framework.
    message_time
        Time of a message to or from another rank, paid by both ranks.
    step_time
        Time after the last op of a step: the optimizer, its barrier, the reduction over data-parallel ranks.

    Raises
    ------
    CostError
        If a time is negative, not finite, or too large.
    """

    op_gap: float = 0.0
    message_time: float = 0.0
    step_time: float = 0.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value, words = getattr(self, name), name.replace("_", " ")
            if not 0 <= value < np.inf:
                raise CostError(f"{words} must be at least 0 and finite, not {value}", field=name)
            require_range(words, value, field=name)

    @property
    def between_ops(self) -> bool:
        """True if there is any overhead between ops."""
        return self.op_gap > 0 or self.message_time > 0


def messages_sent(placement: Placement) -> Floats:
    """Return the number of messages to another rank that an op of each kind sends, shape (kinds, stages).

    If there are several copies of the model, a message in any of them counts.
    """
    after, before = _crossings(placement)
    return _by_kind(after, before)


def messages_received(placement: Placement) -> Floats:
    """Return the number of messages from another rank that an op of each kind receives, shape (kinds, stages).

    If there are several copies of the model, a message in any of them counts.
    """
    after, before = _crossings(placement)
    return _by_kind(before, after)


def _crossings(placement: Placement) -> tuple[Bools, Bools]:
    """Return masks of the stages whose next and whose previous stage is on another rank."""
    crosses = placement.crosses.any(axis=0)
    return np.append(crosses, False), np.append(False, crosses)


def _by_kind(forward: Bools, backward: Bools) -> Floats:
    table = np.zeros((len(Kind), len(forward)))
    table[Kind.F] = forward
    table[[Kind.B, Kind.I]] = backward
    return table


def message_times(overhead: Overhead, placement: Placement) -> Floats:
    """Return the time that the messages of an op take from its rank, shape (kinds, stages)."""
    return overhead.message_time * (messages_sent(placement) + messages_received(placement))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Overhead of ranks of one kind.

    Attributes
    ----------
    name
        Value of the setting ``machine``.
    title
        Hardware and framework.
    overhead
        Overhead in milliseconds.
    source
        Runs that it was fitted to, and the error of the fit.
    """

    name: str
    title: str
    overhead: Overhead
    source: str

    def overhead_in(self, unit: str) -> Overhead:
        """Return the overhead in a unit of time."""
        if unit not in TIME_UNITS:
            problem = f"not '{unit}'" if unit else "but it is not set"
            raise CostError(
                f"machine {self.name} needs a time unit ({', '.join(TIME_UNITS)}), {problem}", field="time_unit"
            )
        scale, overhead = units_in("ms", unit), self.overhead
        return Overhead(overhead.op_gap * scale, overhead.message_time * scale, overhead.step_time * scale)


MACHINES: Mapping[str, Machine] = MappingProxyType(
    {
        machine.name: machine
        for machine in (
            Machine(
                name="megatron-a100",
                title="A100, Megatron-LM and its zero-bubble fork",
                overhead=Overhead(op_gap=0.85),
                source=(
                    "fitted to Table 4 of Qi, Wan, Huang, Lin: Zero Bubble Pipeline Parallelism, ICLR 2024, from the stage "
                    "times in its Table 9: 24 runs of two models on 8 and 32 ranks, 1.5% off on average; messages and the "
                    "end of a step take nothing that these runs show"
                ),
            ),
        )
    }
)
"""All machines by name."""

NO_MACHINE = "none"
"""Name for no machine: no overhead."""
