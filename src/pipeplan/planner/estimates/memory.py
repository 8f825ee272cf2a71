"""Memory of every rank at its peak: what its parameters hold, what the schedule keeps, and what an op holds besides."""

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
from pipeplan.workload import Gemm, GroupedGemm, LayerWork, Precision, RankParameters, State, offloaded, state_bytes

Unit = Literal["layer", "module"]
"""Unit in which sharded parameters are gathered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    """What a trainer's framework holds in memory.

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
        """Return the bytes of a layer's parameter in the format that its products read, beside the 16-bit one."""
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
"""Rules by the prefix of a trainer's name, of which the longest counts: variants hold what their trainer does."""


def memory_rules(name: str) -> MemoryRules:
    """Return the rules of a trainer by its name.

    Raises
    ------
    UnknownNameError
        For software that nobody knows.
    """
    known = software(name).name
    return RULES[max((begin for begin in RULES if known.startswith(begin)), key=len)]


_LAYERS = frozenset({"dense", "moe", "mtp"})
"""Kinds with products in the layers' format, whose parameters a data group that shards them gathers layer by layer."""


def rank_memory(
    stages: Sequence[Sequence[LayerWork]], schedule: Schedule, configuration: Configuration
) -> tuple[GpuMemory, ...]:
    """Return what the framework of every rank has allocated at its peak.

    The schedule is walked op by op: at a backward's start its rank holds all that forwards kept, and the op's own transients
    come on top. No closed form is used, so it holds for every schedule.

    Parameters
    ----------
    stages
        Layers of each stage in order, after recomputation; ``configuration.offload`` is applied here.
    schedule
        Of as many stages; fewer microbatches than the step's will do where they fill the pipeline.
    """
    rules = memory_rules(configuration.software)
    shares = np.broadcast_to(np.asarray(configuration.offload, np.float64), (len(stages),))
    held = [
        _Stage.of(layers, float(share), sharded=configuration.zero >= 3, unit=rules.gathers)
        for layers, share in zip(stages, shares, strict=True)
    ]
    peaks = _Peaks.of(schedule, held)
    found = []
    for rank in range(schedule.ranks):
        places = [int(stage) for copy in schedule.placement.table for stage in np.flatnonzero(copy == rank)]
        layers = [layer for stage in places for layer in stages[stage]]
        state = _state(layers, configuration, rules)
        found.append(
            GpuMemory(
                weights=state.weights,
                gradients=state.gradients,
                optimizer=state.optimizer,
                activations=float(peaks.kept[rank]),
                transient=float(peaks.transient[rank]) + (_placeholders(layers) if rules.placeholders else 0.0),
                buffers=rules.workspace
                + (rules.grouped_workspace if any(layer.parameters.expert for layer in layers) else 0.0)
                + _gathered(layers, configuration, rules.gathers)
                + (_score_buffer(layers) if rules.score_buffer else 0.0),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Stage:
    """Bytes of one stage for one microbatch: kept by F, freed by W, and held by its backward besides."""

    kept: float
    until_weight: float
    transient: float

    @classmethod
    def of(cls, layers: Sequence[LayerWork], share: float, *, sharded: bool, unit: Unit) -> _Stage:
        """Return the bytes of a stage: a layer's backward holds them on top of what the layers before it kept."""
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
    """Return the bytes that a layer keeps, keeps until W, and that its backward holds besides.

    Where parameters are sharded, that is also the whole gradient of what is gathered at once: in 16 bits, and in 32 for its
    reduction.
    """
    after = offloaded(layer, share)
    gradient = (2 + 4) * _at_once(layer, unit) if unit is not None and layer.kind in _LAYERS else 0.0
    return after.kept_bytes, after.bytes_until_weight, after.transient_bytes + gradient


@dataclass(frozen=True, slots=True)
class _Peaks:
    """Bytes that each rank keeps where it holds most, and that its op at that time holds besides; shape (ranks,)."""

    kept: Floats
    transient: Floats

    @classmethod
    def of(cls, schedule: Schedule, stages: Sequence[_Stage]) -> _Peaks:
        """Walk the schedule: F's level is there from its start, a backward's transients on top of the level before it."""
        columns, offsets = schedule.columns, schedule.offsets
        after = memory_levels(
            schedule, _values(each.kept for each in stages), _values(each.until_weight for each in stages)
        )
        before = np.concatenate(([0.0], after[:-1]))
        before[offsets[:-1][np.diff(offsets) > 0]] = 0.0
        of_stage = _values(each.transient for each in stages) / schedule.slices
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


def _state(layers: Sequence[LayerWork], configuration: Configuration, rules: MemoryRules) -> State:
    """Return the bytes that parameters hold throughout.

    With several pipeline ranks, gradients (and, sharded, parameters) stay whole until the step's last microbatch: to gather
    and reduce them for each would take m times as long (torchtitan does so; Megatron shards neither beside a pipeline).
    """
    parameters = _parameters(layers)
    whole = parameters.dense + parameters.expert
    pipelined = configuration.pipeline > 1
    state = state_bytes(
        parameters,
        zero=configuration.zero,
        shards=configuration.data * configuration.context,
        expert_shards=max(configuration.expert_data, 1),
        gradient_bytes=rules.gradient_bytes,
        masters=rules.masters,
    )
    in_layers = sum(
        (layer.parameters.dense + layer.parameters.expert) * layer.count for layer in layers if layer.kind in _LAYERS
    )
    copies = 0.0 if configuration.gathers_weights else rules.copy_bytes(configuration.precision) * in_layers
    return State(
        weights=state.weights + copies + (2.0 * whole if pipelined and configuration.zero >= 3 else 0.0),
        gradients=rules.gradient_bytes * whole if pipelined and configuration.zero >= 2 else state.gradients,
        optimizer=state.optimizer,
    )


def _parameters(layers: Sequence[LayerWork]) -> RankParameters:
    """Return the parameters of a rank, with a copy of the embedding where a layer needs it and none is the embedding."""
    dense = sum(layer.parameters.dense * layer.count for layer in layers)
    expert = sum(layer.parameters.expert * layer.count for layer in layers)
    copied = max((layer.embedding_parameters for layer in layers), default=0)
    if any(layer.kind == "embedding" for layer in layers):
        copied = 0
    return RankParameters(dense=dense + copied, expert=expert)


def _gathered(layers: Sequence[LayerWork], configuration: Configuration, unit: Unit) -> float:
    """Parameters that are gathered in 16 bits for products: those of the two ends, a layer's, and the next one's.

    FSDP2 gathers the ends for the whole of a microbatch, and a layer while the one before it runs.
    """
    if not configuration.gathers_weights:
        return 0.0
    ends = sum(layer.parameters.dense for layer in layers if layer.kind not in _LAYERS)
    largest = max((_at_once(layer, unit) for layer in layers if layer.kind in _LAYERS), default=0.0)
    return 2.0 * (ends + 2 * largest)


def _at_once(layer: LayerWork, unit: Unit) -> float:
    """Return the parameters of a layer that are gathered together: all, or those of its largest product."""
    if unit == "layer":
        return layer.parameters.dense + layer.parameters.expert
    sizes = [work.rows * work.columns for work in layer.backward_weight if isinstance(work, Gemm)]
    grouped = [
        work.groups * work.columns * work.inner for work in layer.backward_weight if isinstance(work, GroupedGemm)
    ]
    return max((*sizes, *grouped), default=0.0)


def _placeholders(layers: Sequence[LayerWork]) -> float:
    """A 16-bit tensor of each shape of weights, which stands for gradients that were added in place.

    Transformer Engine from 2.3 on (``get_dummy_wgrad``); head and router are not its.
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
    """Return the bytes of the largest product of queries and keys of unfused attention, in 16 bits."""
    works = (work for layer in {id(layer): layer for layer in layers}.values() for work in layer.forward)
    scores = (work for work in works if isinstance(work, Gemm) and work.name == "scores")
    return max((2.0 * work.rows * work.columns * work.copies for work in scores), default=0.0)
