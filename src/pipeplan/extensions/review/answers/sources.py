"""Files of a review: those that are named, and those in folders that hold a configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from pipeplan.extensions.review.answers.records import ReviewedFiles, UnreadableFile
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError
from pipeplan.foundation.files import MEBIBYTE

Read = TypeVar("Read")

SUFFIXES = frozenset((".py", ".yaml", ".yml", ".toml", ".json", ".sh", ".bash", ".slurm", ".sbatch"))
"""Suffixes of files in a folder that are looked at."""

_FOREIGN = frozenset(("node_modules", "site-packages", "vendor", "third_party", "3rdparty", "__pycache__"))
"""Folders of third-party code."""

_LARGEST = MEBIBYTE
"""Maximum size of a file in a folder, in bytes: what is larger was not written by hand."""

_MOST_FILES = 200_000
"""Maximum number of files in a folder."""

_SHOWN = 25
"""Number of files after which progress is shown again."""

_TRAINS = re.compile(
    rb"pipeline[-_]?(?:model[-_])?parallel|\bpp_size|pipe[-_]parallel|tensor[-_](?:model[-_])?parallel|\btp_size"
    rb"|parallelism|global[-_]batch|zero_optimization|\bpipeline[\"']?\s*[:=]\s*\d",
    re.IGNORECASE,
)
"""Matches in every file that sets up a parallel training."""


def mentions_training(path: Path) -> bool:
    """Return True if the text of a file mentions a parallel training; False for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            return _TRAINS.search(file.read(_LARGEST)) is not None
    except OSError:
        return False


def candidates_in(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder that may hold configurations, in the order of their names.

    Hidden files, third-party code, nested checkouts and Python tests are left out; no link is followed.

    Raises
    ------
    InputError
        For a folder with too many files.
    """
    count = 0
    # A virtual environment, and in a checkout another one.
    marks = ("pyvenv.cfg", ".git") if (folder / ".git").exists() else ("pyvenv.cfg",)
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _FOREIGN
            and not any(os.path.lexists(os.path.join(place, name, mark)) for mark in marks)
        )
        count += len(names)
        if count > _MOST_FILES:
            raise InputError(f"{folder} holds more than {_MOST_FILES:,} files: name a folder in it")
        for name in sorted(names):
            path = Path(place, name)
            test = name.startswith(("test_", "conftest.")) or name.endswith("_test.py")
            if path.suffix.lower() in SUFFIXES and not name.startswith(".") and not (path.suffix == ".py" and test):
                yield path


def _is_small_file(path: Path) -> bool:
    """Return True for a file of its own, without following links: neither a pipe nor a device."""
    try:
        return not path.is_symlink() and path.is_file() and path.stat().st_size <= _LARGEST
    except OSError:
        return False


@dataclass
class Gathered(Generic[Read]):
    """Configurations that were read of several files, and the files that hold none or cannot be read.

    ``failed`` is True if a file that was named cannot be read.
    """

    read: list[Read] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    looked_at: int = 0
    skipped: int = 0
    unreadable: list[UnreadableFile] = field(default_factory=list)
    failed: bool = False

    @property
    def files(self) -> ReviewedFiles:
        """Record of the files."""
        return ReviewedFiles(
            folders=tuple(self.folders),
            looked_at=self.looked_at,
            skipped=self.skipped,
            unreadable=tuple(self.unreadable),
        )

    def add(self, path: Path, reader: Callable[[], Sequence[Read]], *, named: bool) -> None:
        """Read a file; count it if it holds no configuration, and keep the reason if it cannot be read."""
        self.looked_at += 1
        try:
            found = reader()
            self.read += found
            self.skipped += not found
        except Exception as error:
            # A file of a repository must not hide the findings in the others.
            if isinstance(error, InputError) and _is_none(error, path):
                self.skipped += 1
                return
            reason = (
                str(error) if isinstance(error, PipeplanError) else f"internal error: {type(error).__name__}: {error}"
            )
            self.unreadable.append(UnreadableFile(file=str(path), reason=reason))
            self.failed |= named


def _is_none(error: InputError, path: Path) -> bool:
    """Return True if an error says that a file holds no configuration, rather than that it cannot be read."""
    if error.field or not path.is_file() or not os.access(path, os.R_OK):
        return False
    return not isinstance(error, FormatError) or not mentions_training(path)


def gathered(
    sources: Sequence[Path | Mapping[str, Any]],
    read: Callable[[Path | Mapping[str, Any], bool], Sequence[Read]],
    show: Callable[[float, str], object],
    *,
    hook: bool,
) -> Gathered[Read]:
    """Read sources of which some may be folders, or may hold no configuration.

    Parameters
    ----------
    read
        Returns the configurations of a source, and those that set up a training alone if the second argument is True.
    show
        Shows the share that is done.
    hook
        Whether any source may hold none.

    Raises
    ------
    PipeplanError
        If the only source cannot be read.
    """
    result: Gathered[Read] = Gathered()
    folders = [source for source in sources if isinstance(source, Path) and source.is_dir()]
    result.folders += map(str, folders)
    if len(sources) == 1 and not folders and not hook:
        result.looked_at = 1
        result.read += read(sources[0], False)
        return result
    for source in sources:
        if isinstance(source, Mapping):
            result.looked_at += 1
            result.read += read(source, False)
        elif source.is_dir():
            _walk(source, result, read, show)
        else:
            result.add(source, partial(read, source, hook), named=True)
    return result


def _walk(
    folder: Path,
    result: Gathered[Read],
    read: Callable[[Path | Mapping[str, Any], bool], Sequence[Read]],
    show: Callable[[float, str], object],
) -> None:
    paths = list(candidates_in(folder))
    for place, path in enumerate(paths):
        if place % _SHOWN == 0:
            show(place / len(paths), f"{place:,} of {len(paths):,} files")
        if _is_small_file(path) and mentions_training(path):
            result.add(path, partial(read, path, True), named=False)
        else:
            result.looked_at += 1
            result.skipped += 1
