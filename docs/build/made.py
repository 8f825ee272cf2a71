"""Every page and picture of the site that code makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.build import (
    architecture,
    commands,
    demo,
    executed,
    gallery,
    glossary,
    links,
    llms,
    notebooks,
    python_pages,
    round_trips,
    rules,
    schemas,
    strategies,
)

TAKEN = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md", "security.md": "SECURITY.md"}
"""Pages that stand at the top of the repository."""

COPIED = {"assets/logo.svg": "src/pipeplan/extensions/web/assets/favicon.svg"}


def everything(root: Path) -> Iterator[tuple[str, str | bytes]]:
    """The path in the site's sources, and the content, of each.

    Parameters
    ----------
    root
        The repository.
    """
    yield from commands.pages()
    yield from strategies.pages()
    yield from rules.pages()
    yield from gallery.pages()
    yield from round_trips.pages()
    yield from glossary.pages()
    yield from notebooks.pages(root)
    yield from demo.pages()
    yield from python_pages.pages()
    yield from schemas.pages(root)
    yield from architecture.pictures(root)
    for shown in executed.pages():
        if shown.is_relative_to(root / "docs"):
            folder = shown.parent.relative_to(root / "docs")
            yield from (((folder / name).as_posix(), content) for name, content in executed.left_behind(shown))
    for page, origin in TAKEN.items():
        yield page, links.moved((root / origin).read_text(encoding="utf-8"), origin, page)
    yield "llms.txt", llms.text(root, site=True)
    for path, origin in COPIED.items():
        yield path, (root / origin).read_bytes()
