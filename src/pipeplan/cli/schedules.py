"""``pipeplan schedules``."""

from __future__ import annotations

from typing import Any

from pipeplan.api.catalogue import Entry, fixed_chunks, formulas, idea
from pipeplan.api.catalogue import schedules as entries
from pipeplan.cli.answers import print_json
from pipeplan.cli.options import Debug, Json


def schedules(
    name: str | None = None,
    /,
    *,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """List the schedules, or tell what one of them is: its idea, timing table, shapes, formulas and paper.

    Parameters
    ----------
    name
        A schedule's name. Default: all.
    """
    found = entries(name)
    if json:
        print_json({"schedules": [_document(entry) for entry in found]})
    elif name is None:
        _list(found)
    else:
        _tell(found[0])
    return 0


def _document(entry: Entry) -> dict[str, Any]:
    bubble, memory = formulas(entry)
    return {
        "name": entry.name,
        "title": entry.title,
        "placement": entry.placement,
        "chunks": fixed_chunks(entry),
        "accepts": entry.accepts,
        "bubble": bubble,
        "memory": memory,
        "paper": entry.paper,
        "aliases": list(entry.aliases),
        "variants": list(entry.variants),
    }


def _list(found: list[Entry]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from pipeplan.api.tables.parts import facts, show

    for entry in found:
        show(Text(f"{entry.name}: {entry.title}", style="bold"), Padding(facts(_facts(entry)), (0, 0, 1, 2)))
    show(Text("'pipeplan schedules NAME' tells how one of them works"))


def _tell(entry: Entry) -> None:
    from rich.text import Text

    from pipeplan.api.tables.parts import facts, show

    rows = _facts(entry)
    rows += [("variants", ", ".join(entry.variants))] if entry.variants else []
    rows += [("also called", ", ".join(entry.aliases))] if entry.aliases else []
    show(Text(f"{entry.name}: {entry.title}", style="bold"), "", facts(rows), "")
    print(idea(entry))


def _facts(entry: Entry) -> list[tuple[str, str]]:
    bubble, memory = formulas(entry)
    chunks = f"{entry.chunks}, or as asked" if fixed_chunks(entry) is None else str(entry.chunks)
    return [
        ("placement", f"{entry.placement}, chunks a rank: {chunks}"),
        ("accepts", entry.accepts),
        ("bubble", bubble),
        ("peak activations", memory),
        ("paper", entry.paper),
    ]
