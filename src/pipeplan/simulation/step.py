"""How long a step takes: what its ops take, and what it adds behind them."""

from __future__ import annotations

from pipeplan.costs import Costs
from pipeplan.model import Timeline


def step_time(timeline: Timeline, costs: Costs, *, barrier: bool = True) -> float:
    """How long a step takes, in the unit of the costs.

    Parameters
    ----------
    barrier
        Whether ranks wait for each other at its end, as where gradients are clipped by the norm of all of them. Without it
        (post-validation: Qi, Wan, Huang, Lin, Zero Bubble Pipeline Parallelism, ICLR 2024, section 4) a rank goes on to the
        next step as soon as it is done, and the longest span counts.
    """
    return (timeline.makespan if barrier else timeline.longest_span) + costs.overhead.step_time
