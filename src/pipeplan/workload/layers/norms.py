"""Norms, residuals and dropout: what reads and writes activations and computes next to nothing."""

from __future__ import annotations

from pipeplan.workload.execution import Execution
from pipeplan.workload.layers.part import HALF, NUMBER_BYTES, Part, elementwise, joined, shard_tokens
from pipeplan.workload.shape import ModelShape
from pipeplan.workload.work import Kept, RankParameters


def norm_parameters(model: ModelShape, width: float) -> int:
    """A weight for each number, and a bias of a LayerNorm that has one."""
    return round(width * (2 if model.norm == "layer" else 1))


def norm(
    name: str,
    model: ModelShape,
    execution: Execution,
    *,
    width: float,
    rows: float,
    keeps: str = "",
    feeds: bool = False,
) -> Part:
    """One kernel in F (reads x, writes y) and one in I (reads x and the gradient, writes x's, sums the weight's).

    ``feeds``: a product reads y, which is then written in the product's format; 8 bits along rows and along columns.
    """
    small = NUMBER_BYTES[execution.precision]
    written = 2 * small if feeds and small < HALF else HALF
    kept = Part(
        kept=(Kept(name=keeps, bytes=HALF * rows * width),) if keeps else (),
        parameters=RankParameters(dense=norm_parameters(model, width)),
    )
    return joined((elementwise(name, rows * width * (HALF + written), 3 * HALF * rows * width), kept))


def residual(name: str, model: ModelShape, execution: Execution) -> Part:
    """A branch's output (and its dropout and bias) is added to the stream in one kernel; its mask is kept, a byte each.

    Backward: the gradient of the branch is added to the stream's; with dropout it is masked first.
    """
    numbers = shard_tokens(execution) * model.hidden
    mask = numbers if execution.dropout else 0.0
    return joined(
        (
            elementwise(
                name,
                3 * HALF * numbers + mask,
                3 * HALF * numbers + (2 * HALF * numbers + mask if execution.dropout else 0.0),
                backward_kernels=2 if execution.dropout else 1,
            ),
            Part(kept=(Kept(name=f"{name} mask", bytes=mask),) if execution.dropout else ()),
        )
    )
