"""Signals that ask a command to end: it ends as an error would end it, so that it leaves neither files nor processes."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_NAMES = ("SIGTERM", "SIGHUP")

_AGAIN = 0.05
"""Seconds after which an end is asked for again that was raised where nothing can be raised."""


class Terminated(BaseException):
    """A signal has ended the command: no error, so that nothing takes it for one of its own.

    Attributes
    ----------
    code
        The exit code by which shells know the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


class Signals:
    """Those that have come."""

    def __init__(self) -> None:
        self._lost: BaseException | None = None

    def end(self, number: int, _: FrameType | None) -> None:
        """End the command; only the first that asks for it counts, and nothing cuts what it clears up."""
        for each in _handled():
            if signal.getsignal(each) == self.end:
                signal.signal(each, signal.SIG_IGN)
        raise Terminated(number)

    def require_none(self, *_: object) -> None:
        """Raise what a signal has raised where it could not end the command, as in a callback of a library in C.

        What the command said meanwhile came of that.
        """
        if self._lost is not None:
            lost, self._lost = self._lost, None
            raise lost

    def unraisable(self, what: Any, before: Callable[[Any], object]) -> None:
        """Take up what a signal has raised in vain; the rest is told as ``before``."""
        if not isinstance(what.exc_value, Terminated | KeyboardInterrupt):
            before(what)
            return
        self._lost = what.exc_value
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self.require_none)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)


@contextmanager
def ended_by_signals() -> Iterator[Signals]:
    """Raise :class:`Terminated` in the block when a signal asks for the end.

    What another has set stays: ``nohup`` wants SIGHUP to be ignored. Outside the main thread nothing changes.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    hook = sys.unraisablehook
    ours = [each for each in _handled() if signal.getsignal(each) is signal.SIG_DFL]
    for each in ours:
        signal.signal(each, signals.end)
    sys.unraisablehook = lambda what: signals.unraisable(what, hook)
    try:
        yield signals
    finally:
        sys.unraisablehook = hook
        for each in ours:
            signal.signal(each, signal.SIG_DFL)


def _handled() -> list[signal.Signals]:
    return [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
