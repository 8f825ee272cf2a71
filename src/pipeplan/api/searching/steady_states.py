"""What each further microbatch costs under a memory limit. Importing this loads the solver."""

from __future__ import annotations

from typing import Unpack

from pipeplan.api.arguments import Given, settings_of
from pipeplan.api.searching.problems import Names, problem_of
from pipeplan.api.searching.steady_answers import SteadyStates
from pipeplan.costs import SEARCH_SETTINGS, Settings, plain_numbers, require_settings
from pipeplan.solver import steady_state as steady_state_of

__all__ = ["SteadyStates", "steady_state"]


def steady_state(
    *,
    placement: str = "linear",
    seconds: float = 10.0,
    most: int = 4,
    seed: int = 0,
    workers: int = 1,
    full_backward: bool = False,
    leave: Names = (),
    **settings: Unpack[Given],
) -> SteadyStates:
    """What each further microbatch costs in the long run: the shortest period of a schedule that repeats, and bounds.

    A step of so many microbatches takes a way in, a way out, and this for each microbatch between. Where memory is not
    short it is the work of the busiest rank; under a tight limit it can be more.

    Parameters
    ----------
    placement
        ``linear``, ``loop``, ``v``, ``wave``, or the rank of each stage, apart by commas: ``0,1,1,0``.
    seconds
        The budget.
    most
        Up to how many microbatches (of each copy of the model) a pattern takes until it repeats.
    seed, workers
        Of the random numbers; threads.
    full_backward
        Same as ``leave="split"``: no backward is split into its input and weight halves.
    leave
        ``split``: no backward is split into its input and weight halves. Nothing else is decided here.
    **settings
        Shape and costs; ``memory_limit`` is one, or one per rank.

    Raises
    ------
    InputError
        For a placement, cost, limit or budget that cannot be; transfers that occupy ranks or queue; sliced sequences.
    InfeasibleError
        For a limit below the least feasible one, which the message names.

    Examples
    --------
    >>> steady = pipeplan.steady_state(ranks=4, placement="v", memory_limit="2.5act")  # doctest: +SKIP
    >>> steady.found.best.per_microbatch, steady.found.bound  # doctest: +SKIP
    """
    require_settings(SEARCH_SETTINGS, seconds=seconds, most=most, seed=seed, workers=workers)
    seconds, most, seed, workers = plain_numbers(seconds, most, seed, workers)
    given: Settings = settings_of(settings)
    problem = problem_of(given, placement=placement, full_backward=full_backward, leave=leave)
    found = steady_state_of(problem, seconds=seconds, most=most, seed=seed, workers=workers)
    return SteadyStates(found, problem.costs.time_unit)
