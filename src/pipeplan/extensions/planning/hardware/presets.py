"""Presets of GPUs for training and of their usual nodes, from the table ``gpus.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from pipeplan.extensions.planning.hardware.sheets import Gpu, Link, gpu_from, link_from
from pipeplan.foundation.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Usual node of a GPU.

    Attributes
    ----------
    per_node
        GPUs per node.
    inside, between
        Links within the node, and to other nodes.
    domain
        Maximum number of GPUs that ``inside`` joins if it spans several nodes (NVL72); 0: the node's.
    """

    per_node: int
    inside: Link
    between: Link
    domain: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """GPU with its usual node."""

    gpu: Gpu
    node: Node
    aliases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the GPU."""
        return self.gpu.name


_SURVEY = "vendor sheets as collected in stas00/ml-engineering compute/accelerator (744d01e1)"
"""Source of the rows that name none."""


def _built_in() -> Iterator[Preset]:
    """Yield the presets of ``gpus.toml`` in its order."""
    text = files("pipeplan.extensions.planning.hardware").joinpath("gpus.toml").read_text("utf-8")
    for name, row in tomllib.loads(text).items():
        where = f"gpus.toml: {name}"
        aliases, per_node, domain = row.pop("aliases", ()), row.pop("per_node"), row.pop("domain", 0)
        inside, between = (link_from(where, link, row.pop(link)) for link in ("inside", "between"))
        yield Preset(
            gpu=gpu_from(where, {"name": name, "source": _SURVEY, **row}),
            node=Node(per_node=per_node, inside=inside, between=between, domain=domain),
            aliases=tuple(aliases),
        )


PRESETS = Registry(
    "pipeplan.gpus",
    Preset,
    "GPU",
    _built_in,
    names=lambda preset: (preset.name, *preset.aliases),
    plain=lambda name: " ".join(name.lower().replace("_", "-").split()),
)
"""Every preset by the name of its GPU: those of pipeplan, then registered ones and plugins."""


def preset(name: str) -> Preset:
    """Return the preset of a GPU by its name or an alias.

    Raises UnknownNameError if the name is unknown; names the nearest one.
    """
    return PRESETS.required(name, field="cluster")


def gpu(name: str) -> Gpu:
    """Return a GPU by its name or an alias. Raises UnknownNameError if the name is unknown; names the nearest one."""
    return preset(name).gpu
