"""Who works on batches: this process, some of this machine, or those of a cluster; all behind one protocol."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipeplan.sweeps.task import Task
from pipeplan.sweeps.work import Outcome, work_on

Function = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """Tasks that a worker does in one go."""

    tasks: tuple[Task[Any], ...]

    @property
    def payloads(self) -> Sequence[Any]:
        """Of its tasks."""
        return [task.payload for task in self.tasks]


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a batch.

    Attributes
    ----------
    batch
        Which one.
    outcomes
        Of its tasks; None where its worker died.
    begun
        Whether the worker that died had begun with it.
    """

    batch: Batch
    outcomes: Sequence[Outcome] | None
    begun: bool = True


class Pool(Protocol):
    """Workers that take batches, and give them back in the order in which they end.

    Attributes
    ----------
    ahead
        Short batches that wait behind the one that a worker has, so that it is never idle.
    """

    ahead: int

    @property
    def workers(self) -> int:
        """How many work at once."""
        ...

    @property
    def batch_seconds(self) -> float:
        """How long a batch should take, so that handing it over costs little beside it."""
        ...

    def submit(self, batch: Batch) -> None:
        """Hand a batch over."""
        ...

    def ended(self) -> list[Ended]:
        """Wait until batches have ended: at least one where any is under way."""
        ...

    def close(self) -> None:
        """Stop, without waiting for what is under way."""
        ...


class ThisProcess:
    """One worker, which is this process: tasks are done in their order."""

    ahead = 0
    workers = 1
    batch_seconds = 0.05

    def __init__(self, function: Function) -> None:
        self._function = function
        self._batches: deque[Batch] = deque()

    def submit(self, batch: Batch) -> None:
        """It is worked on when its end is waited for."""
        self._batches.append(batch)

    def ended(self) -> list[Ended]:
        """The oldest batch."""
        if not self._batches:
            return []
        batch = self._batches.popleft()
        return [Ended(batch, work_on(self._function, batch.payloads))]

    def close(self) -> None:
        """Forget what was not begun."""
        self._batches.clear()
