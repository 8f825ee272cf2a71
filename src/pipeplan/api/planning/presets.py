"""The models and GPUs that have a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from pipeplan.api.presentable import Presentable
from pipeplan.drawing import View
from pipeplan.hardware import PRESETS, Preset
from pipeplan.workload import ModelShape, model, model_names

if TYPE_CHECKING:
    from rich.console import RenderableType


@final
@dataclass(frozen=True, eq=False)
class Models(Presentable):
    """Published models by name: what ``model`` of a plan takes beside a config.json.

    Iteration gives the shapes; ``to_frame()`` has a row a model.
    """

    models: tuple[ModelShape, ...]

    def __iter__(self) -> Iterator[ModelShape]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def views(self) -> Sequence[View]:
        """None: there is nothing to draw."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """``models``: name, the numbers of its shape, source."""
        return {"models": list(self._rows())}

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.presets import model_parts  # late: tables load rich

        return model_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [_model_record(each) for each in self.models]

    def __repr__(self) -> str:
        return f"<Models: {', '.join(each.name for each in self.models)}>"


def _model_record(shape: ModelShape) -> dict[str, Any]:
    return {
        "name": shape.name,
        "layers": shape.layers,
        "hidden": shape.hidden,
        "heads": shape.heads,
        "vocabulary": shape.vocabulary,
        "experts": 0 if shape.experts is None else shape.experts.count,
        "trained_sequence": shape.trained_sequence,
        "source": shape.source,
    }


@final
@dataclass(frozen=True, eq=False)
class Gpus(Presentable):
    """GPUs by name, each with the node that it usually stands in: what ``cluster`` of a plan is made of.

    Iteration gives the presets; ``to_frame()`` has a row a GPU.
    """

    gpus: tuple[Preset, ...]

    def __iter__(self) -> Iterator[Preset]:
        return iter(self.gpus)

    def __len__(self) -> int:
        return len(self.gpus)

    def views(self) -> Sequence[View]:
        """None: there is nothing to draw."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """``gpus``: name, peaks, memory, links, source."""
        return {"gpus": list(self._rows())}

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.presets import gpu_parts  # late: tables load rich

        return gpu_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [_gpu_record(each) for each in self.gpus]

    def __repr__(self) -> str:
        return f"<Gpus: {', '.join(each.gpu.name for each in self.gpus)}>"


def _gpu_record(found: Preset) -> dict[str, Any]:
    gpu, node = found.gpu, found.node
    return {
        "name": gpu.name,
        "peak_flops": dict(gpu.peak),
        "memory_bytes": gpu.memory_bytes,
        "memory_bandwidth": gpu.memory_bandwidth,
        "per_node": node.per_node,
        "joined": node.domain or node.per_node,
        "bandwidth_inside": node.inside.bandwidth,
        "bandwidth_between": node.between.bandwidth,
        "source": gpu.source,
    }


def models() -> Models:
    """The published models that are known by name: what :func:`pipeplan.plan` takes as ``model``.

    Raises
    ------
    InputError
        Never: every preset is right.

    Examples
    --------
    >>> "llama3-70b" in [each.name for each in pipeplan.models()]
    True
    """
    return Models(tuple(map(model, model_names())))


def gpus() -> Gpus:
    """The GPUs that are known by name: what :func:`pipeplan.plan` takes before the ``:`` of ``cluster``.

    Raises
    ------
    InputError
        Never: every preset is right.

    Examples
    --------
    >>> "h100-sxm" in [each.gpu.name for each in pipeplan.gpus()]
    True
    """
    return Gpus(tuple(PRESETS.values()))
