"""The machines whose losses between ops are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, final

from pipeplan.api.presentable import Presentable
from pipeplan.costs import Machine
from pipeplan.drawing import View

if TYPE_CHECKING:
    from rich.console import RenderableType


@final
@dataclass(frozen=True, eq=False)
class Machines(Presentable):
    """Machines by name: what each loses, in milliseconds, and the runs that it was fitted to.

    Iteration gives the machines; ``to_frame()`` has a row a machine.
    """

    machines: tuple[Machine, ...]

    def __iter__(self) -> Iterator[Machine]:
        return iter(self.machines)

    def __len__(self) -> int:
        return len(self.machines)

    def views(self) -> Sequence[View]:
        """None: there is nothing to draw."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """``machines``: name, title, milliseconds lost, source."""
        return {"machines": list(self._rows())}

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.machines import machine_parts  # late: tables load rich

        return machine_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"name": each.name, "title": each.title, "time_unit": "ms", **asdict(each.overhead), "source": each.source}
            for each in self.machines
        ]

    def __repr__(self) -> str:
        return f"<Machines: {', '.join(each.name for each in self.machines)}>"
