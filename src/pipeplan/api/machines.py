"""Machines with known overheads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, final

import msgspec

from pipeplan.api.answers import AnswerRecord
from pipeplan.api.parts import facts, line, number
from pipeplan.costs import MACHINES, Machine
from pipeplan.records import Evidence, Record

if TYPE_CHECKING:
    from pipeplan.api.parts import Part


class MachineRecord(Record, frozen=True, kw_only=True):
    """Losses between ops that runs on a machine were fitted to."""

    name: str
    title: str
    time_unit: str
    op_gap: float
    message_time: float
    step_time: float
    source: str


@final
class Machines(AnswerRecord, frozen=True, kw_only=True, eq=False):
    """Machines by name: the overheads of each, in milliseconds, and the runs that they were fitted to.

    Iteration gives the machines; ``to_frame()`` has a row per machine.
    """

    schema_name = "answer-machines"

    records: tuple[MachineRecord, ...] = msgspec.field(name="machines")

    machines = Evidence[tuple[Machine, ...]]()
    """The machines as costs take them."""

    def __iter__(self) -> Iterator[Machine]:
        return iter(self.machines)

    def __len__(self) -> int:
        return len(self.machines)

    def table(self) -> Iterator[Part]:
        """Return a few lines per machine."""
        for machine in self.records:
            rows = [
                ("gap before every op", f"{number(machine.op_gap)} ms"),
                ("a message takes from a rank", f"{number(machine.message_time)} ms"),
                ("end of a step", f"{number(machine.step_time)} ms"),
                ("source", machine.source),
            ]
            yield line(f"{machine.name}: {machine.title}", "bold")
            yield facts(rows, below=1, indent=2)
        yield line("'--machine NAME' sets them; '--op-gap', '--message-time' and '--step-time' go before it")

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [record.to_dict() for record in self.records]

    def __repr__(self) -> str:
        return f"<Machines: {', '.join(machine.name for machine in self.machines)}>"


def all_machines() -> Machines:
    """Return every known machine."""
    machines = tuple(MACHINES.values())
    records = (
        MachineRecord(
            name=machine.name, title=machine.title, time_unit="ms", source=machine.source, **asdict(machine.overhead)
        )
        for machine in machines
    )
    return Machines(records=tuple(records)).holding(machines=machines)
