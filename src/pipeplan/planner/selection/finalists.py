"""Finalists"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, product

import numpy as np

from pipeplan.costs import Limits, Overhead
from pipeplan.errors import PipeplanError
from pipeplan.hardware import Cluster, host_time
from pipeplan.model import Schedule
from pipeplan.planner.answers import Estimate, SearchedOrder
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.memory import memory_rules
from pipeplan.planner.estimates.running import costs_of, placed, shape_of
from pipeplan.planner.estimates.seconds import TimeFactors
from pipeplan.planner.estimates.software import op_gap_of, software
from pipeplan.planner.estimates.stages import (
    LayerCosts,
    even_layout,
    layer_costs,
    layout_of,
    stage_costs,
    transfer_bytes,
    transfer_seconds,
)
from pipeplan.planner.layout import BestLayout, LaidLayer, LayerOption, StageOption, best_layout, layout_peaks
from pipeplan.planner.selection.bounds import state_of_one
from pipeplan.planner.selection.candidates import savings
from pipeplan.planner.selection.request import PlanRequest, written
from pipeplan.solver import Problem, search
from pipeplan.strategies import strategy
from pipeplan.workload import ModelShape, offloaded

_GIB = 2.0**30


def best_layout_of(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    schedule: Schedule,
    *,
    choices: Sequence[tuple[str, ...]] | None = None,
    limits: float | Sequence[float] | None = None,
    seconds: float = 1.0,
    calibration: TimeFactors | None = None,
) -> BestLayout:
    """The best layout of a configuration, whose own it takes no notice of.

    Parameters
    ----------
    schedule
        Whose order the ranks run: of as many stages; fewer microbatches than the step's will do.
    choices
        Sets of modules of which each stage may compute one again; None: what the configuration does. Options of the answer
        have their names as :func:`~pipeplan.planner.selection.request.written` writes them.
    limits
        Bytes of each rank for parameters, gradients, optimizer state, activations and what a backward holds besides; what
        else there is, such as workspaces, is the caller's to take off.
    seconds
        To search.

    Raises
    ------
    PipeplanError
        As :func:`~pipeplan.planner.layout.best_layout`, and for degrees that do not split the model.
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
        host_bandwidth=_GIB / host_time(cluster.gpu, _GIB),
        seconds=seconds,
    )


def held_besides(
    model: ModelShape, cluster: Cluster, start: Estimate, schedule: Schedule, *, calibration: TimeFactors | None = None
) -> float:
    """Return the bytes beside what layouts change, such as workspaces, on the rank that holds the most of them.

    Parameters
    ----------
    start
        Of a configuration with some layout, the same modules computed again everywhere.
    """
    configuration = start.configuration
    name = written("recompute", configuration.recompute)
    layers = laid_layers(model, cluster, configuration, (configuration.recompute,), calibration=calibration)
    layout = layout_of(model, configuration)
    peaks = layout_peaks(layers, schedule, layout, (StageOption(name=name),) * len(layout))
    return max(rank.total - peak for rank, peak in zip(start.memory, peaks, strict=True))


def laid_layers(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    choices: Sequence[tuple[str, ...]],
    *,
    calibration: TimeFactors | None = None,
) -> tuple[LaidLayer, ...]:
    """Every layer of the model with what it takes under each choice; equal ones that follow one another counted.

    The share that is moved to the host is that of the first stage where stages differ in it.
    """
    offload = configuration.offload
    share = float(offload[0]) if isinstance(offload, tuple) else float(offload)
    dense, expert = state_of_one(configuration)
    copies = memory_rules(configuration.software).copy_bytes(configuration.precision)
    priced = {
        written("recompute", modules): layer_costs(
            model, cluster, configuration, recompute=modules, calibration=calibration
        )
        for modules in choices
    }
    laid: list[LaidLayer] = []
    for index, first in enumerate(next(iter(priced.values()))):
        held, copied = first.layer.parameters, copies if first.layer.kind in ("dense", "moe", "mtp") else 0.0
        layer = LaidLayer(
            options=tuple(_option(name, layers[index], share) for name, layers in priced.items()),
            static_bytes=(dense + copied) * held.dense + (expert + copied) * held.expert,
            kind=first.layer.kind,
        )
        if laid and replace(laid[-1], count=1) == layer:
            laid[-1] = replace(laid[-1], count=laid[-1].count + 1)
        else:
            laid.append(layer)
    return tuple(laid)


def _option(name: str, costs: LayerCosts, share: float) -> LayerOption:
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
    )


MOST_OPS = 60_000
"""Of a schedule that layouts are simulated with; a longer step is laid out as one of fewer microbatches, which it
repeats."""

MOST_STAGES = 80
"""Maximum number of stages that are laid out exactly; for more, layouts with lighter ends are compared."""

WORTH = 0.005
"""Share of the step that stages with recomputation of their own must save: no trainer's flags can say them."""


def laid_out(request: PlanRequest, start: Estimate, *, seconds: float, by_stage: bool = True) -> Estimate:
    """Return the estimate of a configuration with its best layout, or ``start`` where none is better.

    Parameters
    ----------
    start
        Of a configuration that fits, without a layout of its own.
    seconds
        To search.
    by_stage
        Whether stages may compute different modules again.
    """
    best = start
    if start.configuration.pipeline == 1:
        return start
    if start.configuration.stages > MOST_STAGES:
        return _with_lighter_ends(request, start)
    sets = [[start.configuration.recompute]] + ([_sets(request, start.configuration)] if by_stage else [])
    for choices in sets:
        found = _with_layout(request, start, choices, seconds / len(sets))
        differs = found is not None and found.configuration.recompute_by_stage is not None
        least = best.step_time * (1 - WORTH if differs else 1)
        if found is not None and found.peak_bytes <= request.memory_limit and found.step_time < least:
            best = found
    return best


def _with_lighter_ends(request: PlanRequest, start: Estimate) -> Estimate:
    """Return the best of the even layouts with up to two layers fewer on the first and on the last stage."""
    best, count = start, start.configuration.stages
    for first, last in product(range(3), repeat=2):
        layers = even_layout(request.model.layers + first + last, count)
        laid = (layers[0] - first, *layers[1:-1], layers[-1] - last)
        if min(laid) < 0 or laid == start.configuration.layers:
            continue
        found = request.estimate(replace(start.configuration, layers=laid))
        if found.peak_bytes <= request.memory_limit and found.step_time < best.step_time:
            best = found
    return best


def _sets(request: PlanRequest, configuration: Configuration) -> list[tuple[str, ...]]:
    """Return the sets of modules that a stage could recompute, the configuration's own first."""
    legal = [saving["recompute"] for saving in savings(request, {"software": configuration.software})]
    return list(dict.fromkeys((configuration.recompute, *legal)))


def _with_layout(
    request: PlanRequest, start: Estimate, choices: Sequence[tuple[str, ...]], seconds: float
) -> Estimate | None:
    model, cluster, configuration = request.model, request.cluster, start.configuration
    try:
        schedule = strategy(configuration.schedule)(shape_of(configuration, _microbatches(configuration)))
        besides = held_besides(model, cluster, start, schedule, calibration=request.calibration)
        found = best_layout_of(
            model,
            cluster,
            configuration,
            schedule,
            choices=choices,
            limits=request.memory_limit - besides,
            seconds=seconds,
            calibration=request.calibration,
        )
        modules = {written("recompute", choice): choice for choice in choices}
        by_stage = tuple(modules[option.name] for option in found.options)
        same = len(set(by_stage)) == 1
        laid = replace(
            configuration,
            layers=found.layout,
            recompute=by_stage[0] if same else configuration.recompute,
            recompute_by_stage=None if same else by_stage,
        )
        return request.estimate(laid)
    except PipeplanError:
        # No layout that was found stays within the limit, or the stages are more than the layers: the even one stands.
        return None


def _microbatches(configuration: Configuration) -> int:
    """Return the number of microbatches of the step, or fewer groups of them where these are very many."""
    ops = 3 * configuration.stages
    group = configuration.group_size or configuration.pipeline
    most = max(MOST_OPS // ops // group, 3) * group
    left = configuration.microbatches % group
    return configuration.microbatches if configuration.microbatches <= most + left else most + left


MOST_SEARCHED_OPS = 20_000
"""Maximum number of ops of a step whose order is searched for: in longer ones a search of seconds changes too little."""

SEARCHED = 2
"""Finalists, each with stages on other ranks."""


def better_order(
    request: PlanRequest, finalists: Iterable[Estimate], *, seconds: float, workers: int = 1
) -> SearchedOrder | None:
    """Return the best order that a search finds for the finalists, where it is better than their own; else None.

    Parameters
    ----------
    finalists
        The best first; those with one rank, and steps of very many ops, are passed over.
    seconds
        For all of them.
    """
    suited: dict[object, Estimate] = {}
    for each in finalists:
        configuration = each.configuration
        if configuration.pipeline > 1 and 3 * configuration.stages * configuration.microbatches <= MOST_SEARCHED_OPS:
            suited.setdefault(placed(configuration).rank_of, each)
    chosen = list(islice(suited.values(), SEARCHED))
    found = []
    end = time.monotonic() + seconds
    for left, start in zip(range(len(chosen), 0, -1), chosen, strict=True):
        share = (end - time.monotonic()) / left
        order = _searched(request, start, share, workers)
        if order is not None:
            found.append(order)
    return min(found, key=lambda order: order.estimate.step_time, default=None)


def _searched(request: PlanRequest, start: Estimate, seconds: float, workers: int) -> SearchedOrder | None:
    configuration = start.configuration
    stages = stage_costs(request.model, request.cluster, configuration, calibration=request.calibration)
    costs = costs_of(stages, configuration)
    besides = np.array([rank.total - rank.activations for rank in start.memory])
    try:
        problem = Problem(
            placed(configuration),
            configuration.microbatches,
            costs,
            Limits(request.memory_limit - besides, in_activations=False),
        )
        found = search(problem, seconds=max(seconds, 0.0), workers=workers)
        order = request.estimate(configuration, found.schedule)
    except PipeplanError:
        # Costs or a placement that the search does not take, or a limit too small for any order that it knows.
        return None
    if order.peak_bytes > request.memory_limit or order.step_time >= start.step_time:
        return None
    return SearchedOrder(
        estimate=order,
        instead_of=start.step_time,
        schedule=found.schedule,
        found_by=found.found_by,
        optimality_gap=max(0.0, found.optimality_gap),  # rounding of the bound
    )
