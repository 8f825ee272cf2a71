"""Refinement of finalists: individual layouts, recomputation that differs by stage, and a better order of ops."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, product
from math import ceil

import numpy as np

from pipeplan.costs import Limits, Overhead
from pipeplan.extensions.planning.choice.bounds import state_of_one
from pipeplan.extensions.planning.choice.candidates import savings
from pipeplan.extensions.planning.choice.describing import described
from pipeplan.extensions.planning.choice.legality import excludes
from pipeplan.extensions.planning.choice.request import PlanRequest, written
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.memory_rules import memory_rules
from pipeplan.extensions.planning.estimates.running import costs_of, hides_exchanges, placed, shape_of
from pipeplan.extensions.planning.estimates.seconds import TimeFactors, WorkMachine
from pipeplan.extensions.planning.estimates.segments import pair_slowdown
from pipeplan.extensions.planning.estimates.software import op_gap_of, software
from pipeplan.extensions.planning.estimates.stages import (
    LayerCosts,
    even_layout,
    layer_sums,
    layout_of,
    machine_of,
    segments_of,
    stage_costs,
    transfer_bytes,
    transfer_seconds,
)
from pipeplan.extensions.planning.hardware import Cluster, host_time
from pipeplan.extensions.planning.plan_records import SearchedRecord
from pipeplan.extensions.planning.results import Estimate
from pipeplan.extensions.planning.workload import ModelShape, offloaded
from pipeplan.extensions.search import Problem, search
from pipeplan.extensions.search.layouts import (
    BestLayout,
    Clock,
    LaidLayer,
    LayerOption,
    StageOption,
    WorkClock,
    best_layout,
    layout_peaks,
)
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.foundation.records import holding
from pipeplan.model import Schedule
from pipeplan.strategies import strategy


def best_layout_of(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    schedule: Schedule,
    *,
    choices: Sequence[tuple[str, ...]] | None = None,
    limits: float | Sequence[float] | None = None,
    seconds: float = 1.0,
    clock: Clock = time.monotonic,
    calibration: TimeFactors | None = None,
) -> BestLayout:
    """Return the best layout of a configuration, regardless of its own layout.

    Parameters
    ----------
    schedule
        Schedule whose order the ranks run, with the same stages; fewer microbatches than the step's suffice.
    choices
        Sets of modules, one of which each stage recomputes; None: the configuration's. Options of the result have the names
        that :func:`~pipeplan.extensions.planning.choice.request.written` gives them.
    limits
        Bytes per rank for parameters, gradients, optimizer state, activations and transients of a backward; the caller
        subtracts everything else, such as workspaces.
    seconds
        Time budget.
    clock
        Clock of the budget; :class:`WorkClock` makes the result independent of the machine's load.

    Raises
    ------
    PipeplanError
        As for :func:`~pipeplan.extensions.search.layouts.best_layout`, and if the degrees do not divide the model.
    """
    chosen = (configuration.recompute,) if choices is None else choices
    trainer = software(configuration.software)
    message = transfer_seconds(cluster, configuration, transfer_bytes(model, configuration))
    return best_layout(
        laid_layers(model, cluster, configuration, chosen, calibration=calibration),
        schedule,
        transfer=0.0 if trainer.blocks else message,
        overhead=Overhead(op_gap=op_gap_of(configuration), message_time=message if trainer.blocks else 0.0),
        limits=limits,
        host_bandwidth=GIBIBYTE / host_time(cluster.gpu, GIBIBYTE),
        slowdown=pair_slowdown(machine_of(cluster, configuration, calibration)),
        delayed_weights=trainer.delayed_weights,
        seconds=seconds,
        clock=clock,
    )


def held_besides(
    model: ModelShape, cluster: Cluster, start: Estimate, schedule: Schedule, *, calibration: TimeFactors | None = None
) -> float:
    """Return the bytes that do not depend on the layout, such as workspaces, on the rank that holds most of them.

    Parameters
    ----------
    start
        Estimate of a configuration with some layout and the same recomputation on every stage.
    """
    configuration = start.configuration
    name = written("recompute", configuration.recompute)
    layers = laid_layers(model, cluster, configuration, (configuration.recompute,), calibration=calibration)
    layout = layout_of(model, configuration)
    peaks = layout_peaks(layers, schedule, layout, (StageOption(name=name),) * len(layout))
    return max(rank.total * GIBIBYTE - peak for rank, peak in zip(start.memory, peaks, strict=True))


def laid_layers(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    choices: Sequence[tuple[str, ...]],
    *,
    calibration: TimeFactors | None = None,
) -> tuple[LaidLayer, ...]:
    """Return every layer of the model with its times and bytes under each choice; equal neighbors are counted.

    If stages differ in the offloaded fraction, that of the first stage is used.
    """
    offload = configuration.offload
    share = float(offload[0]) if isinstance(offload, tuple) else float(offload)
    dense, expert = state_of_one(configuration)
    copies = memory_rules(configuration.software).copy_bytes(configuration.precision)
    priced = {
        written("recompute", modules): layer_sums(
            model, cluster, configuration, recompute=modules, calibration=calibration
        ).layers
        for modules in choices
    }
    paired = machine_of(cluster, configuration, calibration) if hides_exchanges(configuration) else None
    laid: list[LaidLayer] = []
    for index, first in enumerate(next(iter(priced.values()))):
        held, copied = first.layer.parameters, copies if first.layer.kind in ("dense", "moe", "mtp") else 0.0
        layer = LaidLayer(
            options=tuple(_option(name, layers[index], share, paired) for name, layers in priced.items()),
            static_bytes=(dense + copied) * held.dense + (expert + copied) * held.expert,
            kind=first.layer.kind,
        )
        if laid and replace(laid[-1], count=1) == layer:
            laid[-1] = replace(laid[-1], count=laid[-1].count + 1)
        else:
            laid.append(layer)
    return tuple(laid)


def _option(name: str, costs: LayerCosts, share: float, paired: WorkMachine | None) -> LayerOption:
    after = offloaded(costs.layer, share)
    return LayerOption(
        name=name,
        forward=costs.forward,
        backward_input=costs.backward_input,
        backward_weight=costs.backward_weight,
        activation_bytes=after.kept_bytes,
        weight_activation_bytes=after.bytes_until_weight,
        transfer_bytes=share * costs.layer.kept_bytes,
        transient_bytes=after.transient_bytes,
        segments=None if paired is None else segments_of(paired, costs),
    )


MOST_OPS = 60_000
"""Maximum number of ops of a schedule that layouts are simulated with; a longer step repeats itself and is represented by
fewer microbatches."""

MOST_STAGES = 80
"""Maximum number of stages with an exact layout search; for more, only layouts with lighter ends are compared."""

WORTH = 0.005
"""Minimum fraction of the step that recomputation by stage must save, because no trainer flag can express it."""


def laid_out(request: PlanRequest, start: Estimate, *, seconds: float, by_stage: bool = True) -> Estimate:
    """Return the estimate of a configuration with its best layout, or ``start`` if none is better.

    Parameters
    ----------
    start
        Estimate of a configuration that fits and has no layout.
    seconds
        Budget in nominal seconds, which do not depend on the machine's load.
    by_stage
        Whether stages may recompute different modules.
    """
    best = start
    if start.configuration.pipeline == 1:
        return start
    if start.configuration.stages > MOST_STAGES:
        return _with_lighter_ends(request, start)
    # First the same recomputation on every stage, then one per stage, which must save more (WORTH).
    sets = [[start.configuration.recompute]] + ([_sets(request, start.configuration)] if by_stage else [])
    for choices in sets:
        candidate = _with_layout(request, start, choices, seconds / len(sets))
        differs = candidate is not None and candidate.configuration.recompute_by_stage is not None
        least = best.step_time * (1 - WORTH if differs else 1)
        if candidate is not None and candidate.peak_bytes <= request.memory_limit and candidate.step_time < least:
            best = candidate
    return best


def _with_lighter_ends(request: PlanRequest, start: Estimate) -> Estimate:
    """Return the best of the even layouts with up to two layers fewer on the first and on the last stage."""
    best, count = start, start.configuration.stages
    for first, last in product(range(3), repeat=2):
        layers = even_layout(request.model.layers + first + last, count)
        laid = (layers[0] - first, *layers[1:-1], layers[-1] - last)
        if min(laid) < 0 or laid == start.configuration.layers:
            continue
        candidate = request.estimate(replace(start.configuration, layers=laid))
        if candidate.peak_bytes <= request.memory_limit and candidate.step_time < best.step_time:
            best = candidate
    return best


def _sets(request: PlanRequest, configuration: Configuration) -> list[tuple[str, ...]]:
    """Return the sets of modules that a stage could recompute, the configuration's own first."""
    legal = [saving["recompute"] for saving in savings(request, {"software": configuration.software})]
    runs = (modules for modules in legal if not excludes(configuration.schedule, modules))
    return list(dict.fromkeys((configuration.recompute, *runs)))


def _with_layout(
    request: PlanRequest, start: Estimate, choices: Sequence[tuple[str, ...]], seconds: float
) -> Estimate | None:
    model, cluster, configuration = request.model, request.cluster, start.configuration
    try:
        schedule = strategy(configuration.schedule)(shape_of(configuration, _microbatches(configuration)))
        # Workspaces and buffers do not depend on the layout: subtract them from the limit.
        besides = held_besides(model, cluster, start, schedule, calibration=request.calibration)
        best = best_layout_of(
            model,
            cluster,
            configuration,
            schedule,
            choices=choices,
            limits=request.memory_limit - besides,
            seconds=seconds,
            clock=WorkClock(),
            calibration=request.calibration,
        )
        modules = {written("recompute", choice): choice for choice in choices}
        by_stage = tuple(modules[option.name] for option in best.options)
        same = len(set(by_stage)) == 1
        laid = replace(
            configuration,
            layers=best.layout,
            recompute=by_stage[0] if same else configuration.recompute,
            recompute_by_stage=None if same else by_stage,
        )
        return request.estimate(laid)
    except PipeplanError:
        # No layout found in time fits, or there are more stages than layers: keep the even one.
        return None


def _microbatches(configuration: Configuration) -> int:
    """Return the number of microbatches of the step, or a multiple of the group size if there are very many."""
    ops = 3 * configuration.stages
    group = configuration.group_size or configuration.pipeline
    most = max(MOST_OPS // ops // group, 3) * group
    left = configuration.microbatches % group
    return configuration.microbatches if configuration.microbatches <= most + left else most + left


MOST_SEARCHED_OPS = 20_000
"""Maximum number of ops of a step in the order search: a search of seconds improves longer ones too little."""

OPS_A_SECOND = 4_000_000
"""Ops that the order search evaluates per nominal second: its budget is a number of evaluations of the whole step, so the
machine's load does not change the result."""

SEARCHED = 2
"""Number of finalists in the order search, each with another placement."""


def better_order(
    request: PlanRequest, finalists: Iterable[Estimate], *, seconds: float, workers: int = 1
) -> SearchedRecord | None:
    """Return the best order that a search finds for the finalists if it beats their own; otherwise None.

    Parameters
    ----------
    finalists
        Estimates, the best first; those with one rank or very many ops are skipped.
    seconds
        Budget for all finalists together in nominal seconds.
    """
    # One finalist for each placement: finalists with the same placement would lead to the same search.
    suited: dict[object, Estimate] = {}
    for finalist in finalists:
        configuration = finalist.configuration
        if configuration.pipeline > 1 and 3 * configuration.stages * configuration.microbatches <= MOST_SEARCHED_OPS:
            suited.setdefault(placed(configuration).rank_of, finalist)
    chosen = list(islice(suited.values(), SEARCHED))
    orders = []
    for start in chosen:
        order = _searched(request, start, seconds / len(chosen), workers)
        if order is not None:
            orders.append(order)
    return min(orders, key=lambda order: order.step_time, default=None)


def _searched(request: PlanRequest, start: Estimate, seconds: float, workers: int) -> SearchedRecord | None:
    configuration = start.configuration
    ops = 3 * configuration.stages * configuration.microbatches
    stages = stage_costs(request.model, request.cluster, configuration, calibration=request.calibration)
    costs = costs_of(stages, configuration)
    # The search bounds only activations.
    besides = GIBIBYTE * np.array([rank.total - rank.activations for rank in start.memory])
    try:
        problem = Problem(
            placed(configuration),
            configuration.microbatches,
            costs,
            Limits(request.memory_limit - besides, in_activations=False),
        )
        # The clock stands still: a search that divides seconds depends on the machine's load.
        result = search(
            problem,
            seconds=1.0,
            evaluations=ceil(seconds * OPS_A_SECOND / ops),
            workers=workers,
            clock=lambda: 0.0,
        )
        order = request.estimate(configuration, result.schedule)
    except PipeplanError:
        # The search does not support these costs or this placement, or the limit is too small for any order it knows.
        return None
    if order.peak_bytes > request.memory_limit or order.step_time >= start.step_time:
        return None
    searched = SearchedRecord(
        **described(request.model, request.cluster, order),
        instead_of_s=start.step_time,
        found_by=result.found_by,
        optimality_gap=max(0.0, result.optimality_gap),  # the bound may exceed the makespan by rounding
    )
    return holding(searched, schedule=result.schedule)
