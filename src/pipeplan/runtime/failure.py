"""What a process that fails writes down for the launcher to read."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeplan.errors import InputError, PipeplanError
from pipeplan.runtime.places import Place


@dataclass(frozen=True, slots=True)
class Failure:
    """How a process failed.

    Attributes
    ----------
    when
        When it failed, on the host's monotonic clock, in nanoseconds.
    message
        What went wrong, in one line.
    place
        What the rank was doing.
    ours, is_input
        Whether pipeplan raised it on purpose, and whether because the input is wrong.
    """

    when: int
    message: str
    place: Place
    ours: bool
    is_input: bool

    @classmethod
    def of(cls, error: BaseException, place: Place) -> Failure:
        """The failure that an error is: its innermost cause, since PyTorch wraps what a module raises."""
        while error.__cause__ is not None and not isinstance(error, PipeplanError):
            error = error.__cause__
        ours = isinstance(error, PipeplanError)
        first = (str(error).strip().splitlines() or [""])[0].strip()
        message = str(error) if ours else f"{type(error).__name__}: {first}"
        return cls(time.monotonic_ns(), message, place, ours, isinstance(error, InputError))


def read_failure(path: Path) -> Failure | None:
    """What :func:`write_whole` wrote of a failure; None if the process wrote nothing."""
    if not path.exists():
        return None
    failure: Failure = pickle.loads(path.read_bytes())
    return failure


def write_whole(path: Path, value: Any) -> None:
    """Write a value so that the file is there complete or not at all."""
    part = path.with_suffix(".part")
    part.write_bytes(pickle.dumps(value))
    part.replace(path)
