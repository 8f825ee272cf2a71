"""Layers of each stage as a trainer builds them: from a layout, from uneven edges, or by an even split."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from math import ceil

from pipeplan.extensions.review.facts import NotSet, ReviewFacts, or_none
from pipeplan.foundation.errors import ShapeError
from pipeplan.trainers import uneven_layers

MTP_LAYERS, LOSS_LAYERS = 1.3, 0.3
"""Work of an MTP layer with its loss, and of the output layer, in transformer layers, where the model is unknown."""


def stages_of(c: ReviewFacts) -> tuple[str, ...]:
    """Return the letters of each stage (:mod:`pipeplan.extensions.review.layouts`) in the order of the model.

    Raises NotSet if the configuration does not say, or the trainer refuses the split.
    """
    if c.pp == 1:
        return (_with_ends((c.layers,), c.mtp)[0],)
    if "pytorch" in c.trainer.scopes:
        return _of_torch(c)
    if "megatron-core" not in c.trainer.scopes:
        raise NotSet("layout")
    if c.layout:
        return c.letters
    return _with_ends(_megatron_counts(c), c.mtp)


def layers_of_stages(c: ReviewFacts) -> tuple[int, ...]:
    """Return the number of transformer layers of each stage. Raises NotSet as :func:`stages_of`."""
    return tuple(stage.count("t") for stage in stages_of(c))


def _with_ends(counts: tuple[int, ...], mtp: int) -> tuple[str, ...]:
    stages = ["t" * count for count in counts]
    stages[0] = "E" + stages[0]
    stages[-1] += "m" * mtp + "L"
    return tuple(stages)


def chunks_of(c: ReviewFacts) -> int:
    """Return the chunks per rank; 1 if the configuration does not say."""
    return or_none(lambda: c.chunks) or 1


def _megatron_counts(c: ReviewFacts) -> tuple[int, ...]:
    """Return the layers of each stage, without those that MindSpeed leaves empty (``--noop-layers``)."""
    # MindSpeed ignores its list of layers beside empty ones.
    listed = () if c.get("noop_layers", None) else _numbers(c, "layer_list")
    counts = list(listed or _split_counts(c))
    starts = list(accumulate(counts))
    for layer in _numbers(c, "noop_layers"):
        if layer < starts[-1]:
            counts[bisect_right(starts, layer)] -= 1
    return tuple(counts)


def _numbers(c: ReviewFacts, name: str) -> tuple[int, ...]:
    """Return the numbers of a list of layers; empty if it is not set. Raises NotSet for other words."""
    words = c.get(name, None) or ()
    if not all(word.isdecimal() for word in words):
        raise NotSet(name)
    return tuple(map(int, words))


def _split_counts(c: ReviewFacts) -> tuple[int, ...]:
    try:
        counts = uneven_layers(
            c.layers,
            c.pp,
            chunks_of(c),
            c.get("first_stage_layers", None),
            c.get("last_stage_layers", None),
            embedding=bool(c.get("account_embedding", False)),
            loss=bool(c.get("account_loss", False)),
        )
    except ShapeError:
        raise NotSet("layout") from None
    return counts


def _of_torch(c: ReviewFacts) -> tuple[str, ...]:
    if c.get("modules_per_part", None):
        return c.part_letters
    weights = (c.get("first_stage_less", 1), c.get("last_stage_less", 1)) if c.trainer.name == "torchtitan" else (0, 0)
    counts = list(torch_counts(c.layers, torch_stages(c), weights))
    return _with_ends(tuple(counts), c.mtp)


def torch_stages(c: ReviewFacts) -> int:
    """Return the number of stages that torchtitan or AutoModel makes. Raises NotSet if unknown."""
    if not c.get("layers_per_stage", None):
        return int(c.pp * (2 if c.looped else 1))
    weights = c.get("first_stage_less", 1) + c.get("last_stage_less", 1) if c.trainer.name == "torchtitan" else 0
    stages = ceil((c.layers + weights) / c.layers_per_stage)
    left, rounded = stages % c.pp, str(c.get("round_stages", None) or "").lower()
    more = c.pp - left if rounded == "up" and left else -left if rounded == "down" else 0
    return int(stages + more)


def torch_counts(layers: int, stages: int, weights: tuple[int, int]) -> tuple[int, ...]:
    """Return torchtitan's layers of each stage: an even split of the layers and the weights of the model's ends.

    Raises NotSet if a stage would get less than nothing.
    """
    even, more = divmod(layers + sum(weights), stages)
    counts = [even + (stage < more) for stage in range(stages)]
    counts[0] -= weights[0]
    counts[-1] -= weights[1]
    if min(counts) < 0:
        raise NotSet("layout")
    return tuple(counts)


def balanced_counts(layers: int, stages: int, tail: float) -> tuple[int, ...]:
    """Return the layers of each stage so that the slowest stage has the least, with ``tail`` more layers' work on the last.

    Layers that are left over go to the stages before the last one, whose activations are held the shortest.
    """
    best = min(range(layers // stages + 1), key=lambda last: (_slowest(layers - last, stages - 1, last + tail), -last))
    rest, more = divmod(layers - best, stages - 1)
    counts = [rest + (stage >= stages - 1 - more) for stage in range(stages - 1)]
    return (*counts, best)


def _slowest(layers: int, stages: int, last: float) -> float:
    return max(-(-layers // stages), last)
