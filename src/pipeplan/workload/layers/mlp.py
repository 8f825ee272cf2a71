"""The dense feed-forward network, and the shared experts, which are one."""

from __future__ import annotations

from pipeplan.workload.execution import Execution
from pipeplan.workload.layers.part import (
    HALF,
    Part,
    elementwise,
    into_tensor,
    joined,
    kept_number,
    linear,
    out_of_tensor,
    shard_tokens,
)
from pipeplan.workload.shape import ModelShape
from pipeplan.workload.work import Kept


def activation(execution: Execution, numbers: float, *, gated: bool, name: str = "activation") -> Part:
    """SiLU times the gate, or GELU; fused it keeps its inputs only, else also what the gate is multiplied with.

    ``numbers``: of its output. F reads its inputs and writes its output, I reads both and the gradient and writes the
    inputs' gradients.
    """
    inputs = 2 if gated else 1
    forward, backward = (inputs + 1) * HALF * numbers, (2 * inputs + 1) * HALF * numbers
    number = kept_number(execution, execution.precision) if execution.small_activations else HALF
    kept = [Kept(name=f"{name} input", bytes=number * inputs * numbers)]
    kernels = 1
    if gated and not execution.fused_activation:
        kept.append(Kept(name=f"{name} of gate", bytes=HALF * numbers))
        forward, backward, kernels = forward + 2 * HALF * numbers, backward + 3 * HALF * numbers, 2
    part = elementwise(name, forward, backward, kernels=kernels)
    return joined((part, Part(kept=tuple(kept), transient_bytes=(inputs + 1) * HALF * numbers)))


def mlp(model: ModelShape, execution: Execution, *, width: float, prefix: str = "", keeps_input: bool = True) -> Part:
    """Up (gate and up in one product), activation and down, the width split over t.

    ``keeps_input`` is False where another part keeps the same input (shared experts beside routed ones).
    """
    n, t = execution.tokens, execution.tensor
    own = width / t
    columns = (2 if model.gated else 1) * own
    return joined(
        (
            into_tensor(f"{prefix}ffn", execution, model.hidden),
            linear(
                f"{prefix}gate and up" if model.gated else f"{prefix}up",
                execution,
                rows=n,
                inner=model.hidden,
                columns=columns,
                keeps=f"{prefix}ffn input" if keeps_input else "",
                kept_rows=shard_tokens(execution),
                fused_cast=True,
                bias=model.bias_all,
                modules=(own, own) if model.gated else (own,),
            ),
            activation(execution, n * own, gated=model.gated, name=f"{prefix}activation"),
            linear(
                f"{prefix}down",
                execution,
                rows=n,
                inner=own,
                columns=model.hidden,
                keeps=f"{prefix}activation output",
                bias=model.bias_all,
            ),
            out_of_tensor(f"{prefix}ffn", execution, model.hidden),
        )
    )
