"""Recipes: configurations that trainers and model reports published, from which the search starts.

The table (``recipes.json``) has degrees and savings, with their source. A recipe applies to a question if its degrees divide
the model and the cluster; the data-parallel degree fills the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from math import gcd, log2
from typing import Any

import msgspec

from pipeplan.extensions.planning.choice.candidates import FRAME_FIELDS, SAVING_FIELDS, VARIANT_FIELDS, as_configuration
from pipeplan.extensions.planning.choice.legality import RULES, Rule, excludes, is_torchtitan
from pipeplan.extensions.planning.choice.request import PlanRequest
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import GIBIBYTE

SCALES = (1, 2, 4, 0.5)
"""Factors on a recipe's pipeline degree: another number or size of GPUs needs more or fewer stages, and its tensor
parallelism, which the links inside a node decide, stays."""

NEAREST = 24
"""Maximum number of recipes, each with its scaled variants, that are estimated for a question."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Published configuration: the model's size, the GPUs' memory, and degrees, chunks, savings and FSDP (``sharded``)."""

    model: str
    source: str
    layers: int
    hidden: int
    experts: int = 0
    memory_gib: float
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

    def is_for(self, request: PlanRequest) -> bool:
        """Return True if the recipe is for a model of the same size."""
        return (self.layers, self.hidden, self.experts) == _size(request)

    def has(self, rule: Rule) -> bool:
        """Return True if the recipe makes the choice that a rule of practice restricts."""
        return rule.choice == "chunks" or (rule.choice == "zero" and self.sharded)


@cache
def recipes() -> tuple[Recipe, ...]:
    """Return the shipped table."""
    text = files("pipeplan.extensions.planning").joinpath("recipes.json").read_bytes()
    return msgspec.json.decode(text, type=tuple[Recipe, ...])


def of_practice(request: PlanRequest) -> Iterator[tuple[Configuration, Recipe]]:
    """Yield the configurations of the nearest recipes that are valid for a request, the nearest recipe first.

    What was published for a model is usual for it, so rules of practice do not apply to these recipes, but to all others and
    to scaled ones. Fixed fields replace a recipe's own.
    """
    yielded: set[Configuration] = set()
    for recipe in sorted(recipes(), key=lambda recipe: _distance(recipe, request))[:NEAREST]:
        for software in request.fixed.get("software") or FRAME_FIELDS["software"](request, {}):
            for scale in SCALES:
                configuration = _scaled(recipe, request, software, scale)
                if configuration is not None and configuration not in yielded:
                    yielded.add(configuration)
                    yield configuration, recipe


def _size(request: PlanRequest) -> tuple[int, int, int]:
    shape = request.model
    return shape.layers, shape.hidden, 0 if shape.experts is None else shape.experts.count


def _distance(recipe: Recipe, request: PlanRequest) -> float:
    """Return how unlike a question a recipe is: in kind of model, width, depth, length of sequence, and memory."""
    layers, hidden, experts = _size(request)
    unlike = 0.0 if (recipe.experts > 0) == (experts > 0) else 8.0
    sizes = (
        (1.0, recipe.hidden, hidden),
        (1.0, recipe.layers, layers),
        (0.5, recipe.sequence, request.sequence),
        (0.5, recipe.memory_gib * GIBIBYTE, request.cluster.gpu.memory_bytes),
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
        "expert_tensor": recipe.expert_tensor,
        "zero": 1,
        "replicate": 1,
        # The stages stay the same: fewer ranks have more chunks each.
        "chunks": 1 if pipeline == 1 else max(1, stages // pipeline),
        "in_flight": None,
        "group_size": None,
        "layers": None,
        "recompute": recipe.recompute,
        "offload": 0.0,
    }
    draft |= {field: values[0] for field, values in request.fixed.items() if draft.get(field) not in values}
    draft.pop("trainer", None)
    draft["sequence_parallel"] = request.fixed.get("sequence_parallel", (draft["tensor"] > 1,))[0]
    draft.setdefault("schedule", "interleaved-1f1b" if draft["chunks"] > 1 else "1f1b")
    stage = draft["tensor"] * draft["context"] * draft["pipeline"]
    draft.setdefault("data", max(1, request.gpus // stage))
    # Smaller clusters and batches have fewer ranks for experts, and smaller microbatches.
    ranks = draft["tensor"] * draft["context"] * draft["data"]
    draft.setdefault("expert", gcd(recipe.expert, ranks // draft["expert_tensor"] or 1))
    draft.setdefault("microbatch_size", gcd(recipe.microbatch_size, request.global_batch // draft["data"] or 1))
    shards = draft["data"] * draft["context"] > 1
    if "zero" not in request.fixed and shards and (recipe.sharded or is_torchtitan(draft)):
        draft["zero"] = 3
    draft = {field: draft[field] for field in (*FRAME_FIELDS, *SAVING_FIELDS, *VARIANT_FIELDS)}
    published = scale == 1 and recipe.is_for(request)
    try:
        valid = all((published and recipe.has(rule)) or rule.admits(request, draft) for rule in RULES)
        if valid and not excludes(draft["schedule"], draft["recompute"]):
            return as_configuration(request, draft)
    except (PipeplanError, ArithmeticError):
        return None
    return None
