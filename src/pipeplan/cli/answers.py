"""Output of answers: files, JSON, or text with pictures in the terminal; and messages on stderr."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from re import sub
from typing import TYPE_CHECKING, Any, Protocol

from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import Written

if TYPE_CHECKING:
    from pipeplan.answers import HeadlinedAnswer, ShownOptions
    from pipeplan.drawing import Look, View


@contextmanager
def written(outputs: Mapping[Path, Callable[[Path], Written]]) -> Iterator[tuple[str, ...]]:
    """Write every output, run the block, which prints the answer, and then name the files on stderr.

    Yields the warnings of the files, each once.

    The error of an output is raised at the end: an answer that took hours is printed, and its other files are written.
    """
    errors: list[Exception] = []
    saved: list[Written] = []
    for path, write in outputs.items():
        try:
            files = write(path)
        except Exception as error:
            errors.append(error)
        else:
            saved.append(files)
    warnings = tuple(dict.fromkeys(warning for files in saved for warning in files.warnings))
    yield warnings
    for files in saved:
        tell_written(files)
    for warning in warnings:
        tell(f"warning: {warning}")
    for further in errors[1:]:
        tell(sentence(further))
    if errors:
        raise errors[0]


class Answer(Protocol):
    """Answer of a command."""

    @property
    def save(self) -> Callable[..., Written]:
        """Write the answer to a file."""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON."""

    def print(self) -> None:
        """Print the answer as text."""


def deliver(
    answer: Answer,
    outputs: Iterable[Path] | Mapping[Path, Callable[[Path], Written]] = (),
    *,
    json: bool,
    look: Look | None = None,
    messages: Iterable[str] = (),
    text: Callable[[], None] | None = None,
) -> None:
    """Write an answer to files, and print it: as text, or as JSON with its warnings on stderr, too."""
    save = partial(answer.save, **(look or {}))
    writers = outputs if isinstance(outputs, Mapping) else dict.fromkeys(outputs, save)
    with written(writers) as changes:
        if not json:
            (text or answer.print)()
            return
        document = answer.to_dict()
        if "warnings" in document:
            document["warnings"] += changes
        print_json(document)
        for message in (*messages, *(f"warning: {warning}" for warning in getattr(answer, "warnings", ()))):
            tell(message)


def tell_written(files: Written) -> None:
    """Name the files that were written."""
    tell(f"wrote {files[0]}")
    for other in files[1:]:
        tell(f"wrote {other}, which {files[0]} names")


def tell(message: str) -> None:
    """Print a message on stderr, with control characters escaped."""
    if not message.replace("\n", "").isprintable():
        from pipeplan.model import one_line  # slow to load, and most messages do not need it

        message = "\n".join(map(one_line, message.split("\n")))
    print(message, file=sys.stderr)


def sentence(error: Exception, options: Collection[str] | None = None) -> str:
    """Return an error's message, shortened in the middle if it is too long."""
    message = _message(error, options)
    half = _LONGEST // 2
    return message if len(message) <= _LONGEST else f"{message[:half]}…{message[-half:]}"


_LONGEST = 2_000
"""Maximum length of a message, which may repeat the user's input."""


def _message(error: Exception, options: Collection[str] | None) -> str:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return "pipeplan: out of memory; choose a smaller shape"
    if isinstance(error, PipeplanError):
        return f"pipeplan: {_with_option(error, options)}"
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        where = error.filename or "for temporary files (TMPDIR)"
        return f"pipeplan: no space left: {where}"
    return f"pipeplan: internal error: {type(error).__name__}: {error}; please report it with the output of --debug"


def _with_option(error: PipeplanError, options: Collection[str] | None) -> str:
    """Return the message of an error, with the names of settings as options.

    Only an error about an option is changed: others are about keys of files.
    """
    message = str(error)
    names = [_option(error.field)] if options is None else options
    if "_" not in error.field or "config" in message or _option(error.field) not in names:
        return message
    return sub(r"\w+_\w+", lambda word: _option(word[0]) if _option(word[0]) in names else word[0], message)


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON object on stdout."""
    from pipeplan.foundation.documents import json_text

    print(json_text(document))


def print_answer(answer: HeadlinedAnswer, shown: ShownOptions, picture: Callable[[], None] | None = None) -> None:
    """Print an answer on stdout: its headline, a picture if there is one, and its table."""
    from pipeplan.answers.parts import line, show

    if picture is None:
        answer.print(all=shown.all, verbose=shown.verbose)
        return
    headline, *below = answer._table(shown)
    show(headline, line())
    picture()
    show(*below)


NARROWEST_PICTURE = 40
"""Minimum number of columns for a picture."""

MOST_LANES = 16
"""Maximum number of ranks in a picture; of more, the first and the last are shown."""


def show_above(view: View, look: Look) -> None:
    """Draw a view on stdout, followed by a blank line; coloured in a terminal, plain in a file or a pipe."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    if console.width < NARROWEST_PICTURE:
        return
    colored = console.is_terminal and console.color_system is not None and not console.no_color
    picture = _drawn(view, look, console.width, colored=colored)
    if console.is_terminal:
        console.print(Text.from_ansi(picture), no_wrap=True, highlight=False)
    else:
        print("\n".join(line.rstrip() for line in picture.split("\n")))
    print()


def show_below(views: Iterable[View], look: Look) -> None:
    """Draw views on stdout if it is a terminal: the first one, and further ones while they fit on the screen."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    if not console.is_terminal or console.width < NARROWEST_PICTURE:
        return
    colored = console.color_system is not None and not console.no_color
    used = 0
    for view in views:
        picture = _drawn(view, look, console.width, colored=colored)
        height = picture.count("\n") + 2
        if used and used + height > console.height:
            return
        console.print()
        console.print(Text.from_ansi(picture), no_wrap=True, highlight=False)
        used += height


def _drawn(view: View, look: Look, width: int, *, colored: bool) -> str:
    from pipeplan.drawing import text_of  # most answers draw nothing in the terminal

    return text_of(view, width=width, color=colored, theme=look.get("theme", "light"), max_lanes=MOST_LANES)
