"""Data sheets of GPUs, links and clusters, and how they are read from keys, with sizes in the units of data sheets."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.planning.hardware.efficiency import GENERATIONS
from pipeplan.foundation.documents import other_kind
from pipeplan.foundation.errors import CostError, FormatError, UnknownNameError


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """Data sheet of a GPU.

    Attributes
    ----------
    name
        Name such as ``h100-sxm``.
    peak
        Dense FLOP/s by format: ``bf16`` (and fp16), ``fp8``, ``fp4``.
    memory_bytes, memory_bandwidth
        Memory in bytes, and its bandwidth in bytes/s.
    host_bandwidth
        Bandwidth to and from the host, bytes/s each way.
    price
        Price of an hour in dollars; None: unknown.
    source
        Source of the numbers.
    generation
        Generation of its kernels: a name of :data:`pipeplan.extensions.planning.hardware.efficiency.GENERATIONS`.
    multiprocessors
        Number of multiprocessors (SMs or compute units) that share a kernel's tiles.
    sustained
        Rate of products that its power sustains, relative to the GPU that the generation's constants are for.
    """

    name: str
    peak: Mapping[str, float] = field(hash=False)
    memory_bytes: float
    memory_bandwidth: float
    host_bandwidth: float = 25e9
    price: float | None = None
    source: str = ""
    generation: str = "hopper"
    multiprocessors: int = 132
    sustained: float = 1.0

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], Gpu], tuple[dict[str, Any]]]:
        """Pickle and copy the fields, with the peaks as a dict, because Python does not pickle read-only mappings."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return _gpu_of, (values | {"peak": dict(self.peak)},)


def _gpu_of(values: dict[str, Any]) -> Gpu:
    return Gpu(**values | {"peak": MappingProxyType(values["peak"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Link between GPUs.

    Attributes
    ----------
    bandwidth
        Bandwidth of one GPU, one way; bytes/s by its data sheet.
    latency
        Latency of one message in seconds.
    peer_bandwidth
        Bandwidth between two GPUs if it is lower (a mesh); None: the same.
    """

    bandwidth: float
    latency: float
    peer_bandwidth: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Cluster of equal GPUs in nodes.

    Attributes
    ----------
    per_node, nodes
        GPUs per node, and number of nodes.
    inside, between
        Links within a node (NVLink), and from a GPU of one node to a GPU of another.
    domain
        Number of GPUs that ``inside`` joins: the node's, or more (NVL72).
    """

    gpu: Gpu
    per_node: int
    nodes: int
    inside: Link
    between: Link
    domain: int = field(default=0)

    @property
    def gpus(self) -> int:
        """Total number of GPUs."""
        return self.per_node * self.nodes

    @property
    def joined(self) -> int:
        """Number of GPUs that ``inside`` joins."""
        return self.domain or self.per_node


# --- numbers with units ------------------------------------------------------------------------------------------------

FIELD = "cluster"
"""Setting that errors in data sheets belong to."""

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
"""Unit of a number without one, by key."""

_OWN = Gpu(name="", peak=MappingProxyType({}), memory_bytes=0.0, memory_bandwidth=0.0, source="user's file")
"""Template of a GPU without a base preset: fields that stay 0 are missing."""


def gpu_from(where: str, content: Mapping[str, Any], base: Gpu | None = None) -> Gpu:
    """Return the GPU that keys describe: the fields of :class:`Gpu`, in place of those of ``base``.

    ``where`` names the source of the keys in messages. Raises CostError, FormatError or UnknownNameError.
    """
    require_keys(where, content, ("base", *(field.name for field in fields(Gpu))), "gpu.")
    base = base or _OWN
    gpu = replace(base, **{key: _gpu_value(where, key, value, base) for key, value in content.items() if key != "base"})
    missing = [key for key in ("name", "peak", "memory_bytes", "memory_bandwidth") if not getattr(gpu, key)]
    if missing:
        raise FormatError(f"{where}: the GPU lacks {', '.join(missing)}: set them, or a preset as 'base'", field=FIELD)
    return gpu


def _gpu_value(where: str, key: str, value: Any, base: Gpu) -> Any:
    place = f"{where}: gpu.{key}"
    if key == "peak":
        if not isinstance(value, dict) or not value:
            raise FormatError(
                f"invalid {place}: expected a number for each format, such as 'bf16: 989 TFLOP/s'", field=FIELD
            )
        require_keys(where, value, ("bf16", "fp8", "fp4"), "gpu.peak.")
        peak = dict(base.peak) | {name: quantity(f"{place}.{name}", number, "FLOP/s") for name, number in value.items()}
        if "bf16" not in peak:
            raise FormatError(f"{place} has no bf16", field=FIELD)
        return MappingProxyType(peak)
    if key == "generation":
        if value not in GENERATIONS:
            raise UnknownNameError("generation of GPUs", str(value), GENERATIONS, field=FIELD)
        return value
    if key in ("name", "source"):
        return str(value)
    if key == "multiprocessors":
        return count(where, {key: value}, key)
    return quantity(place, value, _UNITS[key])


def link_from(where: str, name: str, content: Any, base: Link | None = None) -> Link:
    """Return the link that keys describe, in place of those of ``base``; ``name`` is ``inside`` or ``between``."""
    if content is None:
        if base is None:
            between = {"inside": "inside nodes", "between": "between nodes"}[name]
            raise FormatError(
                f"{where} has no link speed {between}: set {name}: {{bandwidth: 300 GB/s}} with the speed of a custom GPU",
                field=FIELD,
            )
        return base
    if not isinstance(content, dict):
        raise FormatError(f"{where}: invalid {name}: expected a mapping with bandwidth and latency", field=FIELD)
    require_keys(where, content, [field.name for field in fields(Link)], f"{name}.")
    if base is None and "bandwidth" not in content:
        raise FormatError(f"{where}: {name} has no bandwidth", field=FIELD)
    changes: dict[str, Any] = {
        key: quantity(f"{where}: {name}.{key}", value, _UNITS[key]) for key, value in content.items()
    }
    if "bandwidth" in changes and "peer_bandwidth" not in changes:
        changes["peer_bandwidth"] = None
    return replace(base or Link(bandwidth=1.0, latency=0.0), **changes)


def require_keys(where: str, content: Mapping[Any, Any], names: Any, prefix: str = "") -> None:
    """Raise UnknownNameError for a key that is not one of ``names``; messages show it with the prefix."""
    for key in content:
        if key not in names and not prefix and (other := other_kind(content)) and "--cluster" not in other:
            raise FormatError(f"{where} is not a cluster: {other}", field=FIELD)
        if key not in names:
            raise UnknownNameError(
                f"key in {where}", f"{prefix}{key}", [f"{prefix}{name}" for name in names], field=FIELD
            )


def count(where: str, content: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """Return an integer >= 0 under a key. Raises FormatError if it is missing and CostError for another value."""
    value = content.get(key, default)
    if value is None:
        raise FormatError(f"{where} has no '{key}'", field=FIELD)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CostError(f"{where}: invalid {key} {value!r}: expected an integer >= 0", field=FIELD)
    return value
