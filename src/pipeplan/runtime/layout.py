"""Which layers make up each stage."""

from __future__ import annotations

from itertools import accumulate, pairwise

from pipeplan.errors import InputError
from pipeplan.runtime.models import Model


def cut(model: Model, stages: int, layout: tuple[int, ...] | None = None) -> tuple[tuple[int, int], ...]:
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
    counts = balanced(model.weights or (1.0,) * len(model.layers), stages) if layout is None else layout
    if len(counts) != stages or sum(counts) != len(model.layers) or min(counts) < 1:
        raise InputError(
            f"a layout for {stages} stages gives each at least one of the {len(model.layers)} layers of {model.name}, "
            f"and all of them together; {'+'.join(map(str, counts))} = {sum(counts)} over {len(counts)} does not"
        )
    return tuple(pairwise(accumulate(counts, initial=0)))


def balanced(weights: tuple[float, ...], stages: int) -> tuple[int, ...]:
    """How many layers each stage gets so that the heaviest stage is as light as can be.

    Where that leaves a choice, the squares of the stages' weights add up to the least.

    Raises
    ------
    InputError
        For more stages than layers.
    """
    if stages > len(weights):
        raise InputError(f"{len(weights)} layers cannot make {stages} stages; each stage needs a layer")
    before = list(accumulate(weights, initial=0.0))
    # best[n]: for the first n layers, (heaviest stage, sum of squares, counts) over the stages so far.
    best: dict[int, tuple[float, float, tuple[int, ...]]] = {0: (0.0, 0.0, ())}
    for _ in range(stages):
        best = {
            stop: min(
                (max(heaviest, weight), squares + weight**2, (*counts, stop - first))
                for first, (heaviest, squares, counts) in best.items()
                if first < stop
                for weight in (before[stop] - before[first],)
            )
            for stop in range(min(best) + 1, len(weights) + 1)
        }
    return best[len(weights)][2]
