"""The budget of a search, in seconds and evaluations, and the part that is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from threading import Event

from pipeplan.foundation.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Budget of a search: seconds, evaluations, and the threads of its annealing."""

    seconds: float | None
    evaluations: int | None
    workers: int = 1


class Budget:
    """Seconds, evaluations of a candidate, or both; whichever is used up first ends the search.

    A search on a budget of evaluations alone returns the same answer every time; one on seconds does not.

    Parameters
    ----------
    seconds, evaluations
        The most that may be spent; None: no limit of this kind.
    clock
        Function that returns the time in seconds.

    Raises
    ------
    InputError
        For less than 0 of either, or neither.
    """

    def __init__(self, seconds: float | None, evaluations: int | None, clock: Callable[[], float]) -> None:
        if seconds is None and evaluations is None:
            raise InputError("a search needs a budget: seconds, evaluations, or both")
        for name, amount in (("seconds", seconds), ("evaluations", evaluations)):
            if not (amount is None or amount >= 0):
                raise InputError(f"a budget must be at least 0, not {amount} {name}", field=name)
        self.limit_seconds = seconds
        self.limit_evaluations = evaluations
        self.evaluations = 0
        self.under_way = 0
        """Evaluations that represent work in progress; they count only in the progress that is shown."""
        self.stopped = Event()
        self._clock = clock
        self._begin = clock()

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return self._clock() - self._begin

    def part(self, share: float) -> Budget:
        """Return the budget up to a share of it; spending counts for both."""
        return _Part(self, share)

    @property
    def seconds_left(self) -> float:
        """Seconds that may still be spent; infinite without a limit."""
        return self.seconds_until(1.0)

    def seconds_until(self, share: float) -> float:
        """Seconds until this share of them is spent; infinite without a limit."""
        return float("inf") if self.limit_seconds is None else max(share * self.limit_seconds - self.seconds, 0.0)

    @property
    def evaluations_left(self) -> int | None:
        """Evaluations that may still be made; None without a limit."""
        return self.evaluations_until(1.0)

    def evaluations_until(self, share: float) -> int | None:
        """Evaluations, at least, until this share of them is made; None without a limit."""
        limit = self.limit_evaluations
        return None if limit is None else max(ceil(share * limit) - self.evaluations, 0)

    @property
    def out_of_time(self) -> bool:
        """True if the seconds are used up, or the user has stopped the search."""
        return self.stopped.is_set() or self.seconds_left <= 0

    @property
    def is_spent(self) -> bool:
        """True if the budget is spent."""
        return self.out_of_time or self.evaluations_left == 0

    @property
    def share(self) -> float:
        """Spent share of the budget, from 0 to 1."""
        shares = [0.0]
        if self.limit_seconds:
            shares.append(self.seconds / self.limit_seconds)
        if self.limit_evaluations:
            shares.append((self.evaluations + self.under_way) / self.limit_evaluations)
        return min(max(shares), 1.0)

    def share_in(self, seconds: float) -> float:
        """Return the share of the budget that will be spent this many seconds from now; infinite budgets count as spent."""
        return (self.seconds + seconds) / self.limit_seconds if self.limit_seconds else 1.0


class _Part(Budget):
    """Share of another budget: spending counts for both."""

    def __init__(self, whole: Budget, share: float) -> None:
        self._whole = whole
        self.limit_seconds = None if whole.limit_seconds is None else share * whole.limit_seconds
        self.limit_evaluations = None if whole.limit_evaluations is None else ceil(share * whole.limit_evaluations)
        self.stopped = whole.stopped

    @property
    def evaluations(self) -> int:
        return self._whole.evaluations

    @evaluations.setter
    def evaluations(self, evaluations: int) -> None:
        self._whole.evaluations = evaluations

    @property
    def under_way(self) -> int:
        return self._whole.under_way

    @under_way.setter
    def under_way(self, evaluations: int) -> None:
        self._whole.under_way = evaluations

    @property
    def seconds(self) -> float:
        return self._whole.seconds
