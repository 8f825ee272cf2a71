"""When a search ends, and its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time by a clock, in seconds."""

    end: float
    clock: Clock

    @classmethod
    def after(cls, seconds: float, clock: Clock = monotonic) -> Deadline:
        """So many seconds from now."""
        return cls(clock() + seconds, clock)

    def passed(self) -> bool:
        """Whether it is later."""
        return self.clock() >= self.end

    def part(self, share: float) -> Deadline:
        """An earlier one: after this share of the time that is left."""
        now = self.clock()
        return Deadline(now + share * max(self.end - now, 0.0), self.clock)
