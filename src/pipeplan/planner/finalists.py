"""What a finalist gains where its layers are laid out for it, and where stages differ in what they compute again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeplan.costs import Overhead
from pipeplan.errors import PipeplanError
from pipeplan.hardware import Cluster
from pipeplan.planner.bounds import state_of_one
from pipeplan.planner.candidates import RECOMPUTED
from pipeplan.planner.choices import written
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimate import estimate
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.layout import LaidLayer, LayerOption, best_layout
from pipeplan.planner.seconds import Factors
from pipeplan.planner.software import software
from pipeplan.planner.stage_costs import LayerCosts, layer_costs, transfer_bytes, transfer_seconds
from pipeplan.strategies import strategy
from pipeplan.workload import ModelShape

MOST_OPS = 60_000
"""Of a schedule that layouts are simulated with; a longer step is laid out as one of fewer microbatches, which it repeats."""

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
    chosen = start.configuration.recompute
    sets = [(chosen,)] + ([tuple(dict.fromkeys((chosen, *_sets(model))))] if by_stage else [])
    for choices in sets:
        found = _with_layout(model, cluster, start, choices, memory_limit, seconds / len(sets), calibration)
        differs = found is not None and found.configuration.recompute_by_stage is not None
        least = best.step_time * (1 - WORTH if differs else 1)
        if found is not None and found.peak_bytes <= memory_limit and found.step_time < least:
            best = found
    return best


def _sets(model: ModelShape) -> Iterator[tuple[str, ...]]:
    """Modules that a stage could compute again."""
    for modules in RECOMPUTED:
        if model.latent is None and "mla_up_proj" in modules:
            continue
        if model.experts is None and {"moe", "moe_act"} & set(modules):
            continue
        yield modules


def _with_layout(
    model: ModelShape,
    cluster: Cluster,
    start: Estimate,
    choices: Sequence[tuple[str, ...]],
    memory_limit: float,
    seconds: float,
    calibration: Factors | None,
) -> Estimate | None:
    configuration = start.configuration
    besides = max(rank.total - rank.activations - rank.weights - rank.gradients - rank.optimizer for rank in start.memory)
    try:
        found = best_layout(
            _layers(model, cluster, configuration, choices, calibration),
            strategy(configuration.schedule),
            strategy(configuration.schedule).shape(
                configuration.pipeline,
                _microbatches(configuration),
                configuration.chunks,
                group_size=configuration.group_size,
            ),
            transfer=transfer_seconds(cluster, configuration, transfer_bytes(model, configuration)),
            overhead=Overhead(op_gap=software(configuration.software).op_gap),
            limits=memory_limit - besides,
            seconds=seconds,
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


def _layers(
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    choices: Sequence[tuple[str, ...]],
    calibration: Factors | None,
) -> list[LaidLayer]:
    """Every layer of the model with what it takes under each choice; equal ones that follow one another counted."""
    share = float(configuration.offload) if isinstance(configuration.offload, int | float) else 0.0
    dense, expert = state_of_one(configuration)
    priced = [
        (written("recompute", modules), layer_costs(model, cluster, configuration, recompute=modules, calibration=calibration))
        for modules in choices
    ]
    laid: list[LaidLayer] = []
    for index, first in enumerate(priced[0][1]):
        options = {_option(name, layers[index], share) for name, layers in priced}
        held = first.layer.parameters
        layer = LaidLayer(
            options=tuple(sorted(options, key=lambda option: [name for name, _ in priced].index(option.name))),
            static_bytes=dense * held.dense + expert * held.expert,
            kind=first.layer.kind,
        )
        if laid and replace(laid[-1], count=1) == layer:
            laid[-1] = replace(laid[-1], count=laid[-1].count + 1)
        else:
            laid.append(layer)
    return laid


def _option(name: str, costs: LayerCosts, share: float) -> LayerOption:
    work = costs.layer
    return LayerOption(
        name=name,
        forward=costs.forward,
        backward_input=costs.backward_input,
        backward_weight=costs.backward_weight,
        activation_bytes=(1 - share) * work.kept_bytes,
        weight_activation_bytes=min((1 - share) * work.kept_bytes, work.bytes_until_weight),
        transfer_bytes=share * work.kept_bytes,
        transient_bytes=work.transient_bytes,
    )
