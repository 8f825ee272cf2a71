"""The best layout of a model's layers on the stages of a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from time import monotonic

import numpy as np

from pipeplan.costs import Overhead
from pipeplan.errors import InfeasibleError, ShapeError
from pipeplan.files import GIBIBYTE
from pipeplan.model import Schedule, tolerances
from pipeplan.planner.layout.branch import LayoutBranching
from pipeplan.planner.layout.climb import descend, walk
from pipeplan.planner.layout.laid import BestLayout, LaidLayer, LayerParts, StageOption, parts_of
from pipeplan.planner.layout.order import OrderGraph
from pipeplan.planner.layout.problem import Clock, Deadline, Laid, LayoutProblem
from pipeplan.planner.layout.stages import TIMES, RankPeaks, StageTables
from pipeplan.planner.layout.starts import best_evens, start_of
from pipeplan.strategies import Shape, Strategy, strategy

TURN = 0.4
"""Share of the time that is left, for branching and then for a walk."""


ALONE = 0.8
"""The same where ranks have one stage each: branching soon comes to its end there."""

ANY = 1e6
"""Times a layout's makespan: no layout takes longer, since no way to run a layer takes a million times as long."""


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
    clock: Clock = monotonic,
) -> BestLayout:
    """Return the layers and the option of each stage with which a step is as short as possible within the limits.

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
        If no layout stays within the limits, or none was found in the time.
    InputError
        For a model without transformer layers, or too few of them for the stages.
    CostError
        For limits that are not one a rank.
    """
    made = _schedule(schedule, shape)
    parts = parts_of(layers)
    _require_layers(parts, made.stages)
    choices = choices_of(parts, some_layers, made.stages)
    problem = LayoutProblem(
        OrderGraph(made, transfer, overhead), StageTables(parts, choices, host_bandwidth), RankPeaks(made, limits)
    )
    return search(problem, Deadline.after(seconds, clock))


def layout_peaks(
    layers: Sequence[LaidLayer], schedule: Schedule, layout: Sequence[int], options: Sequence[StageOption]
) -> tuple[float, ...]:
    """Return the maximum bytes of each rank with a given layout and given options of its stages.

    Raises
    ------
    ShapeError
        For a layout that is not of these layers and stages.
    """
    parts = parts_of(layers)
    if len(layout) != schedule.stages or sum(layout) != len(parts.middle) or len(options) != schedule.stages:
        raise ShapeError(
            f"a layout gives each of {schedule.stages} stages some of {len(parts.middle)} layers, and an option",
            field="layers",
        )
    choices = tuple(dict.fromkeys(options))
    tables, bounds = StageTables(parts, choices), Laid(tuple(layout), ()).bounds
    features = [
        tables.of_stage(stage, schedule.stages)[choices.index(option), bounds[stage], bounds[stage + 1]]
        for stage, option in enumerate(options)
    ]
    # A stage without layers holds nothing.
    held = np.where(np.isfinite(features), features, 0.0)
    return tuple(RankPeaks(schedule).peaks(held).tolist())


def _schedule(schedule: Schedule | Strategy | str, shape: Shape | None) -> Schedule:
    if isinstance(schedule, Schedule):
        return schedule
    if shape is None:
        raise ShapeError("a strategy makes a schedule of a shape: give ranks, microbatches and chunks", field="ranks")
    rule = strategy(schedule) if isinstance(schedule, str) else schedule
    return rule(shape)


def _require_layers(parts: LayerParts, stages: int) -> None:
    needed = stages - bool(parts.start) - bool(parts.end and stages > 1)
    if len(parts.middle) < needed:
        raise ShapeError(
            f"{len(parts.middle)} transformer layers are too few for {stages} stages: all but those of the embedding and "
            "the head need one",
            field="layers",
        )


def choices_of(parts: LayerParts, some_layers: Sequence[str], stages: int) -> tuple[StageOption, ...]:
    """Everything that a stage can do: each name for all of its layers, and those named for some."""
    names = dict.fromkeys(option.name for layer in (*parts.middle, *parts.end) for option in layer.options)
    most = 2 * -(-len(parts.middle) // stages)
    some = [StageOption(name=name, layers=count) for name in some_layers if name in names for count in range(1, most)]
    return (*(StageOption(name=name) for name in names), *some)


def search(problem: LayoutProblem, deadline: Deadline) -> BestLayout:
    """The best layout of a problem; see :func:`best_layout`."""
    even = next(iter(best_evens(problem)), None)
    best = start_of(problem, even, deadline)
    if not problem.fits(best):
        best = _fitting(problem, best, deadline)
    best, bound = _improved(problem, best, deadline)
    best = _plainest(problem, best)
    makespan = problem.makespan(best)
    bound = min(bound, makespan)
    return BestLayout(
        layout=best.counts,
        options=tuple(problem.tables.choices[choice] for choice in best.choices),
        makespan=makespan,
        lower_bound=bound,
        proven=makespan <= bound * (1 + tolerances.ROUNDING),
        even_layout=even.counts if even else None,
        even_option=problem.tables.choices[even.choices[0]] if even else None,
        even_makespan=problem.makespan(even) if even else inf,
        peaks=tuple(problem.peaks.peaks(problem.of(best)).tolist()),
        simulated=problem.order.evaluations,
    )


def _plainest(problem: LayoutProblem, best: Laid) -> Laid:
    """Return the same layout with earlier choices on stages that take no longer with them, where that fits."""
    for stage in range(problem.stages):
        for choice in range(best.choices[stage]):
            choices = (*best.choices[:stage], choice, *best.choices[stage + 1 :])
            other = Laid(best.counts, choices)
            takes, now = problem.of(other)[stage, TIMES], problem.of(best)[stage, TIMES]
            if (takes <= now).all() and problem.fits(other):
                best = other
                break
    return best


def _fitting(problem: LayoutProblem, nearest: Laid, deadline: Deadline) -> Laid:
    """Return any layout that fits, where descent found none. Raises InfeasibleError."""
    found = LayoutBranching(problem, ANY * problem.makespan(nearest), deadline).run()
    if found.better is None:
        which = "no layout" if found.complete else "no layout that was found in the time"
        over = float(problem.peaks.over(problem.of(nearest))) / GIBIBYTE
        raise InfeasibleError(
            f"{which} of {problem.layers} layers on {problem.stages} stages stays within the memory limits; the nearest is "
            f"{over:.3g} GiB over: recompute or offload more, or use more ranks",
            field="memory_limit",
        )
    return found.better


def _improved(problem: LayoutProblem, best: Laid, deadline: Deadline) -> tuple[Laid, float]:
    """Return the best layout found in the time, and a bound on all: by branching, and by walks where that takes long."""
    bound, turn = 0.0, TURN if problem.order.schedule.placement.chunks > 1 else ALONE
    while True:
        problem.thin()
        problem.probe_ranks(best)
        branched = LayoutBranching(problem, problem.makespan(best), deadline.part(turn)).run()
        bound = max(bound, branched.bound)
        if branched.better is not None:
            best = descend(problem, branched.better, deadline)
        elif branched.complete or deadline.passed():
            return best, bound
        else:
            found = walk(problem, best, deadline.part(TURN))
            best = descend(problem, found, deadline) if found != best else best
