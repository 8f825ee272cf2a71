"""Reading of schedules, timelines and costs from files and standard input; suffix and content determine the format."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

from pipeplan.costs import Costs
from pipeplan.formats.format import Format, Readable, formats
from pipeplan.formats.rows import is_printed_by_torch
from pipeplan.foundation.errors import FormatError, InputError, UnknownNameError
from pipeplan.foundation.files import MEBIBYTE, STANDARD_INPUT, path_of, read_text, text_of
from pipeplan.model import Schedule, Timeline

SIZE_LIMIT = 64 * MEBIBYTE
"""Maximum size of a schedule file in bytes: about five million ops as CSV."""

FilePath = str | os.PathLike[str]


def endings() -> tuple[str, ...]:
    """Return the suffixes of files that can be read, plugins' among them."""
    return tuple(sorted({fmt.suffix for fmt in formats().values() if fmt.read is not None}))


def is_readable(name: str) -> bool:
    """Return True if some format reads files with the suffix of this name."""
    dot, suffix = unpacked_name(name).lower().rpartition(".")[1:]
    return bool(dot) and bool(_readers(dot + suffix))


_SAME_SUFFIXES = {".log": ".txt"}
"""Suffixes of files that are read like those of another one: PyTorch prints orders into logs."""


def _readers(suffix: str) -> list[Format]:
    """Return the formats that read files with a suffix; those of plugins only if no other format does."""
    suffix = _SAME_SUFFIXES.get(suffix, suffix)
    return formats().matching(lambda fmt: fmt.suffix == suffix and fmt.read is not None)


def unpacked_name(name: str) -> str:
    """Return the name of a file without the suffix of gzip."""
    return name[: -len(".gz")] if name.lower().endswith(".gz") else name


def read_file(path: FilePath, *, keep_duplicates: bool = False) -> Readable:
    """Return the schedule, timeline or costs in a file.

    A schedule without a name is named after the file.
    """
    path = path_of(path, "the schedule file")
    unpacked = Path(unpacked_name(path.name))
    if unpacked.suffix.lower() in {".yaml", ".yml", ".toml"}:
        raise InputError(f"{path} is not a schedule: pass settings files with --config")
    if not is_readable(unpacked.name):
        raise UnknownNameError("suffix of a schedule file", path.suffix or path.name, endings())
    text = read_text(path, limit=SIZE_LIMIT, what="schedule file")
    name = os.fsencode(unpacked.name).decode("utf-8", "replace")
    content = parse(text, name, keep_duplicates=keep_duplicates)
    return content.renamed(Path(name).stem) if isinstance(content, Schedule) and content.name == name else content


def parse(text: str, name: str, *, keep_duplicates: bool = False) -> Readable:
    """Return the content of the text of a file of this name."""
    suffix = Path(name).suffix.lower()
    # A plugin's format of a common suffix, such as .json, is one that recognises its text.
    chosen = formats().matching(
        lambda fmt: (
            fmt.suffix == suffix and fmt.read is not None and fmt.recognises is not None and fmt.recognises(text)
        )
    ) or [fmt for fmt in _readers(suffix) if fmt.recognises is None]
    if not chosen:
        raise UnknownNameError("suffix of a schedule file", suffix or name, endings())
    assert chosen[0].read is not None
    return chosen[0].read(text, name, keep_duplicates)


def read_schedule_or_timeline(path: FilePath, *, keep_duplicates: bool = False) -> Schedule | Timeline:
    """Return the schedule or timeline in a file."""
    content = read_file(path, keep_duplicates=keep_duplicates)
    if isinstance(content, Costs):
        raise InputError(f"{path} contains costs, not a schedule: pass it with --config")
    return content


_NAME = "stdin"


def is_standard_input(source: object) -> bool:
    """Return True if a name in place of a file means standard input."""
    return isinstance(source, str) and source in ("-", STANDARD_INPUT)


def read_standard_input(source: BinaryIO | None = None, *, keep_duplicates: bool = False) -> Schedule | Timeline:
    """Return the schedule or timeline from standard input: rows of ops, a CSV or JSON."""
    return parse_standard_input(standard_input_text(source), keep_duplicates=keep_duplicates)


def standard_input_text(source: BinaryIO | None = None) -> str:
    """Return the text of standard input, which can be read once."""
    content = _content(source)
    if len(content) > SIZE_LIMIT:
        raise FormatError(f"standard input is larger than {SIZE_LIMIT // MEBIBYTE} MiB, the maximum size of a schedule")
    return text_of(content, "standard input") if content.strip() else ""


def parse_standard_input(text: str, *, keep_duplicates: bool = False) -> Schedule | Timeline:
    """Return the schedule or timeline in the text of standard input."""
    if not text.strip():
        raise FormatError("standard input is empty: expected rows of ops, a CSV or JSON")
    parsed = parse(text, f"{_NAME}{_suffix(text)}", keep_duplicates=keep_duplicates)
    if isinstance(parsed, Costs):
        raise InputError("standard input contains costs, not a schedule: save them and pass the file with --config")
    return parsed.renamed(_NAME) if isinstance(parsed, Schedule) and parsed.name.startswith(f"{_NAME}.") else parsed


def _content(source: BinaryIO | None) -> bytes:
    if source is None and sys.stdin is None:
        raise InputError("standard input is closed: pipe a schedule or name a file")
    try:
        return (sys.stdin.buffer if source is None else source).read(SIZE_LIMIT + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"standard input cannot be read ({reason}): pipe a schedule or name a file") from None


def _suffix(text: str) -> str:
    start = text.lstrip()
    if start.startswith("{") or (start.startswith("[") and not is_printed_by_torch(text)):
        return ".json"
    return ".csv" if "," in start.partition("\n")[0] else ".txt"
