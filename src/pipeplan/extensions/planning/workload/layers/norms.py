"""Norms and residuals, with dropout: parts of a layer that read and write activations and compute almost nothing."""

from __future__ import annotations

from pipeplan.extensions.planning.workload.parameters import norm_size
from pipeplan.extensions.planning.workload.part import FULL, HALF, NUMBER_BYTES, Part, elementwise, joined, shard_tokens
from pipeplan.extensions.planning.workload.shape import ModelShape
from pipeplan.extensions.planning.workload.work import Execution, Kept, RankParameters


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
    """Return a norm: one kernel in F (read x, write y) and one in I (read x and the gradient, write its gradient).

    ``feeds`` means that a product reads y, which is then written in the product's format; 8 bits along rows and along
    columns.
    """
    small = NUMBER_BYTES[execution.precision]
    written = 2 * small if feeds and small < HALF else HALF
    # Eager PyTorch converts x to 32 bits, and multiplies the normed x by the weight: both products keep 32-bit operands.
    wide = () if execution.fused_norms or model.norm != "rms" else (f"{name} in 32 bits", f"{name} output in 32 bits")
    kept = Part(
        kept=(
            *((Kept(name=keeps, bytes=HALF * rows * width),) if keeps else ()),
            *(Kept(name=copy, bytes=FULL * rows * width) for copy in wide),
        ),
        parameters=RankParameters(dense=norm_size(model, width)),
    )
    return joined((elementwise(name, rows * width * (HALF + written), 3 * HALF * rows * width), kept))


def residual(name: str, model: ModelShape, execution: Execution) -> Part:
    """Return the addition of a branch's output to the residual stream, with its dropout and bias, in one kernel.

    A dropout mask takes a byte per number. Backward: the branch's gradient is added to the stream's; with dropout it is
    masked first.
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
