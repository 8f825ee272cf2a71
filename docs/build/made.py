"""Every page and picture of the site that code makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
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
from docs.build.kept import CORE, EVERYTHING, SEARCH, Content, Part, archive, contents

TAKEN = {page: origin for origin, page in links.SOURCES.items() if "/" not in origin}
"""Pages that stand at the top of the repository."""

COPIED = {"assets/logo.svg": "src/pipeplan/extensions/web/assets/favicon.svg"}

BUILD = Path(__file__).parent


def parts(root: Path) -> list[Part]:
    """Return the parts of the site that code makes.

    Parameters
    ----------
    root
        The repository.
    """
    drawing = (*CORE, BUILD / "strategies.py")
    profiles = root / "examples" / "profiles"
    return [
        Part("commands", commands.pages),
        Part("strategies", strategies.pages, drawing),
        Part("rules of reviews", rules.pages),
        Part("gallery", gallery.pages, (*drawing, BUILD / "gallery.py")),
        Part("windows of bounds", round_trips.pages, (*SEARCH, BUILD / "round_trips.py")),
        Part("figures of the glossary", glossary.pages, (*SEARCH, BUILD / "glossary.py")),
        *(
            Part(f"notebook {path.stem}", partial(notebooks.pages, path), (*EVERYTHING, BUILD / "notebooks.py", path))
            for path in notebooks.notebooks(root)
        ),
        Part("demo", demo.pages, (*CORE, BUILD / "demo.py", BUILD / "demo.html", profiles)),
        Part("Python reference", python_pages.pages),
        Part("schemas", partial(schemas.pages, root)),
        Part("architecture", partial(architecture.pictures, root)),
        *(Part(f"what {page.stem} makes", partial(_left_behind, root, page)) for page in executed.pages_with_files()),
        Part("files of the repository", partial(_copies, root)),
    ]


def everything(root: Path, report: Callable[[str], None]) -> Iterator[Content]:
    """Yield the path in the site's sources, and the content, of each page and picture that code makes.

    Parameters
    ----------
    root
        The repository.
    report
        Takes a line about each part before it is made.
    """
    made = parts(root)
    for number, part in enumerate(made, start=1):
        archived = archive(part)
        report(f"{number} of {len(made)}: {part.title}{' (kept)' if archived and archived.is_file() else ''}")
        yield from contents(part)


def _left_behind(root: Path, page: Path) -> Iterator[Content]:
    folder = page.parent.relative_to(root / "docs")
    yield from (((folder / name).as_posix(), content) for name, content in executed.left_behind(page))


def _copies(root: Path) -> Iterator[Content]:
    for page, origin in TAKEN.items():
        yield page, links.moved((root / origin).read_text(encoding="utf-8"), origin, page)
    yield "llms.txt", llms.text(root, site=True)
    for path, origin in COPIED.items():
        yield path, (root / origin).read_bytes()
