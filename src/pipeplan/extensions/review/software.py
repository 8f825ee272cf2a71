"""Software of a reviewed configuration: its trainer's row in the planner's table, with what the settings change in it."""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.extensions.planning import software_with, usual_software
from pipeplan.extensions.planning.hardware import Gpu
from pipeplan.extensions.review.facts import ReviewFacts

_OF_CORE = (
    ("grad_reduce_in_bf16", "16-bit-gradients", "32-bit-gradients"),
    ("overlap_grad_reduce", "hidden-data", "exposed-data"),
    ("overlap_param_gather", "hidden-parameters", "exposed-parameters"),
    ("tp_comm_overlap", "hidden-tensor", "exposed-tensor"),
    ("loss_fusion", "fused-loss", "unfused-loss"),
    ("fp8_param_gather", "8-bit-parameters", "16-bit-parameters"),
    ("gradient_accumulation_fusion", "gradients-added-in-products", "gradients-added-apart"),
)
"""Settings of Megatron-core with the trait of the software if they are on, and if they are off."""

_OF_PYTORCH = (("async_tp", "hidden-tensor", "exposed-tensor"),)
"""The same of torchtitan."""

_OVERLAPS = ("overlap_grad_reduce", "overlap_param_gather", "tp_comm_overlap")
"""Settings of Megatron-core that hide communication."""

_DISPATCHERS = {"flex": "tokens-by-rank", "alltoall": "tokens-by-expert"}
_CONTEXT_METHODS = {"p2p": "ring-attention", "a2a": "all-to-all-attention"}
_MOMENTS = {"bf16": "16-bit-moments", "fp16": "16-bit-moments", "fp8": "8-bit-moments"}


def software_of(c: ReviewFacts, gpu: Gpu) -> str:
    """Return the name of a configuration's software; what it does not say is as in its trainer's row on this GPU."""
    return software_with(usual_software(_row(c), gpu), _traits(c))


def _row(c: ReviewFacts) -> str:
    row = c.trainer.software
    if c.trainer.name == "torchtitan" and c.get("compile", None) is False:
        return "torchtitan-eager"
    # Without a flag of overlap, runs are those of the row without any, which wait after each message.
    if row == "megatron-core" and c.has(*_OVERLAPS) and not any(c.get(name) for name in _OVERLAPS):
        return "megatron-core-plain"
    return row


def _traits(c: ReviewFacts) -> Iterator[str]:
    """Yield the traits that the settings of a configuration state."""
    core = "megatron-core" in c.trainer.scopes
    for setting, on, off in _OF_CORE if core else _OF_PYTORCH:
        # Megatron FSDP excludes the fusion, and its estimates are of runs without it.
        implied = setting == "gradient_accumulation_fusion" and c.get("megatron_fsdp", False)
        if c.has(setting) and not implied:
            yield on if c.get(setting) else off
    if not core:
        return
    if c.get("fp16", False) and c.get("fp32_gradients", None) is False:
        # Gradients have the format of the parameters unless the flag says otherwise; with bf16 it is implied.
        yield "16-bit-gradients"
    if c.get("ep_a2a_overlap", False):
        yield "delayed-weights" if c.get("delay_wgrad", False) else "weights-at-once"
    if c.has("attention_dropout", "hidden_dropout"):
        yield "dropout" if c.attention_dropout or c.hidden_dropout else "no-dropout"
    if c.get("dispatcher", None) in _DISPATCHERS:
        yield _DISPATCHERS[c.dispatcher]
    for method in c.get("cp_comm_type", None) or ("p2p",):
        if method in _CONTEXT_METHODS:
            yield _CONTEXT_METHODS[method]
    if c.get("precision_aware_optimizer", False) and c.get("exp_avg_dtype", None) in _MOMENTS:
        yield _MOMENTS[c.exp_avg_dtype]
