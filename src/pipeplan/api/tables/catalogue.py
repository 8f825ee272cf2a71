"""The strategies, or all about one of them, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeplan.api.catalogue import Catalogue, Timing, fixed_chunks
from pipeplan.api.tables.parts import columns, facts, line
from pipeplan.model import counted
from pipeplan.readable import Times, percent
from pipeplan.strategies import Strategy


def catalogue_parts(catalogue: Catalogue) -> Iterator[RenderableType]:
    """Two lines a strategy; of one alone all of its figures, its names and its idea."""
    if len(catalogue) == 1:
        yield from _alone(catalogue.strategies[0], catalogue.timings)
        return
    for found, timing in zip(catalogue, catalogue.timings, strict=True):
        yield _heading(found)
        yield Padding(Text(f"{_placed(found)}; {_in_words(timing)}"), (0, 0, 0, 4))
    first = catalogue.timings[0]
    yield Text(
        f"\nidle time and peak memory on {first.ranks} ranks with {first.microbatches} microbatches; "
        "'pipeplan schedules NAME' shows one of them: its picture, formulas, paper and idea"
    )


def _alone(found: Strategy, timings: Sequence[Timing]) -> Iterator[RenderableType]:
    rows = _facts(found)
    rows += [("variants", ", ".join(found.variants))] if found.variants else []
    rows += [("also called", ", ".join(found.aliases))] if found.aliases else []
    yield _heading(found)
    yield ""
    yield facts(rows)
    yield ""
    yield _timed(timings)
    yield Text("a forward takes 1, each half of a backward too, transfers nothing")
    yield from _idea(found)


def _idea(found: Strategy) -> Iterator[RenderableType]:
    """What it does, in lines that fit; a timing table stays as it is typed, and what a caller must catch is left out."""
    for block in found.idea.partition("\nRaises\n")[0].rstrip().split("\n\n"):
        yield ""
        yield block if block.startswith(" ") else line(" ".join(block.replace("::", ":").split()))


def _heading(found: Strategy) -> Text:
    return Text(f"{found.name}: {found.title}", style="bold")


def _placed(found: Strategy) -> str:
    chunks = counted(found.chunks, "chunk")
    return f"{found.placement}, {chunks} a rank{' or as asked' if fixed_chunks(found) is None else ''}"


def _in_words(timing: Timing) -> str:
    if timing.idle is None or timing.peak is None:
        return "not on this shape"
    return f"idle {percent(timing.idle)}, peak {timing.peak:g}"


def _timed(timings: Sequence[Timing]) -> Table:
    """What it comes to on a few shapes."""
    table = columns("ranks", "microbatches", "makespan", "idle", "peak activations", padding=1)
    form = Times.of((each.makespan for each in timings if each.makespan is not None), "")
    for each in timings:
        shape = (str(each.ranks), str(each.microbatches))
        if each.makespan is None or each.idle is None or each.peak is None:
            table.add_row(*shape, "not possible", "", "")
        else:
            table.add_row(*shape, form.number(each.makespan), percent(each.idle), f"{each.peak:g}")
    return table


def _facts(found: Strategy) -> list[tuple[str, str]]:
    return [
        ("placement", _placed(found)),
        ("accepts", found.accepts),
        ("idle time", f"{found.bubble.text}; in forwards of one rank"),
        ("peak activations", found.memory.text),
        ("paper", found.paper),
    ]
