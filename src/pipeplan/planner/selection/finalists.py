"""What a finalist gains where its layers are laid out for it, and where stages differ in what they compute again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from pipeplan.errors import PipeplanError
from pipeplan.hardware import Cluster
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.estimates.estimating import estimate
from pipeplan.planner.estimates.seconds import Factors
from pipeplan.planner.estimates.stages import even_layout
from pipeplan.planner.selection.candidates import savings
from pipeplan.planner.selection.choices import written
from pipeplan.planner.selection.laid_layers import best_layout_of, held_besides
from pipeplan.planner.selection.question import Question
from pipeplan.strategies import strategy
from pipeplan.workload import ModelShape

MOST_OPS = 60_000
"""Of a schedule that layouts are simulated with; a longer step is laid out as one of fewer microbatches, which it
repeats."""

MOST_STAGES = 80
"""That are laid out exactly; of more stages, layouts with fewer layers on the first and the last are compared."""

WORTH = 0.005
"""Share of the step that stages with recomputation of their own must save: no trainer's flags can say them."""


def laid_out(
    model: ModelShape,
    cluster: Cluster,
    start: Estimate,
    *,
    memory_limit: float,
    seconds: float,
    calibration: Factors | None = None,
    by_stage: bool = True,
) -> Estimate:
    """The estimate of a configuration with its best layout, or ``start`` where none is better.

    Parameters
    ----------
    start
        Of a configuration that fits, without a layout of its own.
    memory_limit
        Of a GPU; bytes.
    seconds
        To search.
    by_stage
        Whether stages may compute different modules again.
    """
    best = start
    if start.configuration.pipeline == 1:
        return start
    if start.configuration.stages > MOST_STAGES:
        return _with_lighter_ends(model, cluster, start, memory_limit, calibration)
    question = Question(
        model=model,
        cluster=cluster,
        global_batch=start.configuration.global_batch,
        sequence=start.configuration.sequence,
        memory_limit=memory_limit,
    )
    sets = [[start.configuration.recompute]] + ([_sets(question, start.configuration)] if by_stage else [])
    for choices in sets:
        found = _with_layout(
            model, cluster, start, choices, memory_limit, seconds=seconds / len(sets), calibration=calibration
        )
        differs = found is not None and found.configuration.recompute_by_stage is not None
        least = best.step_time * (1 - WORTH if differs else 1)
        if found is not None and found.peak_bytes <= memory_limit and found.step_time < least:
            best = found
    return best


def _with_lighter_ends(
    model: ModelShape, cluster: Cluster, start: Estimate, memory_limit: float, calibration: Factors | None
) -> Estimate:
    """The best of the layouts that are even but for up to two layers fewer on the first and on the last stage."""
    best, count = start, start.configuration.stages
    for first, last in product(range(3), repeat=2):
        layers = even_layout(model.layers + first + last, count)
        laid = (layers[0] - first, *layers[1:-1], layers[-1] - last)
        if min(laid) < 0 or laid == start.configuration.layers:
            continue
        tried = replace(start.configuration, layers=laid)
        found = estimate(model, cluster, tried, calibration=calibration, with_error_bar=False)
        if found.peak_bytes <= memory_limit and found.step_time < best.step_time:
            best = found
    return best


def _sets(question: Question, configuration: Configuration) -> list[tuple[str, ...]]:
    """Modules that a stage could compute again; first what the configuration does everywhere."""
    legal = [saving["recompute"] for saving in savings(question, {"software": configuration.software})]
    return list(dict.fromkeys((configuration.recompute, *legal)))


def _with_layout(
    model: ModelShape,
    cluster: Cluster,
    start: Estimate,
    choices: Sequence[tuple[str, ...]],
    memory_limit: float,
    *,
    seconds: float,
    calibration: Factors | None,
) -> Estimate | None:
    configuration = start.configuration
    rule = strategy(configuration.schedule)
    shape = rule.shape(
        configuration.pipeline,
        _microbatches(configuration),
        configuration.chunks,
        group_size=configuration.group_size,
    )
    try:
        schedule = rule(shape)
        besides = held_besides(model, cluster, start, schedule, calibration=calibration)
        found = best_layout_of(
            model,
            cluster,
            configuration,
            schedule,
            choices=choices,
            limits=memory_limit - besides,
            seconds=seconds,
            calibration=calibration,
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
        return estimate(model, cluster, laid, calibration=calibration, with_error_bar=False)
    except PipeplanError:
        # No layout that was found stays within the limit, or the stages are more than the layers: the even one stands.
        return None


def _microbatches(configuration: Configuration) -> int:
    """As many as the step has, or fewer groups of them where these are very many."""
    ops = 3 * configuration.stages
    group = configuration.group_size or configuration.pipeline
    most = max(MOST_OPS // ops // group, 3) * group
    left = configuration.microbatches % group
    return configuration.microbatches if configuration.microbatches <= most + left else most + left
