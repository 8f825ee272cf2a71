"""Which layers of a model make up each stage."""

from __future__ import annotations

from pipeplan.costs import Layout, balanced, bounds_of
from pipeplan.errors import InputError
from pipeplan.runtime.model import Model


def cut(model: Model, stages: int, layout: Layout | None = None) -> tuple[tuple[int, int], ...]:
    """First layer, and one past the last, of every stage.

    Parameters
    ----------
    model
        Whose layers are cut.
    stages
        S.
    layout
        How many layers each stage has; None cuts so that the slowest stage is as fast as can be, by the model's weights.

    Raises
    ------
    InputError
        If the layout does not add up to the model, has an empty stage, or there are more stages than layers.
    """
    if layout is None:
        layout = balanced(model.weights or (1.0,) * len(model.layers), stages)
    if len(layout) != stages:
        raise InputError(f"a layout of {len(layout)} stages does not fit {stages} stages")
    return bounds_of(layout, len(model.layers), of=model.name)
