"""Memory rules of trainers: what their frameworks keep, in which formats, and what their logs report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from pipeplan.extensions.planning.estimates.properties import SEPARATOR, TRAITS
from pipeplan.extensions.planning.estimates.software import software
from pipeplan.extensions.planning.fitting import RESERVED
from pipeplan.extensions.planning.workload import Masters, Precision

Unit = Literal["layer", "module"]
"""Unit in which sharded parameters are gathered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    """Memory behavior of a trainer's framework.

    Attributes
    ----------
    gradient_bytes
        Bytes of one accumulated gradient.
    moment_bytes
        Bytes of each of Adam's two moments, if the 32-bit parameters are ``beside`` the 16-bit ones.
    masters
        32-bit parameters: ``beside`` the 16-bit ones, ``only`` 32-bit ones, or ``none``.
    keeps_ends
        Whether both ends of the model stay gathered from F to the end of the backward if parameters are sharded.
    whole_embedding
        Whether every rank of a tensor group holds the whole embedding.
    whole_logits
        Whether the loss gathers the logits of the whole vocabulary over a tensor group.
    loss_bytes, split_loss_bytes
        Peak bytes per logit over all copies in the loss, and the same if the vocabulary is split over a tensor group (None:
        no difference). None: as its kernels say (:class:`Execution`).
    expert_loss_bytes
        The same with expert parallelism; None: no difference.
    keeps_messages
        Whether each microbatch of a pipeline has receive buffers of its own, for the whole step.
    keeps_outputs
        Whether the last stage of a pipeline holds the 16-bit logits of every microbatch until the step ends.
    reserved
        Fraction by which the memory that the framework reserves, and that its trainer reports as its peak, exceeds what is
        allocated; 0 for trainers that report what is allocated.
    placeholders
        Whether a 16-bit dummy tensor of each weight shape replaces gradients that were accumulated in place.
    small_inputs
        Whether 8- and 4-bit products keep their inputs in that format instead of in 16 bits.
    small_weights
        8-bit copies of the layers' weights, along rows and columns, that persist for a whole step: ``beside`` the 16-bit
        ones or ``instead`` of them; 4-bit copies are always kept in addition to them. None: no copies.
    gathers
        Unit of gathering for sharded parameters: a ``layer`` and the next one, or a ``module`` (weights of one product) and
        the next one.
    small_activations
        Whether the inputs of the FFN's activation function are kept in 8 bits if the products are.
    score_buffer
        Whether unfused attention keeps one 16-bit buffer of a layer's scores for its product.
    workspace, grouped_workspace
        Bytes of library workspaces for products, and additional ones for grouped products, which run on streams of their
        own.
    """

    gradient_bytes: float = 4
    moment_bytes: float = 4
    masters: Masters = "beside"
    keeps_ends: bool = True
    whole_embedding: bool = False
    whole_logits: bool = False
    loss_bytes: float | None = None
    split_loss_bytes: float | None = None
    expert_loss_bytes: float | None = None
    keeps_messages: bool = False
    keeps_outputs: bool = False
    reserved: float = 0.0
    placeholders: bool = False
    small_inputs: bool = True
    small_weights: Literal["beside", "instead"] | None = None
    gathers: Unit = "layer"
    small_activations: bool = False
    score_buffer: bool = False
    workspace: float = 0.0
    grouped_workspace: float = 0.0
    source: str = ""

    def logit_bytes(self, tensor: int, expert: int = 1) -> float | None:
        """Return the peak bytes per logit of a rank in the loss with tensor and expert degrees; None: as its kernels say."""
        size = self.loss_bytes
        if tensor > 1 and self.split_loss_bytes is not None:
            size = self.split_loss_bytes
        if expert > 1 and self.expert_loss_bytes is not None:
            size = self.expert_loss_bytes
        return size if size is None or not self.whole_logits else size * tensor

    def copy_bytes(self, precision: Precision) -> float:
        """Return the bytes per layer parameter of the low-precision copy that products read, beyond the 16-bit parameter."""
        # Bytes per number of one copy; block formats add a scale per 32 (MXFP8) or 16 (NVFP4) numbers.
        along = {"fp8": 1.0, "mxfp8": 1 + 1 / 32, "nvfp4": 1 / 2 + 1 / 16}
        if self.small_weights is None or precision not in along:
            return 0.0
        # Two copies, along rows and along columns; ``instead`` saves the 16-bit parameter.
        replaced = 2.0 if self.small_weights == "instead" and precision != "nvfp4" else 0.0
        return 2 * along[precision] - replaced


_WORKSPACE = 32 * 2**20
"""Bytes of cuBLAS workspace that PyTorch allocates from Hopper on, and Transformer Engine again."""

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
    keeps_messages=True,
    loss_bytes=4,
    small_inputs=False,
    workspace=_WORKSPACE,
    source="pytorch/torchtitan: parameters and state in 32 bits, sharded; the compiled loss reads 16-bit logits and writes "
    "their gradient in 16 bits; components/metrics.py prints max_reserved; until October 2025 a pipeline kept its outputs. "
    "torch.distributed.pipelining: stage.py makes args_recv_info and grad_recv_info for every microbatch",
)
_EAGER_LOSS = 14
"""Bytes per logit in PyTorch's cross entropy of ``logits.float()``: 12 for log-probabilities and two gradients, 2 for the
16-bit logits, which are free by then but leave too small a block for a gradient."""

_EAGER_SPLIT_LOSS = 18
"""The same if the logits are a DTensor: the backward in ``torch.distributed.tensor.parallel.loss`` holds log-probabilities,
the gradient of the likelihood, its sum with the probabilities, and the scaled sum: 16 bytes, and 2 for the 16-bit logits."""

_MEGATRON_2021 = MemoryRules(
    loss_bytes=10,
    score_buffer=True,
    source="Megatron-LM before 2023: logits in 16 bits, in 32, and less their maximum in 32; the global memory buffer that "
    "CoreAttention's first product takes",
)
_TORCHTITAN = replace(_FSDP2, reserved=RESERVED)
_TORCHTITAN_2024 = replace(_TORCHTITAN, loss_bytes=_EAGER_LOSS, split_loss_bytes=_EAGER_SPLIT_LOSS, keeps_outputs=True)

RULES: Mapping[str, MemoryRules] = MappingProxyType(
    {
        "": _TRANSFORMER_ENGINE,
        **dict.fromkeys(("megatron-lm-2021", "zero-bubble", "megatron-deepspeed", "megascale"), _MEGATRON_2021),
        "deepspeed": replace(
            _MEGATRON_2021,
            gathers="module",
            source="DeepSpeed ZeRO-3: parameters are gathered, and gradients reduced, module by module (arXiv 1910.02054)",
        ),
        "megatron-bridge": replace(
            _EIGHT_BIT_PARAMETERS,
            gradient_bytes=2,
            source=f"{_EIGHT_BIT_PARAMETERS.source}; grad_reduce_in_fp32 is off in scripts/performance",
        ),
        "nemo": _EIGHT_BIT_PARAMETERS,
        "torchtitan": _TORCHTITAN,
        **dict.fromkeys(("torchtitan-eager", "torchtitan-2024"), _TORCHTITAN_2024),
        "llm-foundry": replace(
            _FSDP2,
            source="mosaicml/llm-foundry: PyTorch's FSDP; its loss is by default flash-attn's fused cross entropy",
        ),
        "automodel": replace(
            _FSDP2,
            masters="none",
            gradient_bytes=2,
            keeps_messages=False,
            whole_logits=True,
            loss_bytes=_EAGER_LOSS,
            expert_loss_bytes=8,
            source="NVIDIA-NeMo/Automodel examples/llm_benchmark: FSDP2 with models, gradients and Adam in 16 bits; "
            "components/loss/masked_ce.py: full_tensor(), and fp32_upcast, which is off with experts; a pipeline runs a few "
            "microbatches at a time; recipes/llm/benchmark.py prints max_memory_allocated",
        ),
        "kempnerforge": replace(
            _FSDP2,
            masters="none",
            gradient_bytes=2,
            keeps_ends=False,
            whole_embedding=True,
            whole_logits=True,
            loss_bytes=8,
            source="KempnerInstitute/KempnerForge distributed/parallel.py: models, gradients and Adam in 16 bits, the root "
            "is resharded, too; tensor_parallel.py: replicated embedding and logits; training/loss.py: 16-bit logits, "
            "log-probabilities and two gradients; metrics/memory.py prints max_memory_allocated",
        ),
        "hai-llm": replace(
            _TRANSFORMER_ENGINE,
            small_weights="instead",
            small_activations=True,
            source="arXiv 2412.19437 section 3.3: inputs of SwiGLU are cached in FP8, its output is computed again",
        ),
        "primus": _TRANSFORMER_ENGINE,
    }
)
"""Memory rules by the prefix of a trainer's name; the longest matching prefix applies, so variants share their trainer's
rules."""


@lru_cache(maxsize=256)
def memory_rules(name: str) -> MemoryRules:
    """Return the memory rules of a trainer by its name."""
    trainer, *traits = software(name).name.split(SEPARATOR)
    rules = RULES[max((begin for begin in RULES if trainer.startswith(begin)), key=len)]
    for trait in traits:
        rules = replace(rules, **TRAITS[trait].memory)
    return rules


def software_with(name: str, traits: Iterable[str]) -> str:
    """Return the name of a trainer's software with traits; those that it has anyway are left out.

    Raises UnknownNameError for an unknown name or trait.
    """
    for trait in traits:
        changed = f"{name}{SEPARATOR}{trait}"
        before, after = software(name), software(changed)
        if replace(after, name=before.name, title=before.title) != before or memory_rules(changed) != memory_rules(
            name
        ):
            name = changed
    return name
