"""Whether a machine was quiet enough to tell: how far measurements of the same thing lie apart, in words.

Half of them lie between the quartiles. What lies between those, as a share of the median, is how far a median that was
measured again may be off; a single slow step does not change it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeplan.costs import Spread
from pipeplan.readable import Times, percent

NOISY = 0.1
"""The share from which it is said."""


def noise_of_steps(steps: Spread, unit: str) -> str | None:
    """What the spread of steps says, in a sentence; None where the machine was quiet, and of a single step."""
    if steps.count < 2 or steps.relative < NOISY:
        return None
    times = Times.of((steps.low, steps.high), unit)
    return (
        f"steps spread by {percent(steps.relative)} (half of them took {times.number(steps.low)} to "
        f"{times.text(steps.high)}): differences below that say nothing"
    )


def noise_of_ops(ops: Iterable[tuple[str, Spread]]) -> str | None:
    """What the op that spreads the most says, in a sentence; None where all are quiet.

    Parameters
    ----------
    ops
        What was measured, in words (``backward of stage 3``), and how long it took in milliseconds.
    """
    noisy = [(spread.relative, name, spread) for name, spread in ops if spread.count > 1 and spread.relative >= NOISY]
    if not noisy:
        return None
    relative, name, spread = max(noisy, key=lambda each: each[0])
    times = Times.of((spread.low, spread.high), "ms")
    return (
        f"times spread by up to {percent(relative)} ({name}: half of them {times.number(spread.low)} to "
        f"{times.text(spread.high)}): the machine is busy, or its clocks change; measure on a quiet one"
    )
