"""Standard input, output and error as they may be: closed, full, read-only, without a reader, or unable to spell a sign.

One rule for all commands. What writes to them never fails and never knows. A message that could not be told changes
nothing; an answer that could not be written is found at the end, and makes the command fail. A reader who has seen enough
is no failure.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

NARROWEST = 30
"""Columns in which help and tables still show all of their letters; less is taken for this."""

WIDEST = 1_000
"""Columns beyond which lines are no longer filled: a width that no screen has takes memory and time for blanks alone."""


class Sink(io.RawIOBase):
    """The bytes of a stream. The first failure is kept, and what comes after it is dropped.

    Attributes
    ----------
    failure
        Why it could not be written; None where it could, or nobody reads it any more.
    """

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__()
        self._raw = raw
        self._drops = False
        self.failure: OSError | None = None

    def drop(self) -> None:
        """Write nothing any more: who ends a command does not wait until somebody reads the rest."""
        self._drops = True

    def writable(self) -> bool:
        """Whether it is written to: always."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._raw.fileno()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._raw.isatty()

    def write(self, data: object) -> int:
        """Write bytes, or drop them; gives how many."""
        left: memoryview = memoryview(data)  # type: ignore[arg-type]  # the base class promises any buffer
        if not self._drops:
            try:
                while (written := self._raw.write(left)) is None:
                    select.select((), (self._raw,), ())  # somebody has made it one that does not wait
                return written
            except BrokenPipeError:
                self._drops = True
            except OSError as error:
                self._drops, self.failure = True, error
        return left.nbytes


@contextmanager
def standard_streams() -> Iterator[Sink | None]:
    """Put streams that do not fail in the place of the process's own; gives that of the answer.

    Where standard output is already something else, as under a test or in a notebook, it stays, and None is given.
    """
    _occupy()
    before = sys.stdout, sys.stderr
    answer = _sink(sys.stdout, sys.__stdout__, 1)
    messages = _sink(sys.stderr, sys.__stderr__, 2)
    try:
        if answer is not None:
            sys.stdout = _text(answer, before[0], by_line=answer.isatty())
        if messages is not None:
            sys.stderr = _text(messages, before[1], by_line=True)
        with _sensible_width():
            yield answer
        sys.stdout.flush()
    except BaseException:
        for sink in filter(None, (answer, messages)):
            sink.drop()
        raise
    finally:
        sys.stdout, sys.stderr = before


def _occupy() -> None:
    """Take the place of descriptors that are closed, so that no file gets their number: what reads or writes there fails."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            with suppress(OSError):
                os.set_inheritable(os.open(os.devnull, mode), True)


def _sink(stream: TextIO | None, own: TextIO | None, descriptor: int) -> Sink | None:
    """The bytes below one of the process's own streams; None where something else was put in its place."""
    if stream is not own:
        return None
    if stream is None:
        return Sink(io.FileIO(descriptor, "w", closefd=False))
    with suppress(OSError):
        stream.flush()
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return Sink(raw) if isinstance(raw, io.RawIOBase) else None


def _text(sink: Sink, like: TextIO | None, *, by_line: bool) -> TextIO:
    """A text stream that spells what its encoding lacks."""
    return io.TextIOWrapper(
        io.BufferedWriter(sink),
        encoding="utf-8" if like is None else like.encoding,
        errors="pipeplan",
        line_buffering=by_line,
    )


_SPELT = {"…": "...", "•": "*"}


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Signs that an encoding lacks in others that it has: nothing is lost, and nothing raised."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    spelt = (_SPELT.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in lacking)
    return "".join(spelt), error.end


codecs.register_error("pipeplan", _spell)


@contextmanager
def _sensible_width() -> Iterator[None]:
    """``COLUMNS`` and ``LINES`` as tables, help and pictures can take them; what is no number is as if it was not said."""
    said = {name: os.environ.get(name) for name in ("COLUMNS", "LINES")}
    for name, text in said.items():
        if number := _number(text):
            os.environ[name] = str(min(number, WIDEST) if name == "LINES" else _between(number))
        else:
            os.environ.pop(name, None)
    if "COLUMNS" not in os.environ and (columns := _columns_of_terminal()) != _between(columns):
        os.environ["COLUMNS"] = str(_between(columns))
    try:
        yield
    finally:
        for name, text in said.items():
            os.environ.pop(name, None) if text is None else os.environ.__setitem__(name, text)


def _number(text: str | None) -> int:
    """What a variable says; 0 where it says no number. Of one that is beyond all limits the first digits are enough."""
    return int(text[:9]) if text is not None and text.isdecimal() else 0


def _between(columns: int) -> int:
    return min(max(columns, NARROWEST), WIDEST)


def _columns_of_terminal() -> int:
    """What a terminal says of itself; a usual width where there is none, or where it does not know."""
    for descriptor in (1, 2, 0):
        with suppress(OSError):
            return os.get_terminal_size(descriptor).columns or 80
    return 80
