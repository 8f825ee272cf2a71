"""The strategies, or all about one of them, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from pipeplan.api.catalogue import Catalogue, fixed_chunks
from pipeplan.api.tables.parts import facts
from pipeplan.strategies import Strategy


def catalogue_parts(catalogue: Catalogue) -> Iterator[RenderableType]:
    """A few lines a strategy; of one alone also its names, its idea and its timing table."""
    if len(catalogue) == 1:
        yield from _alone(catalogue.strategies[0])
        return
    for found in catalogue:
        yield _heading(found)
        yield Padding(facts(_facts(found)), (0, 0, 1, 2))
    yield Text("'pipeplan schedules NAME' tells how one of them works")


def _alone(found: Strategy) -> Iterator[RenderableType]:
    rows = _facts(found)
    rows += [("variants", ", ".join(found.variants))] if found.variants else []
    rows += [("also called", ", ".join(found.aliases))] if found.aliases else []
    yield _heading(found)
    yield ""
    yield facts(rows)
    yield ""
    yield found.idea


def _heading(found: Strategy) -> Text:
    return Text(f"{found.name}: {found.title}", style="bold")


def _facts(found: Strategy) -> list[tuple[str, str]]:
    chunks = f"{found.chunks}, or as asked" if fixed_chunks(found) is None else str(found.chunks)
    return [
        ("placement", f"{found.placement}, chunks a rank: {chunks}"),
        ("accepts", found.accepts),
        ("bubble", found.bubble.text),
        ("peak activations", found.memory.text),
        ("paper", found.paper),
    ]
