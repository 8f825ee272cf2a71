"""Clusters from a text such as ``h100-sxm:8x16`` or from a file, with sizes in the units of data sheets."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.planning.hardware.efficiency import GENERATIONS
from pipeplan.extensions.planning.hardware.presets import Preset, preset
from pipeplan.extensions.planning.hardware.sheets import Cluster, Gpu, Link
from pipeplan.foundation.documents import ENDINGS, read_document
from pipeplan.foundation.errors import CostError, FormatError, UnknownNameError

_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
# A decimal number, then anything as its unit.
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*")
_EXAMPLES = {"B": "80 GiB", "B/s": "450 GB/s or 400 Gb/s", "FLOP/s": "989 TFLOP/s", "s": "5 us", "": "2.5"}


def quantity(name: str, value: Any, unit: str) -> float:
    """Convert a number, or a text of number and unit, to a number in a base unit.

    Parameters
    ----------
    name
        Name of the quantity, for messages.
    unit
        ``B``, ``B/s``, ``FLOP/s``, ``s``, or empty for a plain number; a number without a unit is taken in it. Bits (``b``)
        are eighths of bytes.
    """
    number = _number(value, unit)
    if number is None:
        raise CostError(
            f"invalid {name} {value!r}: expected a number or a text such as {_EXAMPLES[unit]}", field="cluster"
        )
    least = ">= 0" if unit == "s" else "above 0"
    if not math.isfinite(number) or number < 0 or (number == 0 and least == "above 0"):
        raise CostError(f"invalid {name} {value!r}: expected a finite number {least}", field="cluster")
    return number


def _number(value: Any, unit: str) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    scale = 1.0 if not match[2] else _scale(match[2], unit)
    return None if scale is None else float(match[1]) * scale


def _scale(text: str, unit: str) -> float | None:
    if unit == "s":
        return _SECONDS.get(text)
    if unit == "FLOP/s":
        match = re.fullmatch(r"([kKMGTPE]?)FLOP(?:/s|S|s)", text)
        return None if match is None else _PREFIXES[match[1]]
    if unit in ("B", "B/s"):
        end = "(?:/s|ps)" if unit == "B/s" else ""
        match = re.fullmatch(r"([KMGT]i|[kKMGT]?)([Bb])(?:it)?" + end, text)
        if match is None:
            return None
        return (_BINARY.get(match[1]) or _PREFIXES[match[1]]) * (1.0 if match[2] == "B" else 0.125)
    return None


_FIELD = "cluster"
_LARGEST = 1 << 20
"""Maximum number of GPUs of a cluster; a larger one is a typing error."""

_NEW = Link(bandwidth=1.0, latency=0.0)
_OWN = Gpu(name="", peak=MappingProxyType({}), memory_bytes=0.0, memory_bandwidth=0.0, source="user's file")
"""Template of a GPU without a base preset: fields that stay 0 are missing."""

_UNITS = {
    "memory_bytes": "B",
    "memory_bandwidth": "B/s",
    "host_bandwidth": "B/s",
    "bandwidth": "B/s",
    "peer_bandwidth": "B/s",
    "latency": "s",
    "price": "",
    "sustained": "",
}


def cluster(text: str | Path) -> Cluster:
    """Return the cluster that a text names, or that a file describes.

    Parameters
    ----------
    text
        ``GPU:PER_NODExNODES``; ``GPU:COUNT`` in the GPU's usual nodes; or a YAML, TOML or JSON file with ``gpu`` (a name, or
        fields of ``Gpu`` and ``base``, the preset that they change), ``per_node``, ``nodes``, and
        optionally ``inside``, ``between`` (fields of ``Link``) and ``domain``. Sizes are numbers in
        bytes, bytes/s, FLOP/s and seconds, or text with a unit: ``80 GiB``, ``450 GB/s``, ``400 Gb/s``, ``989 TFLOP/s``, ``5
        us``.

    Raises
    ------
    UnknownNameError
        If a GPU or key is unknown; names the nearest one.
    CostError
        If there are no GPUs or too many, or a number is out of range.
    FormatError
        If the text or the file does not describe a cluster.
    InputError
        If the file cannot be read.
    """
    if isinstance(text, Path) or Path(text).suffix.lower() in ENDINGS:
        return _from_file(Path(text))
    name, colon, size = text.rpartition(":")
    if not colon:
        preset(text)
        raise FormatError(
            f"cluster '{text}' has no size: expected GPU:PER_NODExNODES, such as {text}:8x16", field=_FIELD
        )
    usual = preset(name)
    return _joined(usual, usual.gpu, *_size(text, size, usual))


def _size(text: str, size: str, usual: Preset) -> tuple[int, int]:
    match = re.fullmatch(r"\s*(-?\d+)\s*(?:[xX*]\s*(-?\d+))?\s*", size)
    if match is None:
        raise FormatError(
            f"invalid size '{size}' of cluster '{text}': expected GPU:PER_NODExNODES, such as {usual.gpu.name}:8x16",
            field=_FIELD,
        )
    first, second = int(match[1]), match[2]
    if second is not None:
        return first, int(second)
    per_node = min(usual.node.per_node, first)
    if per_node > 0 and first % per_node:
        raise FormatError(
            f"the {first} GPUs of cluster '{text}' do not fill nodes of {per_node}: write GPU:PER_NODExNODES",
            field=_FIELD,
        )
    return per_node, first // max(1, per_node)


def _joined(usual: Preset, gpu: Gpu, per_node: int, nodes: int) -> Cluster:
    _check_size(per_node, nodes)
    node = usual.node
    return Cluster(
        gpu=gpu,
        per_node=per_node,
        nodes=nodes,
        inside=node.inside,
        between=node.between,
        domain=max(per_node, min(node.domain, per_node * nodes)),
    )


def _check_size(per_node: int, nodes: int) -> None:
    for name, value in (("GPUs per node", per_node), ("nodes", nodes)):
        if value < 1:
            raise CostError(f"invalid cluster with {value} {name}: expected at least 1", field=_FIELD)
    if per_node * nodes > _LARGEST:
        raise CostError(f"cluster of {per_node * nodes} GPUs is too large: expected at most {_LARGEST}", field=_FIELD)


def _from_file(path: Path) -> Cluster:
    return cluster_from(read_document(path, "cluster file"), f"cluster file {path}")


def cluster_from(content: Any, where: str) -> Cluster:
    """Return the cluster that keys describe; ``where`` names their source in messages. Raises what :func:`cluster` does."""
    if not isinstance(content, dict):
        raise FormatError(f"{where} is not a mapping: expected keys such as 'gpu: h100-sxm'", field=_FIELD)
    _known(where, content, ("gpu", "per_node", "nodes", "inside", "between", "domain"))
    if "gpu" not in content:
        raise FormatError(f"{where} has no 'gpu'", field=_FIELD)
    usual, gpu = _gpu(where, content["gpu"])
    per_node = _count(where, content, "per_node", usual.node.per_node if usual else None)
    nodes = _count(where, content, "nodes", 1)
    _check_size(per_node, nodes)
    links = {
        name: _link(where, name, content.get(name), getattr(usual.node, name) if usual else None)
        for name in ("inside", "between")
    }
    domain = _count(where, content, "domain", usual.node.domain if usual else 0)
    if content.get("domain") and domain < per_node:
        raise CostError(
            f"{where}: invalid domain {domain}: expected at least the {per_node} GPUs of a node", field=_FIELD
        )
    return Cluster(
        gpu=gpu, per_node=per_node, nodes=nodes, domain=max(per_node, min(domain, per_node * nodes)), **links
    )


def _gpu(where: str, content: Any) -> tuple[Preset | None, Gpu]:
    if isinstance(content, str):
        usual = preset(content)
        return usual, usual.gpu
    if not isinstance(content, dict):
        raise FormatError(f"{where}: invalid gpu: expected a name, or a mapping of its fields", field=_FIELD)
    names = [field.name for field in fields(Gpu)]
    _known(where, content, ("base", *names), "gpu.")
    base = preset(str(content["base"])) if "base" in content else None
    gpu = base.gpu if base else _OWN
    changes = {key: _gpu_value(where, key, value, gpu) for key, value in content.items() if key != "base"}
    gpu = replace(gpu, **changes)
    missing = [key for key in ("name", "peak", "memory_bytes", "memory_bandwidth") if not getattr(gpu, key)]
    if missing:
        raise FormatError(
            f"{where}: the GPU lacks {', '.join(missing)}: set them, or a preset as 'base'",
            field=_FIELD,
        )
    return base, gpu


def _gpu_value(where: str, key: str, value: Any, base: Gpu) -> Any:
    place = f"{where}: gpu.{key}"
    if key == "peak":
        if not isinstance(value, dict) or not value:
            raise FormatError(
                f"invalid {place}: expected a number for each format, such as 'bf16: 989 TFLOP/s'", field=_FIELD
            )
        _known(where, value, ("bf16", "fp8", "fp4"), "gpu.peak.")
        peak = dict(base.peak) | {name: quantity(f"{place}.{name}", number, "FLOP/s") for name, number in value.items()}
        if "bf16" not in peak:
            raise FormatError(f"{place} has no bf16", field=_FIELD)
        return MappingProxyType(peak)
    if key == "generation":
        if value not in GENERATIONS:
            raise UnknownNameError("generation of GPUs", str(value), GENERATIONS, field=_FIELD)
        return value
    if key in ("name", "source"):
        return str(value)
    if key == "multiprocessors":
        return _count(where, {key: value}, key, None)
    return quantity(place, value, _UNITS[key])


def _link(where: str, name: str, content: Any, base: Link | None) -> Link:
    if content is None:
        if base is None:
            between = {"inside": "inside nodes", "between": "between nodes"}[name]
            raise FormatError(
                f"{where} has no link speed {between}: set {name}: {{bandwidth: 300 GB/s}} with the speed of a custom GPU",
                field=_FIELD,
            )
        return base
    if not isinstance(content, dict):
        raise FormatError(f"{where}: invalid {name}: expected a mapping with bandwidth and latency", field=_FIELD)
    _known(where, content, [field.name for field in fields(Link)], f"{name}.")
    if base is None and "bandwidth" not in content:
        raise FormatError(f"{where}: {name} has no bandwidth", field=_FIELD)
    changes: dict[str, Any] = {
        key: quantity(f"{where}: {name}.{key}", value, _UNITS[key]) for key, value in content.items()
    }
    if "bandwidth" in changes and "peer_bandwidth" not in changes:
        changes["peer_bandwidth"] = None
    return replace(base or _NEW, **changes)


def _known(where: str, content: Mapping[Any, Any], names: Any, prefix: str = "") -> None:
    for key in content:
        if key not in names:
            raise UnknownNameError(
                f"key in {where}", f"{prefix}{key}", [f"{prefix}{name}" for name in names], field=_FIELD
            )


def _count(where: str, content: Mapping[str, Any], key: str, default: int | None) -> int:
    value = content.get(key, default)
    if value is None:
        raise FormatError(f"{where} has no '{key}'", field=_FIELD)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CostError(f"{where}: invalid {key} {value!r}: expected an integer >= 0", field=_FIELD)
    return value
