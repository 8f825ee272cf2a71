"""How far a run or a profile is, as one share of all its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pipeplan.readable import time_text

if TYPE_CHECKING:
    from pipeplan.runtime import RunProgress

TrainingReport = Callable[[str, float], None]
"""Takes what is being done, in words, and how much of all is done, from 0 to 1."""


RuntimeReport: TypeAlias = "Callable[[RunProgress], None]"
"""Takes what the runtime tells."""


def part(progress: TrainingReport | None, begin: float = 0.0, end: float = 1.0, said: str = "") -> RuntimeReport | None:
    """What the runtime tells, told as the part from ``begin`` to ``end`` of the whole; ``said`` stands before it."""
    if progress is None:
        return None

    def report(news: RunProgress) -> None:
        left = news.seconds_left
        rest = "" if left is None else f", {time_text(max(round(left), 1), 's')} left"
        progress(f"{said}{news}{rest}", begin + (end - begin) * news.share)

    return report
