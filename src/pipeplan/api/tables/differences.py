"""Planned against measured for a terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from pipeplan.api.differences import Diff
from pipeplan.api.tables.parts import columns, facts, line, number

MOST_KINDS = 40
"""How many rows are listed: those with the largest effect."""


def diff_parts(found: Diff) -> tuple[RenderableType, ...]:
    """The error of the step time in its parts, each kind on each stage, and the first op that departs."""
    unit = f" {found.measured.unit}" if found.measured.unit else ""
    measured = found.measured.makespan
    rows = [
        ("planned", f"{number(found.planned.makespan)}{unit}"),
        ("measured", f"{number(measured)}{unit} ({found.error / measured:+.1%} of it unplanned)"),
        *([("  the median of", found.measured_of)] if found.measured_of else []),
        ("  from op times", f"{found.from_costs:+,.4g}{unit} ({found.from_costs / measured:+.1%})"),
        ("  from waiting", f"{found.from_waiting:+,.4g}{unit} ({found.from_waiting / measured:+.1%})"),
        ("gaps on the critical path", _path(found, unit)),
        ("order of ops", _departure(found)),
    ]
    heading = line(f"{found.planned.schedule.name or 'the schedule'}: planned against measured", "bold")
    return heading, Padding(facts(rows), (1, 0)), _kinds(found)


def _path(found: Diff, unit: str) -> str:
    return f"{number(found.path_messages)}{unit} between ranks, {number(found.path_gaps)}{unit} between ops"


def _departure(found: Diff) -> str:
    departure = found.departure
    if departure is None:
        return "as planned"
    return (
        f"first departs at {departure.op} on rank {departure.rank}, at {number(departure.start)}; "
        f"planned: {departure.planned}; measured: {departure.happened}"
    )


def _kinds(found: Diff) -> Table:
    table = columns("kind", "stage", "ops", "planned", "measured", "ratio", "effect", padding=1)
    ordered = sorted(found.kinds, key=lambda kind: -abs(kind.effect))
    listed = found.kinds if len(found.kinds) <= MOST_KINDS else ordered[:MOST_KINDS]
    for kind in listed:
        ratio = f"{kind.measured / kind.planned:.2f}" if kind.planned else ""
        cells = (number(kind.planned), number(kind.measured), ratio, f"{kind.effect:+,.4g}")
        table.add_row(kind.kind, str(kind.stage), str(kind.ops), *cells)
    return table
