"""The command line as a process: its streams, its signals and its exit code.

Standard streams may be closed, full, read-only, without a reader, or unable to encode a character. Writing never fails:
a lost message changes nothing, a lost answer makes the command fail at its end, and a reader may stop early.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

from pipeplan import __version__
from pipeplan.cli.answers import tell


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 success; 1 a negative answer; 2 invalid input, or no answer.

    A signal that ends the command gives 128 plus its number, as in shells.
    """
    if arguments is None:
        arguments = sys.argv[1:]
        # Of a plugin that cannot be loaded, the place in pipeplan's code says nothing.
        warnings.formatwarning = lambda message, *_: f"pipeplan: warning: {message}\n"
    return _run(list(arguments))


def _run(arguments: Sequence[str]) -> int:
    try:
        with ended_by_signals() as signals, standard_streams() as answer:
            code = _answered(arguments, signals)
            signals.require_none()
            sys.stdout.flush()
            if answer is None or answer.failure is None:
                return code
            tell(f"pipeplan: the answer cannot be written: {_reason(answer.failure)}")
            return 2
    except KeyboardInterrupt:
        return 130
    except Terminated as end:
        return end.code


def _answered(arguments: Sequence[str], signals: Signals) -> int:
    if list(arguments) == ["--version"]:
        print(__version__)
        return 0
    from pipeplan.cli.app import answered  # slow to load, so signals are handled already

    return answered(arguments, signals.require_none)


def _reason(failure: OSError) -> str:
    if failure.errno == errno.EBADF:
        return "standard output is closed or read-only"
    return (failure.strerror or str(failure)).lower()


# Signals end a command as an error does, so that it leaves no files or processes.

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a command, of those that the system has."""

_AGAIN = 0.05
"""Seconds until a signal's exception is raised again that was lost where exceptions are ignored."""


class Terminated(BaseException):
    """A signal ended the command. It is no Exception, so that no handler of errors catches it.

    Attributes
    ----------
    code
        Exit code of the signal in shells.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


class Signals:
    """Handlers of the signals that end a command."""

    def __init__(self) -> None:
        self.ended: BaseException | None = None

    def end(self, number: int, _: FrameType | None) -> None:
        """End the command, and ignore further signals while it cleans up."""
        for handled in SIGNALS:
            if signal.getsignal(handled) == self.end:
                signal.signal(handled, signal.SIG_IGN)
        ended = Terminated(number)
        self._watch(ended)
        raise ended

    def require_none(self) -> None:
        """Raise the exception of a signal that was lost.

        An error of the command in the meantime is a consequence of the signal.
        """
        if self.ended is not None:
            raise self.ended

    def unraisable(self, unraised: Any, previous: Callable[[Any], object]) -> None:
        """Keep the lost exception of a signal, and pass others to the ``previous`` hook."""
        if not isinstance(unraised.exc_value, Terminated | KeyboardInterrupt):
            previous(unraised)
            return
        self._watch(unraised.exc_value)

    def _watch(self, ended: BaseException) -> None:
        """Look from time to time whether the exception of a signal was lost.

        That happens in a callback of a C library, and within an attribute that NumPy looks for: it drops the exception.
        """
        self.ended = ended
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._raise_unless_handled)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)

    def _raise_unless_handled(self, *_: object) -> None:
        handled = sys.exception()
        while handled is not None and not isinstance(handled, Terminated | KeyboardInterrupt):
            handled = handled.__context__
        if handled is None:
            self.require_none()


@contextmanager
def ended_by_signals() -> Iterator[Signals]:
    """Raise :class:`Terminated` in the block when a signal arrives.

    Handlers that are set already stay: ``nohup`` ignores SIGHUP. Outside the main thread nothing changes.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    hook = sys.unraisablehook
    ours = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, signals.end)
    sys.unraisablehook = lambda unraised: signals.unraisable(unraised, hook)
    try:
        yield signals
    finally:
        sys.unraisablehook = hook
        if signals.ended is not None and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


NARROWEST = 30
"""Minimum number of columns of help and tables; they show all of their text in it."""

WIDEST = 1_000
"""Maximum number of columns: padding lines to an absurd width would take memory and time."""


class Sink(io.RawIOBase):
    """Raw stream that never fails: it keeps its first failure, and drops all later writes.

    Attributes
    ----------
    failure
        Error of the first failed write; None without one, and if the reader has closed the stream.
    """

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__()
        self._raw = raw
        self._drops = False
        self.failure: OSError | None = None

    def drop(self) -> None:
        """Drop all further writes: a command that ends does not wait for a reader."""
        self._drops = True

    def writable(self) -> bool:
        """Return True: the stream is always writable."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._raw.fileno()

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._raw.isatty()

    def write(self, data: object) -> int:
        """Write or drop bytes; return their number."""
        left: memoryview = memoryview(data)  # type: ignore[arg-type]  # the base class promises any buffer
        if not self._drops:
            try:
                while (written := self._raw.write(left)) is None:
                    select.select((), (self._raw,), ())  # a non-blocking descriptor is full
                return written
            except BrokenPipeError:
                self._drops = True
            except OSError as error:
                self._drops, self.failure = True, error
        return left.nbytes


@contextmanager
def standard_streams() -> Iterator[Sink | None]:
    """Replace the standard streams by ones that never fail, and yield the sink of standard output.

    A standard output that is replaced already, as in tests and notebooks, stays; then the sink is None.
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
    """Occupy closed standard descriptors, so that no file gets their numbers; reading and writing them fails."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            with suppress(OSError):
                os.set_inheritable(os.open(os.devnull, mode), True)


def _sink(stream: TextIO | None, own: TextIO | None, descriptor: int) -> Sink | None:
    """Return the sink below one of the process's own streams; None if the stream is replaced."""
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
    """Return a text stream that spells out characters that its encoding lacks."""
    return io.TextIOWrapper(
        io.BufferedWriter(sink),
        encoding="utf-8" if like is None else like.encoding,
        errors="pipeplan",
        line_buffering=by_line,
    )


_SPELT = {"…": "...", "•": "*"}


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Spell characters that an encoding lacks in ASCII, so that nothing is lost and nothing raises."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    spelt = (_SPELT.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in lacking)
    return "".join(spelt), error.end


codecs.register_error("pipeplan", _spell)


@contextmanager
def _sensible_width() -> Iterator[None]:
    """Limit ``COLUMNS`` and ``LINES`` to usable values; anything but a number counts as unset."""
    variables = {name: os.environ.get(name) for name in ("COLUMNS", "LINES")}
    for name, text in variables.items():
        if number := _number(text):
            os.environ[name] = str(min(number, WIDEST) if name == "LINES" else _between(number))
        else:
            os.environ.pop(name, None)
    if "COLUMNS" not in os.environ and (columns := _columns_of_terminal()) != _between(columns):
        os.environ["COLUMNS"] = str(_between(columns))
    try:
        yield
    finally:
        for name, text in variables.items():
            os.environ.pop(name, None) if text is None else os.environ.__setitem__(name, text)


def _number(text: str | None) -> int:
    """Return a variable as a number, 0 for anything else; nine digits exceed every limit."""
    return int(text[:9]) if text is not None and text.isdecimal() else 0


def _between(columns: int) -> int:
    return min(max(columns, NARROWEST), WIDEST)


def _columns_of_terminal() -> int:
    """Return the width of the terminal, or 80 if there is none or it does not tell."""
    for descriptor in (1, 2, 0):
        with suppress(OSError):
            return os.get_terminal_size(descriptor).columns or 80
    return 80
