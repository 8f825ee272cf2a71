"""Measurements of a model: progress, and noise of the machine.

Half of them lie between the quartiles. What lies between those, as a share of the median, is how far a median that was
measured again may be off; a single slow step does not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from pipeplan.costs import Spread
from pipeplan.extensions.training.options import ProfileOptions
from pipeplan.foundation.readable import Times, percent, time_text
from pipeplan.model import Schedule

if TYPE_CHECKING:
    # The runtime needs PyTorch.
    from pipeplan.extensions.training.runtime.progress import RunProgress
    from pipeplan.extensions.training.runtime.results import Profile

TrainingReport = Callable[[str, float], None]
"""Function called with the current task in words, and the completed share, from 0 to 1."""


RuntimeReport: TypeAlias = "Callable[[RunProgress], None]"
"""Function called with the runtime's progress."""


def part(
    progress: TrainingReport | None, begin: float = 0.0, end: float = 1.0, prefix: str = ""
) -> RuntimeReport | None:
    """Return a report of the runtime's progress as the part from ``begin`` to ``end`` of the whole, after a ``prefix``."""
    if progress is None:
        return None

    def report(news: RunProgress) -> None:
        left = news.seconds_left
        rest = "" if left is None else f", {time_text(max(round(left), 1), 's')} left"
        progress(f"{prefix}{news}{rest}", begin + (end - begin) * news.share)

    return report


def stages_measured(schedule: Schedule, options: ProfileOptions, progress: RuntimeReport | None) -> Profile:
    """Measure the costs of a model's stages on a schedule's placement."""
    from pipeplan.extensions.training.runtime.profiling import profile_with

    return profile_with(schedule.placement, options, progress=progress)


NOISY = 0.1
"""Relative spread from which noise is reported."""


def noise_of_steps(steps: Spread, unit: str) -> str | None:
    """Return a sentence on the spread of step times; None for a quiet machine, and for a single step."""
    if steps.count < 2 or steps.relative < NOISY:
        return None
    times = Times.of((steps.low, steps.high), unit)
    return (
        f"steps spread by {percent(steps.relative)} (half of them took {times.number(steps.low)} to "
        f"{times.text(steps.high)}): differences below that say nothing"
    )


def noise_of_ops(ops: Iterable[tuple[str, Spread]]) -> str | None:
    """Return a sentence on the op whose times in milliseconds spread the most; None if all are quiet.

    Ops have names in words: ``backward of stage 3``.
    """
    noisy = [(spread.relative, name, spread) for name, spread in ops if spread.count > 1 and spread.relative >= NOISY]
    if not noisy:
        return None
    relative, name, spread = max(noisy, key=lambda entry: entry[0])
    times = Times.of((spread.low, spread.high), "ms")
    return (
        f"times spread by up to {percent(relative)} ({name}: half of them {times.number(spread.low)} to "
        f"{times.text(spread.high)}): the machine is busy, or its clocks change; measure on a quiet one"
    )
