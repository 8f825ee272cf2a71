"""A configuration's layers as the layout search takes them: what each takes and holds, by what is computed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeplan.costs import Overhead
from pipeplan.hardware import Cluster, host_time
from pipeplan.model import Schedule
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.estimates.memory import memory_rules
from pipeplan.planner.estimates.per_layer import LayerCosts, layer_costs
from pipeplan.planner.estimates.seconds import TimeFactors
from pipeplan.planner.estimates.software import op_gap_of, software
from pipeplan.planner.estimates.stages import layout_of, transfer_bytes, transfer_seconds
from pipeplan.planner.layout import BestLayout, LaidLayer, LayerOption, StageOption, best_layout, layout_peaks
from pipeplan.planner.selection.bounds import state_of_one
from pipeplan.planner.selection.choices import written
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
        have their names as :func:`~pipeplan.planner.selection.choices.written` writes them.
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
