"""What a trainer's framework holds in memory, by its software: formats of state, copies of logits, workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from pipeplan.planner.estimates.software import software
from pipeplan.workload import Precision

Unit = Literal["layer", "module"]
"""What is gathered at once of sharded parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    """One trainer's.

    Attributes
    ----------
    gradient_bytes
        Of an accumulated gradient.
    masters
        Where 32-bit parameters are: ``beside`` 16-bit ones, or ``only`` these.
    loss_bytes
        Of all copies of a logit where the loss holds most; None: as its kernels say (:class:`Execution`).
    placeholders
        Whether a 16-bit tensor of each shape of weights stands for gradients that were added in place.
    small_inputs
        Whether 8- and 4-bit products keep their inputs so, not in 16 bits.
    small_weights
        Where 8-bit copies of layers' weights, along rows and along columns, stand for a whole step: ``beside`` the 16-bit
        ones, or ``instead`` of them; 4-bit ones stand beside them always. None: nowhere.
    gathers
        What is gathered at once of sharded parameters: a ``layer`` and the next one, or a ``module`` (one product's weights)
        and the next one.
    small_activations
        Whether what the activation of an FFN reads is kept in 8 bits where products are.
    score_buffer
        Whether one buffer of a layer's scores, in 16 bits, stays for unfused attention to write its product to.
    workspace, grouped_workspace
        Of libraries of products; bytes; and what grouped ones take besides, on streams of their own.
    source
        Where this is from.
    """

    gradient_bytes: float = 4
    masters: Literal["beside", "only"] = "beside"
    loss_bytes: float | None = None
    placeholders: bool = False
    small_inputs: bool = True
    small_weights: Literal["beside", "instead"] | None = None
    gathers: Unit = "layer"
    small_activations: bool = False
    score_buffer: bool = False
    workspace: float = 0.0
    grouped_workspace: float = 0.0
    source: str = ""

    def copy_bytes(self, precision: Precision) -> float:
        """Of a parameter of a layer, in the format that its products read, beside the 16-bit one."""
        along = {"fp8": 1.0, "mxfp8": 1 + 1 / 32, "nvfp4": 1 / 2 + 1 / 16}
        if self.small_weights is None or precision not in along:
            return 0.0
        replaced = 2.0 if self.small_weights == "instead" and precision != "nvfp4" else 0.0
        return 2 * along[precision] - replaced


_WORKSPACE = 32 * 2**20
"""Bytes that PyTorch, and Transformer Engine again, hold for cuBLAS from Hopper on."""

_TRANSFORMER_ENGINE = MemoryRules(
    placeholders=True,
    small_weights="beside",
    workspace=2 * _WORKSPACE,
    grouped_workspace=4 * _WORKSPACE,
    source="Megatron-LM: 32-bit gradients in one buffer; Transformer Engine from 2.3 on (get_dummy_wgrad, get_workspace, "
    "get_multi_stream_cublas_workspace)",
)
_EIGHT_BIT_PARAMETERS = replace(
    _TRANSFORMER_ENGINE,
    small_weights="instead",
    source="NVIDIA-NeMo/Megatron-Bridge training/mixed_precision.py: fp8_param_gather in its 8-bit recipes",
)
_FSDP2 = MemoryRules(
    masters="only",
    loss_bytes=4,
    small_inputs=False,
    workspace=_WORKSPACE,
    source="pytorch/torchtitan: parameters and state in 32 bits, sharded; the compiled loss reads 16-bit logits and writes "
    "their gradient in 16 bits",
)
_EAGER_LOSS = 14
"""Bytes of a logit in PyTorch's cross entropy of ``logits.float()``: logarithms of probabilities and two gradients, 12; the
16-bit logits are free by then, but what they leave is too small for a gradient."""

_MEGATRON_2021 = MemoryRules(
    loss_bytes=10,
    score_buffer=True,
    source="Megatron-LM before 2023: logits in 16 bits, in 32, and less their maximum in 32; the global memory buffer that "
    "CoreAttention's first product takes",
)
_EAGER_FSDP = replace(_FSDP2, loss_bytes=_EAGER_LOSS)

RULES: Mapping[str, MemoryRules] = MappingProxyType(
    {
        "": _TRANSFORMER_ENGINE,
        "megatron-lm-2021": _MEGATRON_2021,
        "zero-bubble": _MEGATRON_2021,
        "megatron-deepspeed": _MEGATRON_2021,
        "deepspeed": replace(
            _MEGATRON_2021,
            gathers="module",
            source="DeepSpeed ZeRO-3: parameters are gathered, and gradients reduced, module by module (arXiv 1910.02054)",
        ),
        "megascale": _MEGATRON_2021,
        "megatron-bridge": _EIGHT_BIT_PARAMETERS,
        "nemo": _EIGHT_BIT_PARAMETERS,
        "torchtitan": _FSDP2,
        "torchtitan-eager": _EAGER_FSDP,
        "torchtitan-2024": _EAGER_FSDP,
        "llm-foundry": replace(
            _FSDP2,
            source="mosaicml/llm-foundry: PyTorch's FSDP; its loss is by default flash-attn's fused cross entropy",
        ),
        "hai-llm": replace(
            _TRANSFORMER_ENGINE,
            small_weights="instead",
            small_activations=True,
            source="arXiv 2412.19437 section 3.3: inputs of SwiGLU are cached in FP8, its output is computed again",
        ),
        "primus": replace(_TRANSFORMER_ENGINE, gradient_bytes=2, source="AMD-AGI/Primus: 16-bit gradients by default"),
    }
)
"""By how a trainer's name begins, the longest that fits: releases and variants hold what their trainer does."""


def memory_rules(name: str) -> MemoryRules:
    """Of the trainer of this name.

    Raises
    ------
    UnknownNameError
        For software that nobody knows.
    """
    known = software(name).name
    return RULES[max((begin for begin in RULES if known.startswith(begin)), key=len)]
