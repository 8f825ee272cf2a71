"""How far a plan is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeplan.planner.estimated import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """What a listener is told.

    Attributes
    ----------
    phase
        What it does, in a word or two.
    share
        Of its budget in seconds that is spent, 0 to 1.
    estimated
        Configurations so far.
    best
        The best that fits so far.
    """

    phase: str
    share: float
    estimated: int
    best: Estimate | None


PlanListener = Callable[[PlanProgress], None]
"""Is told how far a plan is; may raise KeyboardInterrupt: the plan then answers with what it has."""
