"""Peak memory of every rank: parameters and their state, activations that the schedule keeps, and transients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

import numpy as np

from pipeplan.model import Floats, Kind, Schedule, memory_levels
from pipeplan.planner.answers import GpuMemory
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.software import software
from pipeplan.workload import (
    Gemm,
    GroupedGemm,
    LayerWork,
    Masters,
    Precision,
    RankParameters,
    State,
    offloaded,
    state_bytes,
)

Unit = Literal["layer", "module"]
"""Unit in which sharded parameters are gathered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    """Memory behavior of a trainer's framework.

    Attributes
    ----------
    gradient_bytes
        Bytes of one accumulated gradient.
    masters
        32-bit parameters: ``beside`` the 16-bit ones, ``only`` 32-bit ones, or ``none``.
    loss_bytes
        Peak bytes per logit over all copies in the loss; None: as its kernels say (:class:`Execution`).
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
    source
        Source of these rules.
    """

    gradient_bytes: float = 4
    masters: Masters = "beside"
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
    loss_bytes=4,
    small_inputs=False,
    workspace=_WORKSPACE,
    source="pytorch/torchtitan: parameters and state in 32 bits, sharded; the compiled loss reads 16-bit logits and writes "
    "their gradient in 16 bits",
)
_EAGER_LOSS = 14
"""Bytes per logit in PyTorch's cross entropy of ``logits.float()``: 12 for log-probabilities and two gradients, 2 for the
16-bit logits, which are free by then but leave too small a block for a gradient."""

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
        "megatron-bridge": replace(
            _EIGHT_BIT_PARAMETERS,
            gradient_bytes=2,
            source=f"{_EIGHT_BIT_PARAMETERS.source}; grad_reduce_in_fp32 is off in scripts/performance",
        ),
        "nemo": _EIGHT_BIT_PARAMETERS,
        "torchtitan": _FSDP2,
        "torchtitan-eager": _EAGER_FSDP,
        "torchtitan-2024": _EAGER_FSDP,
        "llm-foundry": replace(
            _FSDP2,
            source="mosaicml/llm-foundry: PyTorch's FSDP; its loss is by default flash-attn's fused cross entropy",
        ),
        "automodel": replace(
            _FSDP2,
            masters="none",
            loss_bytes=8,
            source="NVIDIA-NeMo/Automodel examples/llm_benchmark: FSDP2 with models and Adam in 16 bits, gradients "
            "accumulated in 32 bits; cross entropy without fp32_upcast: logits, log-probabilities and two gradients",
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
"""Memory rules by the prefix of a trainer's name; the longest matching prefix applies, so variants share their trainer's
rules."""


def memory_rules(name: str) -> MemoryRules:
    """Return the memory rules of a trainer by its name."""
    trainer = software(name).name
    return RULES[max((begin for begin in RULES if trainer.startswith(begin)), key=len)]


_LAYERS = frozenset({"dense", "moe", "mtp"})
"""Kinds of layers whose products use the layers' format and whose sharded parameters are gathered layer by layer."""


def rank_memory(
    stages: Sequence[Sequence[LayerWork]], schedule: Schedule, configuration: Configuration
) -> tuple[GpuMemory, ...]:
    """Return the peak memory that the framework of every rank has allocated.

    The schedule is walked op by op: when a backward starts, its rank holds everything that forwards kept, plus the op's own
    transients. The walk uses no closed form, so it holds for every schedule.

    Parameters
    ----------
    stages
        Layers of each stage in order, with recomputation applied; ``configuration.offload`` is applied here.
    schedule
        Schedule with the same stages; fewer microbatches than the step's suffice if they fill the pipeline.
    """
    rules = memory_rules(configuration.software)
    shares = np.broadcast_to(np.asarray(configuration.offload, np.float64), (len(stages),))
    held = [
        _Stage.of(layers, float(share), sharded=configuration.zero >= 3, unit=rules.gathers)
        for layers, share in zip(stages, shares, strict=True)
    ]
    peaks = _Peaks.of(schedule, held)
    memory = []
    for rank in range(schedule.ranks):
        places = [int(stage) for copy in schedule.placement.table for stage in np.flatnonzero(copy == rank)]
        layers = [layer for stage in places for layer in stages[stage]]
        state = _state(layers, configuration, rules)
        memory.append(
            GpuMemory.from_bytes(
                weights=state.weights,
                gradients=state.gradients,
                optimizer=state.optimizer,
                activations=float(peaks.kept[rank]),
                transient=float(peaks.transient[rank]) + (_placeholders(layers) if rules.placeholders else 0.0),
                # Workspaces, gathered weights and score buffers exist for the whole step.
                buffers=rules.workspace
                + (rules.grouped_workspace if any(layer.parameters.expert for layer in layers) else 0.0)
                + _gathered(layers, configuration, rules.gathers)
                + (_score_buffer(layers) if rules.score_buffer else 0.0),
            )
        )
    return tuple(memory)


@dataclass(frozen=True, slots=True)
class _Stage:
    """Bytes of one stage for one microbatch: kept by F, freed only by W, and transients of its backward."""

    kept: float
    until_weight: float
    transient: float

    @classmethod
    def of(cls, layers: Sequence[LayerWork], share: float, *, sharded: bool, unit: Unit) -> _Stage:
        """Return the bytes of a stage; a layer's transients come on top of what the layers before it kept."""
        # The backward goes from the last layer to the first: when a layer's backward runs, the layers after it have
        # freed their activations, so its transients are measured against what they kept.
        kept = until_weight = transient = 0.0
        sizes: dict[int, tuple[float, float, float]] = {}
        for layer in reversed(layers):
            if id(layer) not in sizes:
                sizes[id(layer)] = _sizes(layer, share, unit if sharded else None)
            of_layer = sizes[id(layer)]
            for _ in range(layer.count):
                transient = max(transient, of_layer[2] - kept)
                kept += of_layer[0]
                until_weight += of_layer[1]
        return cls(kept, until_weight, transient)


def _sizes(layer: LayerWork, share: float, unit: Unit | None) -> tuple[float, float, float]:
    """Return the bytes that a layer keeps, keeps until W, and needs in its backward.

    With sharded parameters, the backward also holds the whole gradient of the gathered unit: in 16 bits, and in 32 bits for
    its reduction.
    """
    after = offloaded(layer, share)
    # 16-bit gradient plus its 32-bit copy for the reduction.
    gradient = (2 + 4) * _at_once(layer, unit) if unit is not None and layer.kind in _LAYERS else 0.0
    return after.kept_bytes, after.bytes_until_weight, after.transient_bytes + gradient


@dataclass(frozen=True, slots=True)
class _Peaks:
    """Activation bytes of each rank at its peak, and the transients of the op at that time; shape (ranks,)."""

    kept: Floats
    transient: Floats

    @classmethod
    def of(cls, schedule: Schedule, stages: Sequence[_Stage]) -> _Peaks:
        """Walk the schedule: F's activations exist from its start, transients come on top of the level before."""
        columns, offsets = schedule.columns, schedule.offsets
        after = memory_levels(
            schedule, _values(stage.kept for stage in stages), _values(stage.until_weight for stage in stages)
        )
        # Level before each op: that after the previous op of the same rank, 0 at the start of a rank's row.
        before = np.concatenate(([0.0], after[:-1]))
        before[offsets[:-1][np.diff(offsets) > 0]] = 0.0
        # Only full and input backwards have transients on top of the level.
        of_stage = _values(stage.transient for stage in stages) / schedule.slices
        transient = np.where(np.isin(columns.kind, (Kind.B, Kind.I)), of_stage[columns.stage], 0.0)
        level = np.maximum(before + transient, after)
        besides = np.where(before + transient >= after, transient, 0.0)
        kept, most = np.zeros(schedule.ranks), np.zeros(schedule.ranks)
        for rank, (first, last) in enumerate(pairwise(offsets.tolist())):
            if first < last:
                peak = first + int(np.argmax(level[first:last]))
                kept[rank], most[rank] = level[peak] - besides[peak], besides[peak]
        return cls(kept, most)


def _values(values: Iterable[float]) -> Floats:
    return np.array(list(values))


def full_state(parameters: RankParameters, configuration: Configuration) -> State:
    """Return the bytes of parameters, gradients and optimizer state during a step, without low-precision copies.

    With several pipeline ranks, gradients (and sharded parameters) stay whole until the step's last microbatch, because
    gathering and reducing per microbatch would take m times as long. torchtitan does so; Megatron shards neither in a
    pipeline.
    """
    rules = memory_rules(configuration.software)
    shards, expert_shards = configuration.data * configuration.context, max(configuration.expert_data, 1)
    state = state_bytes(
        parameters,
        zero=configuration.zero,
        shards=shards,
        expert_shards=expert_shards,
        gradient_bytes=rules.gradient_bytes,
        masters=rules.masters,
    )
    if configuration.pipeline == 1 or configuration.zero < 2:
        return state
    gathered = (parameters.dense if shards > 1 else 0) + (parameters.expert if expert_shards > 1 else 0)
    return State(
        weights=state.weights + (2.0 * gathered if configuration.zero >= 3 else 0.0),  # gathered in 16 bits
        gradients=rules.gradient_bytes * (parameters.dense + parameters.expert),
        optimizer=state.optimizer,
    )


def _state(layers: Sequence[LayerWork], configuration: Configuration, rules: MemoryRules) -> State:
    state = full_state(_parameters(layers), configuration)
    if configuration.gathers_weights:
        return state
    in_layers = sum(
        (layer.parameters.dense + layer.parameters.expert) * layer.count for layer in layers if layer.kind in _LAYERS
    )
    return replace(state, weights=state.weights + rules.copy_bytes(configuration.precision) * in_layers)


def _parameters(layers: Sequence[LayerWork]) -> RankParameters:
    """Return the parameters of a rank, with a copy of the embedding if a layer needs it and the rank has none."""
    dense = sum(layer.parameters.dense * layer.count for layer in layers)
    expert = sum(layer.parameters.expert * layer.count for layer in layers)
    copied = max((layer.embedding_parameters for layer in layers), default=0)
    if any(layer.kind == "embedding" for layer in layers):
        copied = 0
    return RankParameters(dense=dense + copied, expert=expert)


def _gathered(layers: Sequence[LayerWork], configuration: Configuration, unit: Unit) -> float:
    """Return the bytes of parameters gathered in 16 bits for products: both ends of the model, a layer, and the next one.

    FSDP2 gathers the ends for the whole microbatch, and each layer while the one before it runs.
    """
    if not configuration.gathers_weights:
        return 0.0
    # 16-bit copies: both ends for the whole microbatch, and two of the largest layers (the current and the next one).
    ends = sum(layer.parameters.dense for layer in layers if layer.kind not in _LAYERS)
    largest = max((_at_once(layer, unit) for layer in layers if layer.kind in _LAYERS), default=0.0)
    return 2.0 * (ends + 2 * largest)


def _at_once(layer: LayerWork, unit: Unit) -> float:
    """Return the number of parameters of a layer that are gathered together: all, or those of its largest product."""
    if unit == "layer":
        return layer.parameters.dense + layer.parameters.expert
    sizes = [work.rows * work.columns for work in layer.backward_weight if isinstance(work, Gemm)]
    grouped = [
        work.groups * work.columns * work.inner for work in layer.backward_weight if isinstance(work, GroupedGemm)
    ]
    return max((*sizes, *grouped), default=0.0)


def _placeholders(layers: Sequence[LayerWork]) -> float:
    """Return the bytes of the 16-bit dummy tensors, one per weight shape, that replace gradients accumulated in place.

    Source: Transformer Engine from 2.3 on (``get_dummy_wgrad``); head and router are not its modules.
    """
    shapes: set[tuple[float, float]] = set()
    for layer in {id(layer): layer for layer in layers if layer.kind in _LAYERS}.values():
        for work in layer.backward_weight:
            if isinstance(work, Gemm) and work.name not in {"router", "head"}:
                shapes.add((work.rows, work.columns))
            if isinstance(work, GroupedGemm):
                shapes.add((work.columns, work.inner))
    return sum(2.0 * rows * columns for rows, columns in shapes)


def _score_buffer(layers: Sequence[LayerWork]) -> float:
    """Return the bytes of the largest score matrix (queries times keys) of unfused attention, in 16 bits."""
    works = (work for layer in {id(layer): layer for layer in layers}.values() for work in layer.forward)
    scores = (work for work in works if isinstance(work, Gemm) and work.name == "scores")
    return max((2.0 * work.rows * work.columns * work.copies for work in scores), default=0.0)
