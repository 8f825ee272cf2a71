"""Every error that pipeplan raises on purpose.

PipeplanError                   one short paragraph for the user; the exit code says whose turn it is
├── InputError                  the input is wrong (exit code 2)
│   ├── ShapeError              a strategy or placement cannot take this shape
│   ├── CostError               a time or a size that cannot be
│   ├── NotationError           text that is not an op, a row or a schedule
│   ├── FormatError             a file that is empty, broken or not what its name says
│   ├── UnknownNameError        no such strategy, key or format; names the nearest one
│   └── MissingExtraError       an optional package is not installed
└── NegativeAnswer              the question was fine and the answer is no (exit code 1)
    ├── InvalidScheduleError    incomplete, out of order, on the wrong rank, or over its memory
    │   └── DeadlockError       ranks wait for each other; the cycle is in the message
    ├── InfeasibleError         no schedule fits, a memory limit is too small
    ├── RunError                a training run or a sweep that ended early: a rank died, hung or raised; no workers left
    └── GradientError           a run's gradients are not those of a single process
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class PipeplanError(Exception):
    """The root: the message holds the rule, the value, the place and, where there is one, the remedy.

    Attributes
    ----------
    field
        The setting or part of a question that it is about, such as ``forward_times``; empty where it is about none.
    exit_code
        Of the command that it ends.
    """

    exit_code = 2

    def __init__(self, message: str = "", *, field: str = "") -> None:
        super().__init__(_without_long_words(message))
        self.field = field

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors travel between processes, also those that are made of other arguments than their message."""
        return _again, (type(self), self.args, self.__dict__)


_LONGEST_WORD = 1000
"""Letters without a blank between them in a message: what is longer was given, and need not be said in full."""


def _without_long_words(message: str) -> str:
    if len(message) <= _LONGEST_WORD:
        return message
    half = _LONGEST_WORD // 20
    return re.sub(rf"\S{{{_LONGEST_WORD},}}", lambda word: f"{word[0][:half]}…{word[0][-half:]}", message)


def _again(kind: type[PipeplanError], args: tuple[Any, ...], attributes: dict[str, Any]) -> PipeplanError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class InputError(PipeplanError):
    """The input is wrong."""


class ShapeError(InputError):
    """A strategy or a placement that cannot take this many ranks, chunks, microbatches or slices."""


class CostError(InputError):
    """A time, size or limit that cannot be: negative, not finite, of the wrong length."""


class NotationError(InputError):
    """Text that does not follow the op notation."""


class FormatError(InputError):
    """A file that is empty, truncated, too large or not of its format."""


_LONGEST_NAME = 80
"""Letters of a name in a message: it may be a file's content, pasted by mistake."""

_MOST_NAMES = 40
"""Of those that a message lists."""


class UnknownNameError(InputError):
    """A name that is not known.

    ``UnknownNameError("strategy", "zbw", known)`` reads: unknown strategy 'zbw'; did you mean 'zbv'?
    """

    def __init__(self, what: str, name: str, known: Iterable[str], *, field: str = "") -> None:
        known = sorted(known)
        if len(name) > _LONGEST_NAME:
            name = f"{name[: _LONGEST_NAME // 2]}…{name[-_LONGEST_NAME // 2 :]}"
        close = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        others = [f"and {len(known) - _MOST_NAMES} more"] if len(known) > _MOST_NAMES else []
        remedy = f"did you mean '{close[0]}'?" if close else f"known: {', '.join([*known[:_MOST_NAMES], *others])}"
        super().__init__(f"unknown {what} '{name}'; {remedy}", field=field)


class MissingExtraError(InputError):
    """An optional dependency is not installed: ``MissingExtraError("pytorch", "torch")``."""

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"this needs the package '{package}': pip install 'pipeplan[{extra}]'")


class NegativeAnswer(PipeplanError):
    """The question was well put, and the answer is no."""

    exit_code = 1


class InvalidScheduleError(NegativeAnswer):
    """A schedule that is not right; ``pipeplan check`` says all that is wrong with it."""


class DeadlockError(InvalidScheduleError):
    """Ranks that wait for each other."""


class InfeasibleError(NegativeAnswer):
    """No schedule meets the limits."""


class RunError(NegativeAnswer):
    """A training run or a sweep that ended before its time; the message names the rank and the op, or the task."""


class GradientError(NegativeAnswer):
    """Gradients that differ from those of a single process by more than rounding."""
