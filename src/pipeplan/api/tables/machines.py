"""The machines, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from pipeplan.api.machines import Machines
from pipeplan.api.tables.parts import facts, number


def machine_parts(machines: Machines) -> Iterator[RenderableType]:
    """A few lines a machine."""
    for each in machines:
        lost = each.overhead
        rows = [
            ("gap before every op", f"{number(lost.op_gap)} ms"),
            ("a message takes from a rank", f"{number(lost.message_time)} ms"),
            ("end of a step", f"{number(lost.step_time)} ms"),
            ("source", each.source),
        ]
        yield Text(f"{each.name}: {each.title}", style="bold")
        yield Padding(facts(rows), (0, 0, 1, 2))
    yield Text("'--machine NAME' sets them; '--op-gap', '--message-time' and '--step-time' go before it")
