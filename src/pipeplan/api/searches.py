"""A search from settings, and its answer as a result like any other."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from pipeplan.api.results import Result, gap_above
from pipeplan.api.sources import DEFAULT_MICROBATCHES, Source, plan
from pipeplan.costs import Settings
from pipeplan.errors import InputError, ShapeError, UnknownNameError
from pipeplan.model import Placement, Schedule
from pipeplan.simulation import Bound, Simulation
from pipeplan.solver.portfolio import search as search_instance
from pipeplan.solver.problem import Objective, Problem
from pipeplan.solver.result import Found, SearchProgress
from pipeplan.solver.robustness import Jitter

DEFAULT_CHUNKS = {"linear": 1, "loop": 2, "v": 2, "wave": 4}
"""The placements that are searched by name, and their chunks when nobody says."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What is searched for beside shape and costs.

    Attributes
    ----------
    placement
        ``linear``, ``loop``, ``v``, ``wave``, or the rank of each stage, apart by commas: ``0,1,1,0``.
    objective
        ``makespan`` or ``span``.
    seconds, evaluations
        The budget; with evaluations alone the same seed gives the same answer.
    seed
        Of the random numbers.
    start
        Schedules to go on from: names or files.
    workers
        Threads; None: as many as this process has cores.
    split_backward
        Whether backward may be split into I and W.
    jitter
        Standard deviation of op times under which the least p95 is chosen; None: no jitter.
    """

    placement: str = "linear"
    objective: Objective = "makespan"
    seconds: float | None = None
    evaluations: int | None = None
    seed: int = 0
    start: tuple[Source, ...] = ()
    workers: int | None = None
    split_backward: bool = True
    jitter: float | None = None

    @property
    def threads(self) -> int:
        """The number of threads."""
        return usable_cores() if self.workers is None else self.workers


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult(Result):
    """A result with the story of its search.

    Attributes
    ----------
    found
        Who found it, the bound on the objective, what was spent.
    """

    found: Found = field(kw_only=True)

    @property
    def bound(self) -> Bound:
        """The best lower bound on the makespan that is proven: the search's, also where it is on the longest span."""
        return max(self.simulation.bound, self.found.bound, key=attrgetter("value"))

    @property
    def optimal(self) -> bool:
        """Whether the bound proves that no schedule is better."""
        return self.found.optimal

    def to_dict(self) -> dict[str, Any]:
        """The JSON of one result, with ``found_by``, ``optimal``, ``evaluations`` and the objective with its bound."""
        found, steady = self.found, self.found.robustness
        return super().to_dict() | {
            "found_by": found.found_by,
            "optimal": found.optimal,
            "evaluations": found.evaluations,
            "seconds": found.seconds,
            "interrupted": found.interrupted,
            "objective": {
                "name": found.problem.objective,
                "value": found.value,
                "lower_bound": found.bound.value,
                "bound_reason": found.bound.reason,
                "gap": gap_above(found.value, found.bound),
            },
            "jitter": None if steady is None else {"mean": steady.mean, "p95": steady.p95},
        }


def search_with(
    settings: Settings, options: SearchOptions, *, progress: Callable[[SearchProgress], None] | None = None
) -> SearchResult:
    """The best schedule found for these settings.

    Raises
    ------
    InputError
        For a placement, cost, cap, start or budget that cannot be.
    InfeasibleError
        For a cap below the least feasible one, which the message names.
    """
    problem = problem_of(settings, options)
    found = search_instance(
        problem,
        seconds=options.seconds,
        evaluations=options.evaluations,
        seed=options.seed,
        start=[_start(source, settings, problem) for source in options.start],
        workers=options.threads,
        progress=progress,
        jitter=None if options.jitter is None else Jitter(options.jitter),
    )
    return SearchResult(named(found), problem.limits, found=found)


def problem_of(settings: Settings, options: SearchOptions) -> Problem:
    """The question of a search. Raises what :func:`search_with` does."""
    if settings.communication != "edge":
        raise InputError(f"search knows edge communication only, not {settings.communication}")
    if settings.slices not in (None, 1):
        raise ShapeError("search does not cut sequences into slices")
    placement = placement_named(options.placement, settings)
    microbatches = DEFAULT_MICROBATCHES if settings.microbatches is None else settings.microbatches
    return Problem(
        placement,
        microbatches,
        settings.costs(placement),
        settings.limits(placement),
        objective=options.objective,
        split_backward=options.split_backward,
    )


def placement_named(name: str, settings: Settings) -> Placement:
    """The placement of a name, with the ranks and chunks of the settings, or of a list of ranks.

    Raises
    ------
    UnknownNameError
        For a name that nobody knows.
    ShapeError
        For ranks, chunks and stages that contradict each other or the name.
    """
    if "," in name:
        return _custom_placement(name, settings)
    if name not in DEFAULT_CHUNKS:
        raise UnknownNameError("placement", name, DEFAULT_CHUNKS)
    chunks = settings.chunks or DEFAULT_CHUNKS[name]
    if (name == "linear" and chunks != 1) or (name == "v" and chunks != 2):
        raise ShapeError(f"a {name} placement has {DEFAULT_CHUNKS[name]} chunk(s) a rank, not {chunks}")
    ranks = settings.pipeline_ranks(chunks)
    return Placement.loop(ranks, chunks) if name in {"linear", "loop"} else Placement.wave(ranks, chunks)


def _custom_placement(text: str, settings: Settings) -> Placement:
    try:
        placement = Placement.of(tuple(int(rank) for rank in text.split(",")))
    except ValueError:
        raise ShapeError(f"placement '{text}': write the rank of each stage, apart by commas, as in 0,1,1,0") from None
    for name in ("ranks", "stages"):
        if getattr(settings, name) not in (None, getattr(placement, name)):
            raise ShapeError(f"placement {text} has {getattr(placement, name)} {name}, not {getattr(settings, name)}")
    return placement


def _start(source: Source, settings: Settings, problem: Problem) -> Schedule:
    schedule = plan(source, settings)
    if schedule.placement.rank_of != problem.placement.rank_of:
        raise ShapeError(
            f"cannot start from {schedule.name}: its placement is {schedule.placement.name} with {schedule.stages} stages, "
            f"and the search is for {problem.placement.name} with {problem.placement.stages}"
        )
    return schedule


def named(found: Found) -> Simulation:
    """The simulation of what was found, under the name of a search."""
    simulation = found.simulation
    timeline = replace(simulation.timeline, schedule=found.schedule.renamed("search"))
    return replace(simulation, timeline=timeline)
