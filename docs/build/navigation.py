"""The navigation: a folder named in ``mkdocs.yml`` becomes its pages, which nobody lists twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docs.build import commands, strategies

TUTORIALS = (
    "first-schedule",
    "my-costs",
    "memory-is-short",
    "from-config-to-flags",
    "train-and-compare",
    "read-a-trace",
)
"""In the order in which they are meant to be read."""


def fill(entries: list[Any], root: Path) -> None:
    """Replace each entry that names a folder by the list of its pages, in place."""
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        for title, target in entry.items():
            if isinstance(target, list):
                fill(target, root)
            elif target.endswith("/"):
                entry[title] = pages(target, root)


def pages(folder: str, root: Path) -> list[Any]:
    """The pages of a folder of the documentation: its index, then the others."""
    index = f"{folder}index.md"
    if folder == commands.FOLDER:
        return [index, *({f"pipeplan {name}": f"{folder}{name}.md"} for name in commands.names())]
    if folder == strategies.FOLDER:
        return [index, *({name: f"{folder}{name}.md"} for name in strategies.names())]
    found = {path.stem for path in (root / "docs" / folder).glob("*.md")} - {"index"}
    known = [name for name in TUTORIALS if name in found]
    return [index, *(f"{folder}{name}.md" for name in [*known, *sorted(found - set(known))])]
