"""Balanced splits of a model's layers over stages, and layouts that the planner finds, as settings of a trainer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeplan.extensions.review.estimating import estimated, with_last_layer
from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.layouts import written_layout
from pipeplan.extensions.review.stages import LOSS_LAYERS, MTP_LAYERS, balanced_counts, chunks_of, layers_of_stages
from pipeplan.trainers import AUTOMODEL, TORCHTITAN, ModuleNames, module_names

_ALONE = {
    "layout": None,
    "first_stage_layers": None,
    "last_stage_layers": None,
    "account_embedding": False,
    "account_loss": False,
    "layers_per_virtual_stage": None,
}
"""Settings of a split, of which Megatron takes one kind at a time."""


def without_others(c: ReviewFacts, changes: dict[str, Any]) -> dict[str, Any]:
    """Return changes to a split together with the removal of the other kinds of split that the configuration sets."""
    removed = {name: value for name, value in _ALONE.items() if c.get(name, None) and name not in changes}
    return {**removed, **changes}


def _tail_of(c: ReviewFacts) -> float:
    """Return the work of the MTP layers and the loss in transformer layers, by a rule of thumb."""
    return MTP_LAYERS * c.mtp + LOSS_LAYERS


def balanced_edges(c: ReviewFacts) -> Iterator[dict[str, Any]]:
    """Yield layers of the first and last stage for which the rest divides, the best balanced first."""
    layers, pp, chunks = c.layers, c.pp, chunks_of(c)
    if pp < 2 or "megatron-core" not in c.trainer.scopes or c.get("layout", None):
        return
    tail = _tail_of(c)
    splits = []
    for last in range(chunks, layers // pp + chunks + 1, chunks):
        if pp == 2:
            splits.append((layers - last, 0, last))
            continue
        for first in range(chunks, layers // pp + 2 * chunks + 1, chunks):
            middle, left = divmod(layers - first - last, pp - 2)
            if left == 0 and middle > 0 and middle % chunks == 0:
                splits.append((first, middle, last))
    if pp == 2:
        splits = [split for split in splits if split[0] % chunks == 0 and split[0] > 0]
    splits.sort(key=lambda split: (max(split[0], split[1], split[2] + tail), abs(split[0] - split[1]), -split[2]))
    for first, _, last in splits[:3]:
        yield without_others(c, {"first_stage_layers": first, "last_stage_layers": last})


def balanced_layout(c: ReviewFacts) -> Iterator[dict[str, Any]]:
    """Yield a layout string that balances the stages, for the chunks that are set and then for one chunk per rank."""
    if "megatron-core" not in c.trainer.scopes or c.pp < 2:
        return
    for chunks in dict.fromkeys((chunks_of(c), 1)):
        stages = c.pp * chunks
        if c.layers >= stages:
            yield _layout_changes(c, balanced_counts(c.layers, stages, _tail_of(c)), chunks)


def _layout_changes(c: ReviewFacts, counts: tuple[int, ...], chunks: int) -> dict[str, Any]:
    letters = ["t" * count for count in counts]
    letters[0] = "E" + letters[0]
    letters[-1] += "m" * c.mtp + "L"
    # Megatron-LM's parser takes the chunks from the layout alone; the field of a configuration must agree with it.
    implied = "megatron-lm" in c.trainer.scopes and c.trainer.name != "primus"
    wanted = None if chunks == 1 or implied else chunks
    vpp = {} if (c.get("vpp", None) or 1) == (wanted or 1) else {"vpp": wanted}
    return without_others(c, {"layout": written_layout(letters), **vpp})


def balanced_parts(c: ReviewFacts) -> Iterator[dict[str, Any]]:
    """Yield torchtitan's list of modules for as many stages as the schedule has, balanced."""
    stages = c.pp * (2 if c.looped else 1)
    yield _parts(balanced_counts(c.layers, stages, 1.0), TORCHTITAN)


def _parts(counts: tuple[int, ...], names: ModuleNames) -> dict[str, Any]:
    return {"modules_per_part": tuple(map(tuple, module_names(counts, names)))}


def planned_layouts(c: ReviewFacts) -> Iterator[dict[str, Any]]:
    """Yield splits as good as the best layout that the planner finds, the smallest change first.

    Raises NotSet if the configuration cannot be estimated.
    """
    best = estimated(c).best
    if best is None or best.layout == layers_of_stages(c):
        return
    counts = with_last_layer(best.layout) if c.trainer.name == "ms-swift" else best.layout
    chunks = len(counts) // c.pp
    if "megatron-core" in c.trainer.scopes:
        if chunks == 1:
            yield from _edges_like(c, counts)
        yield _layout_changes(c, counts, chunks)
    elif c.trainer.name == "torchtitan":
        yield from _less_layers_like(c, counts)
        yield _parts(counts, TORCHTITAN)
    elif c.trainer.name == "nemo-automodel" and not c.get("vision", False):
        yield _parts(counts, AUTOMODEL)


def _edges_like(c: ReviewFacts, counts: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield uneven edges with the same slowest stage as a layout, if the rest divides."""
    if c.pp == 2 and (c.get("layout", None) is None):
        yield without_others(c, {"first_stage_layers": counts[0], "last_stage_layers": counts[-1]})
    elif c.pp > 2 and c.get("layout", None) is None:
        middle = max(counts[1:-1])
        for last in dict.fromkeys((counts[-1], counts[-1] - 1, counts[-1] + 1)):
            first = c.layers - last - middle * (c.pp - 2)
            if 0 < first <= middle + 1 and last > 0:
                yield without_others(c, {"first_stage_layers": first, "last_stage_layers": last})


def _less_layers_like(c: ReviewFacts, counts: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield torchtitan's weights of the first and last stage that come near a layout."""
    if c.get("modules_per_part", None):
        return
    most = max(counts)
    first, last = most - counts[0], most - counts[-1]
    yield {"first_stage_less": max(first, 0), "last_stage_less": max(last, 0)}
