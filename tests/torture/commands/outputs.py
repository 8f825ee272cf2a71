"""What a command has left in its folder: only what it was told to write, and each file whole."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import yaml

from pipeplan.model.names import one_line
from tests.torture.forked import Ran
from tests.torture.suite import Found

Seen = dict[str, str]


def seen(folder: Path) -> Seen:
    """Every file below a folder, with what tells its content."""
    return {str(path.relative_to(folder)): _told(path) for path in sorted(folder.rglob("*"))}


def _told(path: Path) -> str:
    about = path.lstat()
    if stat.S_ISLNK(about.st_mode):
        return f"link {os.readlink(path)}"
    if stat.S_ISREG(about.st_mode) and not os.access(path, os.R_OK):
        return f"closed {about.st_size} {about.st_mtime_ns}"  # to all but root
    if stat.S_ISREG(about.st_mode):
        return sha256(path.read_bytes()).hexdigest()
    return f"kind {stat.S_IFMT(about.st_mode)}"


def judge_outputs(ran: Ran, folder: Path, before: Seen) -> None:
    """Raises Found for what is written unasked, what is there after a refusal, and what is not whole."""
    after = seen(folder)
    for name in sorted(before.keys() - after.keys()):
        raise Found(f"{name!r} is gone: {ran.line}")
    told = ran.stderr
    for name in sorted(name for name in after if before.get(name) != after[name]):
        path = folder / name
        if path.is_dir():
            raise Found(f"a folder {name!r} was made: {ran.line}")
        said = f"wrote {one_line(name)}" in told.replace("./", "") or f"wrote {one_line(str(path))}" in told
        named = any(_is(folder, word, path) for word in _words(ran.arguments))
        if not (said or (named and ran.code == 0)):
            raise Found(f"exit code {ran.code}, and {name!r} was written: {ran.line}")
        if not _has_any_ending(ran.arguments, name) and (fault := fault_of(path)) is not None:
            raise Found(f"exit code {ran.code}, and {name!r} {fault}: {ran.line}")


def _has_any_ending(arguments: tuple[str, ...], name: str) -> bool:
    """Whether a file is a store, or an export whose format was named: the ending says nothing about these."""
    if arguments[:1] == ("export",):
        return True
    return f"--store={name}" in arguments or ("--store", name) in itertools.pairwise(arguments)


def _words(arguments: tuple[str, ...]) -> Iterator[str]:
    """What an argument may name: itself, or what stands behind its option's name."""
    for each in arguments:
        yield each
        yield each.partition("=")[2]
        if each.startswith("-") and not each.startswith("--"):
            yield each[2:]
            yield each[2:].removeprefix("=")


def _is(folder: Path, word: str, path: Path) -> bool:
    try:
        return os.path.realpath(folder / word) == os.path.realpath(path)
    except (OSError, ValueError):
        return False


def fault_of(path: Path) -> str | None:
    """What is wrong with a written file, as the end of a sentence; None where it is whole."""
    content = path.read_bytes()
    name = path.name.lower()
    if not content:
        return "is empty"
    heads = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-", ".html": b"<!doctype html>"}
    tails = {".png": b"IEND\xaeB`\x82", ".pdf": b"%%EOF\n", ".html": b"</html>\n"}
    ending = path.suffix.lower()
    if not content.lower().startswith(heads.get(ending, b"").lower()) or not content.endswith(tails.get(ending, b"")):
        return "is not whole"
    if ending in (".png", ".pdf"):
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "is no UTF-8"
    return _fault_of_text(text, name, ending)


def _fault_of_text(text: str, name: str, ending: str) -> str | None:
    try:
        if ending == ".json":
            json.loads(text, parse_constant=_refuse)
        elif ending == ".svg":
            ElementTree.fromstring(text)
        elif ending == ".yaml":
            yaml.safe_load(text)
        elif ending == ".html":
            HTMLParser().feed(text)
        elif name.endswith(".csv"):
            list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (ValueError, ElementTree.ParseError, yaml.YAMLError, csv.Error) as error:
        return f"cannot be read: {error}"
    return None


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
