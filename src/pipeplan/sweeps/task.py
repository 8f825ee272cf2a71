"""What a sweep is asked, and what it says of each task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from pipeplan.errors import RunError

Payload = TypeVar("Payload")
Answer = TypeVar("Answer")

Kind = Literal["refused", "failed", "lost"]


@dataclass(frozen=True, slots=True)
class Task(Generic[Payload]):
    """One call of the function of a sweep.

    Attributes
    ----------
    key
        What it is known by in the store: the same for the same question, in every run of the sweep.
    payload
        The function's argument; anything that can be pickled.
    """

    key: str
    payload: Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a task has no answer.

    Attributes
    ----------
    kind
        ``refused``: the function raised a :class:`~pipeplan.errors.PipeplanError`, which is its answer and is stored.
        ``failed``: it raised something else, or answered what JSON cannot hold. ``lost``: the process that worked on it
        died, and another one did when it was tried alone. The two are not stored: a sweep that is resumed tries again.
    error
        The error's class.
    message
        In one sentence.
    trace
        The traceback of one that ``failed``; empty otherwise.
    """

    kind: Kind
    error: str
    message: str
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Generic[Answer]):
    """A task that is done.

    Attributes
    ----------
    key
        The task's.
    answer
        What the function gave; None where it failed.
    failure
        Why it has no answer; None where it has one.
    stored
        Whether it is from an earlier run, by way of the store.
    seconds
        That the function took.
    """

    key: str
    answer: Answer | None = None
    failure: Failure | None = None
    stored: bool = False
    seconds: float = 0.0

    def required(self) -> Answer:
        """The answer.

        Raises
        ------
        RunError
            Where there is none.
        """
        if self.failure is not None:
            trace = f"\n{self.failure.trace}" if self.failure.trace else ""
            raise RunError(f"{self.key}: {self.failure.error}: {self.failure.message}{trace}")
        assert self.answer is not None
        return self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a sweep is.

    Attributes
    ----------
    done
        Tasks that are done, those from the store with them.
    stored
        Of them, from the store.
    failed
        Of them, without an answer.
    tasks
        How many there are; None where that is not known before they were drawn.
    seconds
        Since the sweep began.
    workers
        At work.
    """

    done: int
    stored: int
    failed: int
    tasks: int | None
    seconds: float
    workers: int


Listener = Callable[[Progress], None]
"""Is told how far a sweep is; it may raise KeyboardInterrupt to stop it."""
