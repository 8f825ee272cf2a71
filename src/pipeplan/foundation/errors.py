"""Errors that pipeplan raises.

PipeplanError                   base class; the message is one short paragraph for the user
├── InputError                  invalid input (exit code 2)
│   ├── ShapeError              unsupported or contradictory shape of a strategy or placement
│   ├── CostError               invalid time, size or limit
│   ├── NotationError           text that is not an op, a row or a schedule
│   ├── FormatError             a file that is empty, damaged or of another format
│   ├── UnknownNameError        unknown strategy, key or format; the message suggests the nearest one
│   ├── PluginError             an installed package declares a plugin that cannot be loaded, or is invalid
│   └── MissingExtraError       an optional package is not installed
└── NegativeAnswer              valid input with a negative answer (exit code 1)
    ├── InvalidScheduleError    a schedule is incomplete, out of order, on the wrong rank, or exceeds its memory
    │   └── DeadlockError       ranks wait for each other; the message holds the cycle
    ├── InfeasibleError         no schedule fits, such as under a memory limit that is too small
    ├── RunError                a training run or a sweep ended early: a rank died, hung or raised, or no workers are left
    └── GradientError           gradients of a run differ from those of a single process
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class PipeplanError(Exception):
    """Base class of all errors; the message holds the rule, the value, the place and, if there is one, the remedy.

    Attributes
    ----------
    field
        Setting or argument at fault, such as ``forward_times``; empty if there is none.
    exit_code
        Exit code of the command.
    """

    exit_code = 2

    def __init__(self, message: str = "", *, field: str = "") -> None:
        super().__init__(_without_long_words(message))
        self.field = field

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle errors for other processes, also those whose arguments are not their message."""
        return _again, (type(self), self.args, self.__dict__)


_LONGEST_WORD = 1000
"""Maximum length of a word in a message; longer words are pasted input, and are shortened."""


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
    """Invalid input."""


class ShapeError(InputError):
    """Unsupported or contradictory numbers of ranks, chunks, microbatches or slices."""


class CostError(InputError):
    """Invalid time, size or limit: negative, not finite, or a list of the wrong length."""


class NotationError(InputError):
    """Text that does not follow the op notation."""


class FormatError(InputError):
    """A file that is empty, truncated, too large or of another format."""


_LONGEST_NAME = 80
"""Maximum length of a name in a message; it may be a file's content, pasted by mistake."""

_MOST_NAMES = 40
"""Maximum number of known names listed in a message."""


_MOST_NEAR = 3
"""Maximum number of names that a message suggests, if several continue an unknown one."""


def nearest(name: str, names: Iterable[str], *, cutoff: float = 0.55) -> list[str]:
    """Return the names that a misspelt one may mean: the shortest that continue it, or else the most similar one.

    ``cutoff`` is the least similarity, from 0 to 1.
    """
    known = list(names)
    longer = sorted((other for other in known if name and other.lower().startswith(name.lower())), key=len)
    shortest = [other for other in longer if len(other) == len(longer[0])]
    return shortest[:_MOST_NEAR] or get_close_matches(name.lower(), known, n=1, cutoff=cutoff)


class UnknownNameError(InputError):
    """Unknown name.

    ``UnknownNameError("strategy", "zbw", names)`` reads: unknown strategy 'zbw'; did you mean 'zbv'?
    ``more`` is appended, such as the form of a text that contains the name.
    """

    def __init__(self, what: str, name: str, names: Iterable[str], *, field: str = "", more: str = "") -> None:
        names = sorted(names)
        if len(name) > _LONGEST_NAME:
            name = f"{name[: _LONGEST_NAME // 2]}…{name[-_LONGEST_NAME // 2 :]}"
        close = nearest(name, names)
        others = [f"and {len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
        remedy = f"known: {', '.join([*names[:_MOST_NAMES], *others])}"
        if close:
            remedy = "did you mean " + " or ".join(f"'{known}'" for known in close) + "?"
        super().__init__(f"unknown {what} '{name}'; {remedy}{more}", field=field)


class PluginError(InputError):
    """A plugin of an installed package cannot be loaded, or is invalid."""


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra, for messages: from a checkout, because no registry has the package."""
    return f"pip install '.[{extra}]' in a checkout of pipeplan"


class MissingExtraError(InputError):
    """An optional dependency is not installed: ``MissingExtraError("pytorch", "torch")``."""

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"this needs the package '{package}': {how_to_install(extra)}")


class NegativeAnswer(PipeplanError):
    """Valid input with a negative answer."""

    exit_code = 1


class InvalidScheduleError(NegativeAnswer):
    """Invalid schedule; ``pipeplan check`` lists all of its problems."""


class DeadlockError(InvalidScheduleError):
    """Deadlock: ranks wait for each other."""


class InfeasibleError(NegativeAnswer):
    """No schedule meets the limits."""


class RunError(NegativeAnswer):
    """A training run or a sweep ended early; the message names the rank and the op, or the task."""


class GradientError(NegativeAnswer):
    """Gradients differ from those of a single process by more than rounding."""
