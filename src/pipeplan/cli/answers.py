"""From an answer to what the user sees: files, JSON or a table, messages, and the exit code."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from re import sub
from typing import Any

from pipeplan.errors import PipeplanError
from pipeplan.files import Written


@contextmanager
def written(outputs: Mapping[Path, Callable[[Path], Written]]) -> Iterator[tuple[str, ...]]:
    """Write every output, and say so on stderr, of the files too that it names; then the block shows the answer.

    The block gets the warnings of the files, which are on stderr already, each once.

    An output that fails raises at the end: what took hours to find costs neither the other files nor what is shown.
    """
    errors: list[Exception] = []
    warnings: dict[str, None] = {}
    for path, write in outputs.items():
        try:
            files = write(path)
        except Exception as error:
            errors.append(error)
        else:
            tell_written(files)
            warnings |= dict.fromkeys(files.warnings)
    for warning in warnings:
        tell(f"warning: {warning}")
    yield tuple(warnings)
    for further in errors[1:]:
        tell(sentence(further))
    if errors:
        raise errors[0]


def tell_written(files: Written) -> None:
    """Name the files that were written."""
    tell(f"wrote {files[0]}")
    for other in files[1:]:
        tell(f"wrote {other}, which {files[0]} names")


def tell(message: str) -> None:
    """A message beside the answer, in which a name does nothing."""
    if not message.replace("\n", "").isprintable():
        from pipeplan.model import one_line  # the model takes a while, and most messages need nothing of it

        message = "\n".join(map(one_line, message.split("\n")))
    print(message, file=sys.stderr)


def sentence(error: Exception, options: Collection[str] | None = None) -> str:
    """What an error says to the user, with the options that the command takes; None: any.

    A message that repeats what somebody pasted by mistake is cut in its middle.
    """
    said = _said(error, options)
    half = _LONGEST // 2
    return said if len(said) <= _LONGEST else f"{said[:half]}…{said[-half:]}"


_LONGEST = 2_000
"""Letters of a message."""


def _said(error: Exception, options: Collection[str] | None) -> str:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return "pipeplan: out of memory; choose a smaller shape"
    if isinstance(error, PipeplanError):
        return f"pipeplan: {_with_option(error, options)}"
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        where = error.filename or "for the files that are needed meanwhile (TMPDIR)"
        return f"pipeplan: there is no space left: {where}"
    from cyclopts import CycloptsError

    if isinstance(error, CycloptsError):
        return f"pipeplan: {' '.join(str(error).split())}"
    return (
        f"pipeplan: an error that should not have happened: {type(error).__name__}: {error}; "
        "please report it with what --debug shows"
    )


def _with_option(error: PipeplanError, options: Collection[str] | None) -> str:
    """An error's message, in which settings that it names in Python's way have the names of their options, if they have one.

    Only where it is about one that has: others are about keys of files.
    """
    message = str(error)
    known = [_option(error.field)] if options is None else options
    if "_" not in error.field or "config" in message or _option(error.field) not in known:
        return message
    return sub(r"\w+_\w+", lambda word: _option(word[0]) if _option(word[0]) in known else word[0], message)


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def print_json(document: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    from pipeplan.documents import json_text

    print(json_text(document))
