"""What an earlier build made, kept in ``build/made`` until something that it is made of changes."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "made"
DIGITS = 16

SOURCE = ROOT / "src" / "pipeplan"
CORE = tuple(path for path in sorted(SOURCE.iterdir()) if path.name not in {"extensions", "__pycache__"})
"""Sources of what simulates, compares, explains and draws."""

SEARCH = (*CORE, SOURCE / "extensions" / "search")
EVERYTHING = (SOURCE, ROOT / "examples")
"""Sources that a command on a page may use."""

DRAWN_WITH = ("numpy", "matplotlib")

Content = tuple[str, str | bytes]
"""Path of a page or picture in the site's sources, and what it holds."""


@dataclass(frozen=True, slots=True)
class Part:
    """Pages and pictures of the site that one module makes.

    Attributes
    ----------
    title
        What they are, for the lines that show progress.
    make
        Yields path and content of each.
    made_of
        Files and folders on which the contents depend; without any, they are made in every build.
    """

    title: str
    make: Callable[[], Iterable[Content]]
    made_of: tuple[Path, ...] = ()


def contents(part: Part, folder: Path = FOLDER) -> Iterator[Content]:
    """Yield what a part consists of, made anew only if something that it is made of changed."""
    path = archive(part, folder)
    if path is None:
        yield from part.make()
        return
    if not path.is_file():
        _write(path, list(part.make()))
    with ZipFile(path) as kept:
        yield from ((name, kept.read(name)) for name in kept.namelist())


def archive(part: Part, folder: Path = FOLDER) -> Path | None:
    """Return the file that keeps a part as its sources are now; None if it is not kept."""
    if not part.made_of:
        return None
    return folder / f"{part.title.replace(' ', '-')}-{digest(*part.made_of)}.zip"


def digest(*sources: Path) -> str:
    """Return a digest of files, of all files in folders, and of the versions of what draws."""
    hashed = hashlib.sha256(" ".join([platform.python_version(), *map(version, DRAWN_WITH)]).encode())
    for source in sources:
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            # Kernels are compiled from sources that count themselves.
            if path.is_file() and not {"__pycache__", "libraries"} & {*path.parts}:
                hashed.update(f"{path.relative_to(source.parent)}\n".encode())
                hashed.update(hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()[:DIGITS]


def _write(path: Path, made: Iterable[Content]) -> None:
    """Write an archive under a temporary name, then in the place of earlier ones of the same part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    with ZipFile(unfinished, "w") as archived:
        for name, content in made:
            archived.writestr(name, content)
    for earlier in path.parent.glob(f"{path.stem[:-DIGITS]}{'?' * DIGITS}.zip"):
        earlier.unlink()
    unfinished.rename(path)
