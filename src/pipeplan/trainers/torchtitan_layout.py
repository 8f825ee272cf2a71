"""Layouts as lists of module names, one list for each stage: torchtitan's and Automodel's ``module_fqns_per_model_part``."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from itertools import accumulate, pairwise

from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.model import one_line, shortened
from pipeplan.trainers.layout import TrainerLayout, expression_of, layout_from, names_in, without_mtp

_FIELD = "module_fqns_per_model_part"
_EXPECTED = "expected the modules of each stage, from tok_embeddings,layers.0 to norm,lm_head"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleNames:
    """Names of a model's modules: embedding, layers up to their number, final norm, head, and those of every stage."""

    embedding: str
    layer: str
    norm: str
    head: str
    everywhere: tuple[str, ...] = ()


TORCHTITAN = ModuleNames(embedding="tok_embeddings", layer="layers.", norm="norm", head="lm_head")
AUTOMODEL = ModuleNames(
    embedding="model.embed_tokens",
    layer="model.layers.",
    norm="model.norm",
    head="lm_head",
    everywhere=("model.rotary_emb",),
)
"""Names in Hugging Face's models."""

_LAYER = r"layers\.\d{1,9}"
_OLD_HEAD = "output"
"""Name of the head in torchtitan 0.2."""


def module_names(layers: tuple[int, ...], names: ModuleNames = TORCHTITAN) -> list[list[str]]:
    """Return the names of the modules of each stage, given its number of layers."""
    parts = [[f"{names.layer}{layer}" for layer in range(*span)] for span in pairwise(accumulate(layers, initial=0))]
    parts[0].insert(0, names.embedding)
    parts[-1] += [names.norm, names.head]
    return [[*part, *names.everywhere] for part in parts]


def write_layout(layout: TrainerLayout) -> str:
    """Return the value of ``module_fqns_per_model_part``: one word per stage with the names of its modules.

    Raises ShapeError for layers of multi-token prediction, and for an inner stage without layers.
    """
    layers = without_mtp(layout, "torchtitan")
    require_layers_inside(layers)
    return " ".join(",".join(part) for part in module_names(layers))


def require_layers_inside(layers: tuple[int, ...], trainer: str = "torchtitan") -> None:
    """Raise ShapeError if a stage other than the first and the last has no layers, and so no module at all."""
    empty = [stage for stage, count in enumerate(layers) if not count and 0 < stage < len(layers) - 1]
    if empty:
        raise ShapeError(
            f"{trainer} supports stages without layers only at the ends, which have the embedding and the head; stage "
            f"{empty[0]} has none",
            field="layers_per_stage",
        )


def read_layout(text: str) -> TrainerLayout:
    """Return the layout of one word per stage, of a list of lists, or of a text that sets ``module_fqns_per_model_part``.

    Raises
    ------
    InputError
        If a module is missing, repeated, unknown or out of order.
    """
    fault = f"invalid torchtitan layout {one_line(shortened(text.strip(), 60))}"
    parts = _parts(_value_of_field(text).strip(), fault)
    numbers = [int(name.rpartition(".")[2]) for part in parts for name in part if re.fullmatch(_LAYER, name)]
    if numbers != list(range(len(numbers))):
        wrong = next(place for place, number in enumerate(numbers) if number != place)
        raise InputError(
            f"{fault}: layers must be numbered in the order of the stages, but layers.{numbers[wrong]} is in the place of "
            f"layers.{wrong}",
            field="layers",
        )
    if not parts or parts[-1][-2:-1] != [TORCHTITAN.norm] or sum(part.count(TORCHTITAN.norm) for part in parts) > 1:
        raise InputError(f"{fault}: {_EXPECTED}", field="layers")
    parts[-1].pop(-2)
    names = {"tok_embeddings": "embedding", "lm_head": "loss", _OLD_HEAD: "loss"}
    plain = [["layers.*" if re.fullmatch(_LAYER, name) else name for name in part] for part in parts]
    return layout_from(plain, {**names, "layers.*": "decoder"}, fault)


def _value_of_field(text: str) -> str:
    """Return the value of the field in a text that sets it: a list, or the words up to the next flag or line."""
    match = re.search(rf"{_FIELD}[\"']?\s*[=:]?\s*", text)
    if match is None:
        return text
    value = text[match.end() :]
    if not value.startswith("["):
        return re.split(r"\s--|\)", value)[0].replace("\\\n", " ").partition("\n")[0]
    depth = 0
    for place, character in enumerate(value):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if depth == 0:
            return value[: place + 1]
    return value


def _parts(text: str, fault: str) -> list[list[str]]:
    expression = expression_of(text) if text.startswith("[") else None
    if isinstance(expression, ast.List | ast.BinOp):
        return names_in(expression, fault)
    if "layers." not in text:
        raise InputError(f"{fault}: {_EXPECTED}", field="layers")
    return [word.strip("'\"").split(",") for word in text.split()]
