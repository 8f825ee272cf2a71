"""The navigation: a folder named in ``mkdocs.yml`` becomes the list of its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docs.build import commands, notebooks, rules, strategies

TUTORIALS = (
    "first-schedule",
    "my-costs",
    "memory-is-short",
    "from-config-to-flags",
    "train-and-compare",
    "read-a-trace",
)
"""Tutorials in reading order."""


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
    if folder == rules.FOLDER:
        return [index, *({name: f"{folder}{name}.md"} for name in rules.groups())]
    paths = (root / "docs" / folder).iterdir()
    names = {path.stem for path in paths if path.suffix in {".md", ".ipynb"}} - {"index"}
    ordered = [name for name in (*TUTORIALS, *notebooks.ORDER) if name in names]
    return [index, *(f"{folder}{name}.md" for name in [*ordered, *sorted(names - set(ordered))])]
