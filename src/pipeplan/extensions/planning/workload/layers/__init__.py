"""Layers of a model as work, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from pipeplan.extensions.planning.workload.layers.block import (
    check_division,
    decoder_layer,
    embedding,
    head,
    loss,
    mixer_splits,
    mtp_layer,
    rank_vocabulary,
)
from pipeplan.extensions.planning.workload.pattern import LayerForm
from pipeplan.extensions.planning.workload.recompute import recomputed
from pipeplan.extensions.planning.workload.shape import ModelShape
from pipeplan.extensions.planning.workload.work import Execution, LayerWork, RankParameters

__all__ = ["layers_of", "mixer_splits", "rank_vocabulary"]


@lru_cache(maxsize=512)
def layers_of(model: ModelShape, execution: Execution) -> tuple[LayerWork, ...]:
    """Return every layer in order: embedding, decoder layers (equal ones in a row counted), MTP layers, head and loss.

    Recomputation of ``execution.recompute`` is already applied.

    Raises
    ------
    ShapeError
        If a degree does not divide what it splits.
    """
    check_division(model, execution)
    layers = [
        embedding(model, execution),
        *_decoder(model, execution),
        *([replace(mtp_layer(model, execution), count=model.mtp_layers)] if model.mtp_layers else []),
        head(model, execution),
        loss(model, execution),
    ]
    if execution.adapter_rank:
        layers = [_without_adapters(layer) if layer.kind in ("embedding", "head") else layer for layer in layers]
    return tuple(recomputed(layer, execution.recompute) for layer in layers)


def _without_adapters(layer: LayerWork) -> LayerWork:
    """Return an end of the model, which no adapter is beside, with frozen parameters."""
    return replace(layer, backward_weight=(), parameters=RankParameters(), frozen=layer.parameters)


def _decoder(model: ModelShape, execution: Execution) -> Iterator[LayerWork]:
    # Equal runs share one object, so that pricing can cache by identity.
    made: dict[tuple[LayerForm, int], LayerWork] = {}
    for form, run in groupby(model.forms):
        key = (form, len(list(run)))
        if key not in made:
            made[key] = replace(decoder_layer(model, execution, form), count=key[1])
        yield made[key]
