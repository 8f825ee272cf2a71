"""Whether degrees divide a model: what each splits must split evenly."""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.errors import ShapeError
from pipeplan.workload.execution import Execution
from pipeplan.workload.shape import ModelShape


def check_division(model: ModelShape, execution: Execution) -> None:
    """Refuse degrees that do not divide what they split.

    Raises
    ------
    ShapeError
        With the degree, and the nearest smaller one that divides.
    """
    for field, degree, what, size in _splits(model, execution):
        if degree < 1:
            raise ShapeError(f"the {field.replace('_', '-')} degree must be at least 1, not {degree}", field=field)
        if size % degree:
            nearest = next(each for each in range(degree, 0, -1) if size % each == 0)
            raise ShapeError(
                f"the {field.replace('_', '-')} degree {degree} does not divide {size:,} {what} of {model.name}; "
                f"{nearest} does",
                field=field,
            )


def _splits(model: ModelShape, execution: Execution) -> Iterator[tuple[str, int, str, int]]:
    """The setting, the degree, what it splits, and how much there is of it."""
    tensor, experts = execution.tensor, model.experts
    yield "tensor", tensor, "heads", model.heads
    if model.latent is None and tensor <= model.key_heads:
        yield "tensor", tensor, "key-value heads", model.key_heads
    if model.dense_layers and model.ffn:
        yield "tensor", tensor, "columns of the FFN", model.ffn
    yield "context", execution.context, "tokens of a sequence", execution.sequence
    if experts is not None:
        yield "expert", execution.expert, "experts", experts.count
        yield "expert_tensor", execution.expert_tensor, "columns of an expert", experts.width
        if experts.shared_width:
            yield "tensor", tensor, "columns of the shared experts", experts.shared_width
    elif execution.expert > 1:
        yield "expert", execution.expert, "expert (it has no experts)", 1
