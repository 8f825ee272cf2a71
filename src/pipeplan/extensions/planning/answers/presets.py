"""The models and GPUs that have a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

from msgspec import field

from pipeplan.answers.answers import Listing
from pipeplan.answers.parts import columns, line
from pipeplan.extensions.planning.hardware import PRESETS, Preset
from pipeplan.extensions.planning.workload import ModelShape, known_model, model, model_names
from pipeplan.foundation.readable import size_text
from pipeplan.foundation.records import Evidence, Record, holding

if TYPE_CHECKING:
    from rich.console import RenderableType


class PresetModel(Record, frozen=True, kw_only=True):
    """Published model by name; ``experts`` is 0 without any, ``trained_sequence`` None if it is not known."""

    name: str
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    experts: int
    trained_sequence: int | None
    source: str


@final
class Models(Listing[ModelShape], frozen=True, kw_only=True, eq=False):
    """Published models by name, for ``model`` of a plan.

    Iteration gives the shapes, ``models["llama3-70b"]`` one of them; ``to_frame()`` has a row per model.
    """

    _listed = "models"
    noun = "model"

    presets: tuple[PresetModel, ...] = field(name="models")

    models = Evidence[tuple[ModelShape, ...]]()
    """The shapes."""

    def _own_name(self, name: str) -> str:
        shape = known_model(name)
        return name if shape is None else shape.name

    def _table(self) -> Iterator[RenderableType]:
        """Return a row per model."""
        table = columns("model", "layers", "hidden", "heads", "vocabulary", "experts", "trained on", padding=1)
        for shape in self:
            experts = "" if shape.experts is None else f"{shape.experts.count}, top {shape.experts.top_k}"
            trained = "" if shape.trained_sequence is None else f"{shape.trained_sequence:,}"
            numbers = (f"{value:,}" for value in (shape.layers, shape.hidden, shape.heads, shape.vocabulary))
            table.add_row(shape.name, *numbers, experts, trained)
        yield table
        yield line()
        yield line("'--model' takes these names, or a model hub's config.json")


class PresetGpu(Record, frozen=True, kw_only=True):
    """GPU by name, in its usual node: FLOP/s by format, bytes, bytes/s; ``joined`` GPUs have the fast links."""

    name: str
    peak_flops: dict[str, float]
    memory_bytes: float
    memory_bandwidth: float
    per_node: int
    joined: int
    bandwidth_inside: float
    bandwidth_between: float
    source: str


@final
class Gpus(Listing[Preset], frozen=True, kw_only=True, eq=False):
    """GPUs by name, each in its usual node, for ``cluster`` of a plan.

    Iteration gives the presets, ``gpus["h100-sxm"]`` one of them; ``to_frame()`` has a row per GPU.
    """

    _listed = "gpus"
    noun = "GPU"

    presets: tuple[PresetGpu, ...] = field(name="gpus")

    gpus = Evidence[tuple[Preset, ...]]()
    """The data sheets."""

    def _own_name(self, name: str) -> str:
        preset = PRESETS.find(name)
        return name if preset is None else preset.name

    def _table(self) -> Iterator[RenderableType]:
        """Return a row per GPU, with its usual node."""
        table = columns(
            "GPU", "TFLOP/s\n16 bits", "8 bits", "memory", "TB/s", "a node", "GB/s\ninside", "between", padding=1
        )
        for preset in self:
            gpu, node = preset.gpu, preset.node
            peaks = (f"{gpu.peak[kind] / 1e12:,.0f}" if kind in gpu.peak else "" for kind in ("bf16", "fp8"))
            links = (f"{link.bandwidth / 1e9:,.0f}" for link in (node.inside, node.between))
            table.add_row(
                gpu.name,
                *peaks,
                size_text(gpu.memory_bytes),
                f"{gpu.memory_bandwidth / 1e12:.2g}",
                str(node.per_node),
                *links,
            )
        yield table
        yield line()
        yield line("'--cluster' takes GPU:PER_NODExNODES, such as h100-sxm:8x16, or a file with your own GPU and links")


def models() -> Models:
    """List the published models that ``model`` of :func:`pipeplan.plan` takes by name.

    Raises
    ------
    InputError
        Never: every preset is right.

    Examples
    --------
    >>> pipeplan.models()["llama3-70b"].layers
    80
    """
    shapes = tuple(map(model, model_names()))
    presets = (
        PresetModel(
            **{name: getattr(shape, name) for name in PresetModel.__struct_fields__ if name != "experts"},
            experts=0 if shape.experts is None else shape.experts.count,
        )
        for shape in shapes
    )
    return holding(Models(presets=tuple(presets)), models=shapes)


def gpus() -> Gpus:
    """List the GPUs that ``cluster`` of :func:`pipeplan.plan` takes by name.

    Raises
    ------
    InputError
        Never: every preset is right.

    Examples
    --------
    >>> pipeplan.gpus()["h100-sxm"].node.per_node
    8
    """
    all_gpus = tuple(PRESETS.values())
    presets = (
        PresetGpu(
            name=preset.gpu.name,
            peak_flops=dict(preset.gpu.peak),
            memory_bytes=preset.gpu.memory_bytes,
            memory_bandwidth=preset.gpu.memory_bandwidth,
            per_node=preset.node.per_node,
            joined=preset.node.domain or preset.node.per_node,
            bandwidth_inside=preset.node.inside.bandwidth,
            bandwidth_between=preset.node.between.bandwidth,
            source=preset.gpu.source,
        )
        for preset in all_gpus
    )
    return holding(Gpus(presets=tuple(presets)), gpus=all_gpus)
