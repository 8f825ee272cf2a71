"""The best layout of a model's layers on the stages of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from time import monotonic

from pipeplan.costs import Overhead
from pipeplan.errors import InfeasibleError, ShapeError
from pipeplan.model import Schedule, tolerances
from pipeplan.planner.layout.climb import descend
from pipeplan.planner.layout.even import even_splits
from pipeplan.planner.layout.laid import BestLayout, LaidLayer, Parts, StageOption, parts_of
from pipeplan.planner.layout.memory import RankPeaks
from pipeplan.planner.layout.order import Order
from pipeplan.planner.layout.problem import Laid, LayoutProblem
from pipeplan.planner.layout.stages import StageTables
from pipeplan.strategies import Shape, Strategy, strategy


def best_layout(
    layers: Sequence[LaidLayer],
    schedule: Schedule | Strategy | str,
    shape: Shape | None = None,
    *,
    transfer: float = 0.0,
    overhead: Overhead | None = None,
    limits: float | Sequence[float] | None = None,
    host_bandwidth: float = inf,
    some_layers: Sequence[str] = (),
    seconds: float = 1.0,
    clock: Callable[[], float] = monotonic,
) -> BestLayout:
    """Which layers go on which stage, and what each stage does, so that a step is as short as can be within the limits.

    Parameters
    ----------
    layers
        Of the model, in order.
    schedule
        A schedule, or a strategy (or its name) that makes it from ``shape``.
    transfer
        Of one microbatch's message between ranks; seconds.
    overhead
        What ranks lose between ops.
    limits
        Bytes that each rank may hold, everything included; one number: every rank; None: any.
    host_bandwidth
        Each way; bytes/s. What moving a stage's bytes takes beyond its F is added to F, and beyond its I to I.
    some_layers
        Names of options that also some of a stage's layers can have, the first ones (Megatron's
        ``--recompute-method block``, but by stage); others are chosen for all layers of a stage.
    seconds
        To search; the best even split and the descent's first steps are looked at in any case.

    Raises
    ------
    InfeasibleError
        If no layout that was found stays within the limits.
    InputError
        For a model without transformer layers, or more stages than layers.
    """
    end_of_time = clock() + seconds

    def out_of_time() -> bool:
        return clock() >= end_of_time

    made = _schedule(schedule, shape)
    parts = parts_of(layers)
    _require_layers(parts, made.stages)
    choices = choices_of(parts, some_layers, made.stages)
    problem = LayoutProblem(
        Order(made, transfer, overhead), StageTables(parts, choices, host_bandwidth), RankPeaks(made, limits)
    )
    return search(problem, out_of_time)


def _schedule(schedule: Schedule | Strategy | str, shape: Shape | None) -> Schedule:
    if isinstance(schedule, Schedule):
        return schedule
    if shape is None:
        raise ShapeError("a strategy makes a schedule of a shape: give ranks, microbatches and chunks", field="ranks")
    rule = strategy(schedule) if isinstance(schedule, str) else schedule
    return rule(shape)


def _require_layers(parts: Parts, stages: int) -> None:
    needed = stages - bool(parts.start) - bool(parts.end and stages > 1)
    if len(parts.middle) < needed:
        raise ShapeError(
            f"{len(parts.middle)} transformer layers are too few for {stages} stages: all but those of the embedding and "
            "the head need one",
            field="layers",
        )


def choices_of(parts: Parts, some_layers: Sequence[str], stages: int) -> tuple[StageOption, ...]:
    """Everything that a stage can do: each name for all of its layers, and those named for some."""
    names = dict.fromkeys(option.name for layer in (*parts.middle, *parts.end) for option in layer.options)
    most = 2 * -(-len(parts.middle) // stages)
    some = [StageOption(name=name, layers=count) for name in some_layers if name in names for count in range(1, most)]
    return (*(StageOption(name=name) for name in names), *some)


def search(problem: LayoutProblem, out_of_time: Callable[[], bool]) -> BestLayout:
    """The best layout of a problem; see :func:`best_layout`."""
    even = _best_even(problem)
    starts = [even] if even else [_thriftiest_even(problem)]
    best = min((descend(problem, start, out_of_time) for start in starts), key=lambda laid: _rank(problem, laid))
    if not problem.fits(best):
        raise InfeasibleError("no layout that was found stays within the memory limits", field="memory_limit")
    makespan = problem.makespan(best)
    bound = 0.0
    even_makespan = problem.makespan(even) if even else inf
    return BestLayout(
        layout=best.counts,
        options=tuple(problem.tables.choices[choice] for choice in best.choices),
        makespan=makespan,
        lower_bound=bound,
        proven=makespan <= bound * (1 + tolerances.ROUNDING),
        even_layout=even.counts if even else None,
        even_option=problem.tables.choices[even.choices[0]] if even else None,
        even_makespan=even_makespan,
        peaks=tuple(problem.peaks.peaks(problem.of(best)).tolist()),
        simulated=problem.order.evaluations,
    )


def _rank(problem: LayoutProblem, laid: Laid) -> tuple[float, float]:
    over = float(problem.peaks.over(problem.of(laid)))
    return over, problem.makespan(laid)


def _evens(problem: LayoutProblem) -> list[Laid]:
    parts, stages = problem.tables.parts, problem.stages
    splits = even_splits(problem.layers, stages, bare_first=bool(parts.start), bare_last=bool(parts.end))
    whole = [number for number, choice in enumerate(problem.tables.choices) if choice.layers is None]
    return [Laid(split, (choice,) * stages) for split in splits for choice in whole]


def _best_even(problem: LayoutProblem) -> Laid | None:
    fitting = [laid for laid in _evens(problem) if problem.fits(laid)]
    return min(fitting, key=problem.makespan, default=None)


def _thriftiest_even(problem: LayoutProblem) -> Laid:
    return min(_evens(problem), key=lambda laid: float(problem.peaks.over(problem.of(laid))))
