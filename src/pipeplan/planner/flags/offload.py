"""Which modules' inputs Megatron-LM moves to the host so that it is about a share of what a layer keeps."""

from __future__ import annotations

from pipeplan.workload import ModelShape

ATTENTION = ("attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm")
EXPERTS = ("expert_fc1", "moe_act")
"""The modules that Megatron-core 0.16 moves the inputs of; the second ones are those of experts."""


def offload_modules(model: ModelShape, share: float) -> tuple[str, ...]:
    """Modules whose inputs come to at least the share of what a layer keeps, the largest first; all where none do.

    Bytes are those of a fused attention's inputs and of the products' inputs, in 16 bits, without tensor parallelism, which
    divides all of them alike.
    """
    inputs = _inputs(model)
    whole = sum(inputs.values()) + _stays(model)
    chosen: list[str] = []
    for module in sorted(inputs, key=lambda module: -inputs[module]):
        if sum(inputs[each] for each in chosen) >= share * whole:
            break
        chosen.append(module)
    if "attn_proj" in chosen and "core_attn" not in chosen:
        # It is the output of the core, whose backward needs it: Megatron takes the one only with the other.
        chosen.append("core_attn")
    return tuple(module for module in (*ATTENTION, *EXPERTS) if module in chosen)


def _inputs(model: ModelShape) -> dict[str, float]:
    """Bytes a token of each module's input."""
    core = 2.0 * (model.heads * model.score_dim + model.key_width + model.key_heads * model.value_dim)
    found = {
        "attn_norm": 2.0 * model.hidden,
        "qkv_linear": 2.0 * model.hidden,
        "core_attn": core,
        "attn_proj": 2.0 * model.value_width,
        "mlp_norm": 2.0 * model.hidden,
    }
    if model.experts is not None:
        found["expert_fc1"] = 2.0 * model.hidden * model.experts.top_k
        found["moe_act"] = 2.0 * (model.ffn_matrices - 1) * model.experts.width * model.experts.top_k
    return found


def _stays(model: ModelShape) -> float:
    """Bytes a token of what has no module to move it: the dense FFN's tensors, the experts' last inputs."""
    if model.experts is not None:
        return 2.0 * (model.experts.width * model.experts.top_k + model.ffn_matrices * model.experts.shared_width)
    return 2.0 * (model.hidden + model.ffn_matrices * (model.ffn or 0))
