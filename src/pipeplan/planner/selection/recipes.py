"""Recipes: configurations that trainers and model reports published, from which the search starts.

The table (``recipes.json``) has degrees and savings, with their source. A recipe applies to a question if its degrees divide
the model and the cluster; the data-parallel degree fills the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from math import log2
from typing import Any

import msgspec

from pipeplan.errors import PipeplanError
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.selection.candidates import FRAME_FIELDS, SAVING_FIELDS, VARIANT_FIELDS, as_configuration
from pipeplan.planner.selection.legality import RULES, is_torchtitan
from pipeplan.planner.selection.request import PlanRequest
from pipeplan.workload import model

SCALES = (1, 2, 4, 0.5)
"""Factors on a recipe's pipeline degree: another number or size of GPUs needs more or fewer stages, and its tensor
parallelism, which the links inside a node decide, stays."""

NEAREST = 24
"""Maximum number of recipes, each with its scaled variants, that are estimated for a question."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Published configuration.

    Attributes
    ----------
    model, source
        Preset of the model, and where the configuration was published.
    sequence
        Tokens per sequence.
    tensor, pipeline, context, expert, expert_tensor, chunks, microbatch_size
        Degrees, chunks per rank, and sequences per microbatch.
    recompute
        Recomputed modules.
    sharded
        Whether parameters are fully sharded (FSDP).
    """

    model: str
    source: str
    sequence: int
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    expert_tensor: int = 1
    chunks: int = 1
    microbatch_size: int = 1
    recompute: tuple[str, ...] = ()
    sharded: bool = False


@cache
def recipes() -> tuple[Recipe, ...]:
    """Return the shipped table."""
    text = files("pipeplan.planner").joinpath("recipes.json").read_bytes()
    return msgspec.json.decode(text, type=tuple[Recipe, ...])


def of_practice(request: PlanRequest) -> Iterator[Configuration]:
    """Yield the configurations of the nearest recipes that are valid for a request, the nearest recipe first.

    Choices of a recipe are usual by definition, so rules of practice do not apply. Fixed fields replace a recipe's own.
    """
    yielded: set[Configuration] = set()
    for recipe in sorted(recipes(), key=lambda recipe: _distance(recipe, request))[:NEAREST]:
        for software in request.fixed.get("software") or FRAME_FIELDS["software"](request, {}):
            for scale in SCALES:
                configuration = _scaled(recipe, request, software, scale)
                if configuration is not None and configuration not in yielded:
                    yielded.add(configuration)
                    yield configuration


def _distance(recipe: Recipe, request: PlanRequest) -> float:
    """Return how unlike a question a recipe is: in kind of model, width, depth, and length of sequence."""
    shape, asked = model(recipe.model), request.model
    unlike = 0.0 if (shape.experts is None) == (asked.experts is None) else 8.0
    sizes = (
        (1.0, shape.hidden, asked.hidden),
        (1.0, shape.layers, asked.layers),
        (0.5, recipe.sequence, request.sequence),
    )
    return unlike + sum(weight * abs(log2(here / there)) for weight, here, there in sizes)


def _scaled(recipe: Recipe, request: PlanRequest, software: str, scale: float) -> Configuration | None:
    """Return a recipe with a scaled pipeline degree that fills the cluster; None if that is not valid."""
    pipeline = int(recipe.pipeline * scale)
    stages = recipe.pipeline * recipe.chunks
    if pipeline < 1 or (scale != 1 and stages % pipeline):
        return None
    draft: dict[str, Any] = {
        "software": software,
        "precision": FRAME_FIELDS["precision"](request, {})[0],
        "tensor": recipe.tensor,
        "context": recipe.context,
        "pipeline": pipeline,
        "expert": recipe.expert,
        "expert_tensor": recipe.expert_tensor,
        "zero": 1,
        "microbatch_size": recipe.microbatch_size,
        # The stages stay the same: fewer ranks have more chunks each.
        "chunks": 1 if pipeline == 1 else max(1, stages // pipeline),
        "in_flight": None,
        "group_size": None,
        "layers": None,
        "recompute": recipe.recompute,
        "offload": 0.0,
    }
    draft |= {field: values[0] for field, values in request.fixed.items() if draft.get(field) not in values}
    draft["sequence_parallel"] = request.fixed.get("sequence_parallel", (draft["tensor"] > 1,))[0]
    draft.setdefault("schedule", "interleaved-1f1b" if draft["chunks"] > 1 else "1f1b")
    group = draft["tensor"] * draft["context"] * draft["pipeline"]
    draft.setdefault("data", max(1, request.gpus // group))
    if (
        "zero" not in request.fixed
        and (recipe.sharded or is_torchtitan(draft))
        and draft["data"] * draft["context"] > 1
    ):
        draft["zero"] = 3
    draft.pop("trainer", None)
    draft = {field: draft[field] for field in (*FRAME_FIELDS, *SAVING_FIELDS, *VARIANT_FIELDS)}
    try:
        if all(rule.choice or rule.holds(request, draft) for rule in RULES):
            return as_configuration(request, draft)
    except (PipeplanError, ArithmeticError):
        return None
    return None
