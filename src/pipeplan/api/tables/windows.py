"""The windows of time that a bound comes from, for a terminal: where they are, and how much of them is idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pipeplan.api.explaining.explanations import Explanation
from pipeplan.api.tables.parts import columns, line
from pipeplan.model import counted
from pipeplan.readable import Times
from pipeplan.simulation import LocatedWindow

_TITLES = {
    "first": "to the first backward",
    "trip": "round trip",
    "last": "from the last forward on",
    "owed": "after the last input backward",
}


def bound_parts(explanation: Explanation, times: Times) -> Iterator[RenderableType]:
    """What the bound says, and its windows; nothing where it has no windows, or none is on the timeline."""
    for sentence in bound_sentences(explanation, times):
        yield Text("")
        yield line(sentence)
        yield Text("")
        yield _table(explanation.windows, times)


def bound_sentences(explanation: Explanation, times: Times) -> Iterator[str]:
    """How long every schedule within the limit takes, why, and how much of this one's idle time is due to it."""
    bound = explanation.result.bound
    trips = bound.round_trips
    if trips is None or not explanation.windows:
        return
    idle = sum(each.idle for each in explanation.windows)
    schedule = explanation.result.schedule
    costs = explanation.result.costs.occupied(schedule.placement, schedule.slices)
    shorter = costs.overlap is not None or bool((costs.backward < costs.backward_input + costs.backward_weight).any())
    loses = "idles, or runs what could take less, for" if shorter else "idles"
    yield (
        f"No schedule within the memory limit takes less than {times.text(bound.value)}: rank {trips.rank} holds "
        f"{counted(trips.fit, 'microbatch')} at most, and {loses} {times.number(trips.idle)} or more in "
        f"{counted(len(explanation.windows), 'window')} of time, {times.number(idle)} here."
    )


def _table(windows: Sequence[LocatedWindow], times: Times) -> Table:
    """A row for windows of a kind, with the least and the most of them."""
    unit = f" ({times.unit})" if times.unit else ""
    table = columns("windows", f"between{unit}", "long,\nat least", "idle,\nat least", "idle\nhere", padding=1)
    for kind, found in groupby(windows, key=lambda each: each.window.kind):
        alike = list(found)
        title = _TITLES[kind] if len(alike) == 1 else counted(len(alike), _TITLES[kind])
        table.add_row(
            title,
            f"{times.number(alike[0].start)} to {times.number(alike[-1].end)}",
            times.number(alike[0].window.length),
            times.number(alike[0].window.idle),
            _range([each.idle for each in alike], times),
        )
    return table


def _range(values: Sequence[float], times: Times) -> str:
    least, most = times.number(min(values)), times.number(max(values))
    return least if least == most else f"{least} to {most}"
