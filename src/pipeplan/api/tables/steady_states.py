"""What each further microbatch costs, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from pipeplan.api.searching.search_words import costs_in_words, limit_in_words
from pipeplan.api.tables.parts import columns, facts, line
from pipeplan.readable import Times, percent

if TYPE_CHECKING:
    # Tables must not load the solver.
    from pipeplan.api.searching.steady_answers import SteadyStates


def steady_parts(steady: SteadyStates) -> tuple[RenderableType, ...]:
    """The best pattern and its bound, what is known of each number of microbatches a period, and the pattern's rows."""
    found = steady.found
    problem, best = found.problem, found.best
    values = [found.bound, *(known.pattern.per_microbatch for known in found.periods if known.pattern is not None)]
    times = Times.of(values, steady.unit)
    said = [
        ("each further microbatch", "no pattern found" if best is None else times.text(best.per_microbatch)),
        ("at least", f"{times.text(found.bound)}" + ("" if found.gap is None else f", gap {percent(found.gap)}")),
        ("costs", costs_in_words(problem.costs, problem.placement)),
        ("memory limit", limit_in_words(problem.limits)),
    ]
    in_unit = f" ({times.unit})" if times.unit else ""
    table = columns("microbatches a period", f"time for each{in_unit}", f"at least{in_unit}", padding=1)
    for known in found.periods:
        value = "none found" if known.pattern is None else times.number(known.pattern.per_microbatch)
        table.add_row(str(known.microbatches * problem.placement.copies), value, times.number(known.bound))
    heading = Text("the steady state", style="bold")
    rows = (
        [] if best is None else [line(f"rank {rank}: {' '.join(map(str, row))}") for rank, row in enumerate(best.rows)]
    )
    return heading, Padding(facts(said), (1, 0)), table, Text(""), *rows
