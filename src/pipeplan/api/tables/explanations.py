"""An explanation as tables for a terminal."""

from __future__ import annotations

import numpy as np
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeplan.api.explanations import Explanation
from pipeplan.api.tables.parts import columns, facts, line, number, shown_ranks
from pipeplan.simulation import Reason

MOST_STAGES = 4
"""How many stages of the critical path are named."""


def explanation_parts(explanation: Explanation) -> tuple[RenderableType, ...]:
    """The reasons by rank, the critical path, the what-ifs."""
    result = explanation.result
    unit = f" {result.timeline.unit}" if result.timeline.unit else ""
    idle = float(result.timeline.idle.sum())
    name = f"{result.name or 'a run'}, measured" if result.timeline.source == "measured" else result.name
    heading = f"{name}: makespan {number(result.makespan)}{unit}, of which {number(idle)}{unit} idle on all ranks"
    return (
        Padding(line(heading, "bold"), (0, 0, 1, 0)),
        _reasons(explanation),
        Text("\ncritical path", style="bold"),
        Padding(facts(_path(explanation)), (0, 0, 1, 0)),
        _what_ifs(explanation),
        *(line(f"warning: {warning}") for warning in result.warnings),
    )


def _reasons(explanation: Explanation) -> Table:
    """Idle time of every rank by reason; reasons that never occur are left out."""
    totals = explanation.totals
    occurring = [reason for reason in Reason if totals[:, reason].any()]
    table = columns("rank", "idle", *(reason.key for reason in occurring), padding=1)
    shown = shown_ranks(len(totals))
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        idle = float(explanation.result.timeline.idle[rank])
        table.add_row(str(rank), number(idle), *(number(float(totals[rank, reason])) for reason in occurring))
    shares = totals.sum(axis=0) / max(float(totals.sum()), 1e-300)
    table.add_section()
    table.add_row("all", "100%" if occurring else "0%", *(f"{shares[reason]:.1%}" for reason in occurring))
    return table


def _path(explanation: Explanation) -> list[tuple[str, str]]:
    path, makespan = explanation.path, explanation.result.makespan
    rows = [(kind.name, f"{number(time)}  ({time / makespan:.1%})") for kind, time in path.by_kind.items()]
    if path.overhead:
        rows.append(("gaps between ops", f"{number(path.overhead)}  ({path.overhead / makespan:.1%})"))
    rows.append(
        (
            "transfers and waiting" if path.overhead else "between ops",
            f"{number(path.transfer)}  ({path.transfer / makespan:.1%})",
        )
    )
    largest = np.argsort(-path.by_stage, kind="stable")[:MOST_STAGES]
    stages = ", ".join(f"{stage} ({path.by_stage[stage] / makespan:.1%})" for stage in largest if path.by_stage[stage])
    return [*rows, ("stages", stages)]


def _what_ifs(explanation: Explanation) -> RenderableType:
    if not explanation.what_ifs:
        return Text("what-ifs are simulated: they need a schedule and its costs")
    makespan = explanation.result.makespan
    table = columns("what if", "makespan", "change", padding=1)
    for what in explanation.what_ifs:
        table.add_row(what.change, number(what.makespan), f"{what.makespan / makespan - 1:+.2%}")
    return table
