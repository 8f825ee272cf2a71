"""Layout of a model's layers over pipeline stages, as the texts of trainers describe it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.model import counted, one_line, shortened

LONGEST = 1 << 20
"""Maximum length of the text of a layout, in characters."""

MOST_ENTRIES = 100_000
"""Maximum number of stages and layers of a layout together; the text of a few characters can describe billions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerLayout:
    """Transformer layers of each pipeline stage, in the order of the model, and where its further layers are.

    The first stage also has the embedding, the last one the final norm, the head and the loss.

    Attributes
    ----------
    layers
        Number of transformer layers of each stage.
    mtp_layers
        Number of layers of multi-token prediction.
    mtp_stage
        Stage of these layers; None: the last one, before the head.
    """

    layers: tuple[int, ...]
    mtp_layers: int = 0
    mtp_stage: int | None = None

    @property
    def stages(self) -> int:
        """Number of stages."""
        return len(self.layers)

    @property
    def mtp_of_stages(self) -> tuple[int, ...]:
        """Number of layers of multi-token prediction of each stage."""
        place = self.stages - 1 if self.mtp_stage is None else self.mtp_stage
        return tuple(self.mtp_layers if stage == place else 0 for stage in range(self.stages))


def without_mtp(layout: TrainerLayout, trainer: str) -> tuple[int, ...]:
    """Return the layers of each stage. Raises ShapeError for layers of multi-token prediction."""
    if layout.mtp_layers:
        raise ShapeError(
            f"{trainer} does not support the {counted(layout.mtp_layers, 'layer')} of multi-token prediction of this layout",
            field="layers",
        )
    return layout.layers


def layout_from(stages: Sequence[Sequence[str]], names: dict[str, str], fault: str) -> TrainerLayout:
    """Return the layout of stages that list their parts by name.

    Parameters
    ----------
    stages
        Names of the parts of each stage, in order.
    names
        Meaning of each name: ``embedding``, ``decoder``, ``mtp`` or ``loss``.
    fault
        Beginning of error messages.

    Raises
    ------
    InputError
        If a name is unknown, the embedding does not begin the first stage, the loss does not end the last one, layers of
        multi-token prediction are not after all others on one stage, or there is no layer.
    """
    unknown = next(
        ((stage, name) for stage, parts in enumerate(stages) for name in parts if name not in names),
        None,
    )
    if unknown is not None:
        stage, name = unknown
        raise InputError(
            f"{fault}: unknown part {one_line(name)} of stage {stage}, expected {', '.join(names)}", field="layers"
        )
    parts = [[names[name] for name in stage] for stage in stages]
    flat = [part for stage in parts for part in stage]
    if flat.count("embedding") != 1 or parts[0][:1] != ["embedding"]:
        raise InputError(f"{fault}: exactly one embedding must begin the first stage", field="layers")
    if flat.count("loss") != 1 or parts[-1][-1:] != ["loss"]:
        raise InputError(f"{fault}: exactly one loss must end the last stage", field="layers")
    layers = tuple(stage.count("decoder") for stage in parts)
    if not any(layers):
        raise InputError(f"{fault}: no stage has a transformer layer", field="layers")
    places = [stage for stage, held in enumerate(parts) if "mtp" in held]
    if not places:
        return TrainerLayout(layers=layers)
    first = flat.index("mtp")
    if len(places) > 1 or "decoder" in flat[first:]:
        raise InputError(
            f"{fault}: layers of multi-token prediction must be together on one stage, after all transformer layers",
            field="layers",
        )
    [place] = places
    return TrainerLayout(
        layers=layers, mtp_layers=flat.count("mtp"), mtp_stage=None if place == len(parts) - 1 else place
    )


def names_in(node: ast.expr, fault: str) -> list[list[str]]:
    """Return the lists of names of a Python expression in which ``+`` joins lists and ``*`` repeats them.

    Raises InputError, which begins with ``fault``, for any other expression; nothing is run.
    """
    try:
        value = _value(node)
        return msgspec.convert(value, list[list[str]])
    except RecursionError:
        reason = "too deeply nested"
    except msgspec.ValidationError:
        reason = "expected a list with a list of names for each stage"
    except ValueError as error:
        reason = str(error)
    raise InputError(f"{fault}: {reason}", field="layers")


def _value(node: ast.expr) -> list[object] | str | int:
    """Return the value of a list, a text, a count, or a sum or a multiple of lists. Raises ValueError for others."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        return _limited([_value(entry) for entry in node.elts])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Add) and isinstance(left, list) and isinstance(right, list):
            return _limited([*left, *right])
        if isinstance(left, int):
            left, right = right, left
        if isinstance(node.op, ast.Mult) and isinstance(left, list) and isinstance(right, int):
            if _size(left) * right > MOST_ENTRIES:
                raise ValueError(f"more than {MOST_ENTRIES:,} layers")
            return left * right
    raise ValueError(f"cannot read {one_line(shortened(ast.unparse(node), 60))}, expected lists of names, + and *")


def _size(value: list[object]) -> int:
    return sum(1 + len(entry) if isinstance(entry, list) else 1 for entry in value)


def _limited(value: list[object]) -> list[object]:
    if _size(value) > MOST_ENTRIES:
        raise ValueError(f"more than {MOST_ENTRIES:,} layers")
    return value


def python_of(text: str) -> ast.Module | None:
    """Return the syntax tree of a Python text; None if it is not Python."""
    try:
        return ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def expression_of(text: str) -> ast.expr | None:
    """Return the only expression of a Python text; None if it is anything else."""
    tree = python_of(text)
    if tree is None or len(tree.body) != 1:
        return None
    [statement] = tree.body
    return statement.value if isinstance(statement, ast.Expr) else None
