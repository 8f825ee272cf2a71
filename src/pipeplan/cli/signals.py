"""Signals that ask a command to end: it ends as an error would end it, so that it leaves neither files nor processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")


class Ended(BaseException):
    """A signal has ended the command: no error, so that nothing takes it for one of its own.

    Attributes
    ----------
    code
        The exit code by which shells know the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise :class:`Ended` in the block when a signal asks for the end; only the first one counts.

    What another has set stays: ``nohup`` wants SIGHUP to be ignored. Outside the main thread nothing changes.
    """
    ours: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)
        raise Ended(number)

    try:
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, end)
                ours.append(number)
    except ValueError:  # only the main thread may
        pass
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
