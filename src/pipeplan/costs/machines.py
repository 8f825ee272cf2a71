"""Machines whose losses between ops are known: what they were fitted to, and how well.

A machine here is hardware and the framework that trains on it: the gap between ops is the framework's more than the GPU's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pipeplan.costs.overhead import Overhead
from pipeplan.errors import CostError
from pipeplan.model import TIME_UNITS, units_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What ranks of one kind lose.

    Attributes
    ----------
    name
        As ``machine`` takes it.
    title
        Hardware and framework.
    overhead
        In milliseconds.
    source
        The runs that it was fitted to, and how well it agrees with them.
    """

    name: str
    title: str
    overhead: Overhead
    source: str

    def overhead_in(self, unit: str) -> Overhead:
        """What is lost, in a unit of time.

        Raises
        ------
        CostError
            For a unit that is not known.
        """
        if unit not in TIME_UNITS:
            said = f"not '{unit}'" if unit else "which nobody said"
            raise CostError(
                f"machine {self.name} loses milliseconds: it needs the unit of the times ({', '.join(TIME_UNITS)}), "
                f"{said}",
                field="time_unit",
            )
        scale = units_in("ms", unit)
        lost = self.overhead
        return Overhead(lost.op_gap * scale, lost.message_time * scale, lost.step_time * scale)


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
"""Every machine by its name."""

NO_MACHINE = "none"
"""The word for no machine: nothing is lost."""
