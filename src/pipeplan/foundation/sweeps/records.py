"""Records of a sweep: the tasks to do, their results, and the progress so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from pipeplan.foundation.errors import RunError

Payload = TypeVar("Payload")
Answer = TypeVar("Answer")

FailureKind = Literal["refused", "failed", "lost"]


@dataclass(frozen=True, slots=True)
class SweepTask(Generic[Payload]):
    """One call of a sweep's function.

    Attributes
    ----------
    key
        Name of the task in the store. The same task must have the same key in every run of the sweep.
    payload
        Argument of the function. It must be picklable.
    """

    key: str
    payload: Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Reason why a task has no answer.

    Attributes
    ----------
    kind
        ``refused``: the function raised a ``PipeplanError``. That is a result, and it is stored.
        ``failed``: the function raised another exception, or returned a value that JSON cannot hold. ``lost``: the worker
        process died, also when the task ran alone. The last two are not stored: a resumed sweep tries these tasks again.
    error
        Name of the exception's class.
    message
        Message of the exception.
    trace
        Traceback of a task that ``failed``; empty otherwise.
    """

    kind: FailureKind
    error: str
    message: str
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Generic[Answer]):
    """A finished task.

    Attributes
    ----------
    key
        Key of the task.
    answer
        Value that the function returned; None if it failed.
    failure
        Reason why there is no answer; None if there is one.
    stored
        True if the answer was read from the store.
    seconds
        Time that the function took.
    """

    key: str
    answer: Answer | None = None
    failure: Failure | None = None
    stored: bool = False
    seconds: float = 0.0

    def required(self) -> Answer:
        """Return the answer. Raises RunError if the task failed."""
        if self.failure is not None:
            trace = f"\n{self.failure.trace}" if self.failure.trace else ""
            raise RunError(f"{self.key}: {self.failure.error}: {self.failure.message}{trace}")
        assert self.answer is not None
        return self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepProgress:
    """Progress of a sweep.

    Attributes
    ----------
    done
        Number of finished tasks, including those read from the store.
    stored
        Number of tasks read from the store.
    failed
        Number of finished tasks without an answer.
    tasks
        Total number of tasks; None if ``tasks`` has no length.
    seconds
        Time since the sweep began.
    workers
        Number of workers.
    """

    done: int
    stored: int
    failed: int
    tasks: int | None
    seconds: float
    workers: int


ProgressListener = Callable[[SweepProgress], None]
"""Function that receives the progress. It may raise KeyboardInterrupt to stop the sweep."""

Row = tuple[str, str | None, Failure | None, float]
"""A result as workers send it and the store keeps it: key, answer as JSON or failure, seconds."""
