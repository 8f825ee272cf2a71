"""Tasks in rounds: the next round is made when all of the last one is finished."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from pipeplan.planner.selection.trials import Trial
from pipeplan.sweeps import Task


class Rounds:
    """An iterator of a sweep's tasks that pauses at the end of each round.

    A sweep asks again whenever something has finished, so the pause is a stop: where tasks of the round are under way,
    there is nothing more to draw for now.
    """

    def __init__(self, rounds: Iterator[list[Trial]]) -> None:
        self._rounds = rounds
        self._queue: deque[Trial] = deque()
        self._drawn: set[str] = set()
        self._under_way = 0

    def finished(self) -> None:
        """One task is."""
        self._under_way -= 1

    def __iter__(self) -> Rounds:
        return self

    def __next__(self) -> Task[Trial]:
        """The next task of this round, or of the next one."""
        while not self._queue:
            if self._under_way:
                raise StopIteration
            new = {trial.key: trial for trial in next(self._rounds) if trial.key not in self._drawn}
            self._queue.extend(new.values())
            self._drawn.update(new)
        self._under_way += 1
        return self._queue.popleft().task
