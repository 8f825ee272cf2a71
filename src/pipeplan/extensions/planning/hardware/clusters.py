"""Clusters from a text such as ``h100-sxm:8x16`` or from a file, with sizes in the units of data sheets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeplan.extensions.planning.hardware.presets import PRESETS, Preset, preset
from pipeplan.extensions.planning.hardware.sheets import FIELD, Cluster, Gpu, count, gpu_from, link_from, require_keys
from pipeplan.foundation.documents import ENDINGS, instead_of_keys, read_document
from pipeplan.foundation.errors import CostError, FormatError, PipeplanError, UnknownNameError
from pipeplan.model import shortened

_LARGEST = 1 << 20
"""Maximum number of GPUs of a cluster; a larger one is a typing error."""


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
        return cluster_from(read_document(Path(text), "cluster file"), f"cluster file {text}")
    name, colon, size = text.rpartition(":")
    if not colon or PRESETS.find(name) is None:
        raise _unreadable(text)
    usual = preset(name)
    per_node, nodes = _size(text, size, usual)
    _check_size(per_node, nodes)
    node = usual.node
    return Cluster(
        gpu=usual.gpu,
        per_node=per_node,
        nodes=nodes,
        inside=node.inside,
        between=node.between,
        domain=max(per_node, min(node.domain, per_node * nodes)),
    )


def _unreadable(text: str) -> PipeplanError:
    """Return the error of a text that is not ``GPU:PER_NODExNODES``, with what the user probably means."""
    before = re.match(r"(?:\d{1,9}\s*[xX*: ]\s*)*(?=[A-Za-z])", text.strip())
    rest = text.strip()[before.end() if before else 0 :]
    # Where a number may begin behind the name: rtx-4090x8 has two such places.
    ends = [match.start() for match in re.finditer(r"[\s:,*/xX-]+(?=\d)", rest)]
    names = [rest, *(rest[:end] for end in reversed(ends))] if before else [""]
    name = next((name for name in names if name and PRESETS.find(name) is not None), names[-1])
    counts = [int(count) for count in re.findall(r"\d{1,9}", (before[0] if before else "") + rest[len(name) :])]
    usual = PRESETS.find(name)
    if usual is None and name:
        return UnknownNameError("GPU", name, PRESETS, field=FIELD, more=f" ({_FORM}, such as {_EXAMPLE})")
    fault = f"invalid cluster '{shortened(text, 60)}'" if counts or not name else f"cluster '{text}' has no size"
    return FormatError(f"{fault}: expected {_FORM}, such as {_example(usual, counts)}", field=FIELD)


_FORM = "GPU:PER_NODExNODES"
_EXAMPLE = "h100-sxm:8x16"


def _example(usual: Preset | None, counts: Sequence[int]) -> str:
    """Return a cluster with this GPU and these numbers, as far as they make one."""
    if usual is None:
        return _EXAMPLE
    per_node = usual.node.per_node
    size = counts[0] if len(counts) == 1 else 0
    if len(counts) == 2:
        per_node, nodes = counts
    elif size and size % per_node == 0:
        nodes = size // per_node
    else:
        per_node, nodes = (size, 1) if 0 < size < per_node else (per_node, 16)
    return f"{usual.gpu.name}:{per_node}x{nodes}"


def _size(text: str, size: str, usual: Preset) -> tuple[int, int]:
    match = re.fullmatch(r"\s*(-?\d+)\s*(?:[xX*]\s*(-?\d+))?\s*", size)
    if match is None:
        counts = [int(word) for word in re.findall(r"\d{1,9}", size)]
        raise FormatError(
            f"invalid size '{size}' of cluster '{text}': expected {_FORM}, such as {_example(usual, counts)}",
            field=FIELD,
        )
    first, second = int(match[1]), match[2]
    if second is not None:
        return first, int(second)
    per_node = min(usual.node.per_node, first)
    if per_node > 0 and first % per_node:
        raise FormatError(
            f"the {first} GPUs of cluster '{text}' do not fill nodes of {per_node}: expected {_FORM}, such as "
            f"{usual.gpu.name}:{per_node}x{-(-first // per_node)}",
            field=FIELD,
        )
    return per_node, first // max(1, per_node)


def _check_size(per_node: int, nodes: int) -> None:
    for name, value in (("GPUs per node", per_node), ("nodes", nodes)):
        if value < 1:
            raise CostError(f"invalid cluster with {value} {name}: expected at least 1, as in {_EXAMPLE}", field=FIELD)
    if per_node * nodes > _LARGEST:
        raise CostError(f"cluster of {per_node * nodes} GPUs is too large: expected at most {_LARGEST}", field=FIELD)


def cluster_from(content: Any, where: str) -> Cluster:
    """Return the cluster that keys describe; ``where`` names their source in messages. Raises what :func:`cluster` does."""
    if not isinstance(content, dict):
        raise FormatError(f"{where} has no keys: {instead_of_keys(content, 'gpu: h100-sxm')}", field=FIELD)
    require_keys(where, content, ("gpu", "per_node", "nodes", "inside", "between", "domain"))
    if "gpu" not in content:
        raise FormatError(f"{where} has no 'gpu'", field=FIELD)
    usual, gpu = _gpu(where, content["gpu"])
    per_node = count(where, content, "per_node", usual.node.per_node if usual else None)
    nodes = count(where, content, "nodes", 1)
    _check_size(per_node, nodes)
    links = {
        name: link_from(where, name, content.get(name), getattr(usual.node, name) if usual else None)
        for name in ("inside", "between")
    }
    domain = count(where, content, "domain", usual.node.domain if usual else 0)
    if content.get("domain") and domain < per_node:
        raise CostError(
            f"{where}: invalid domain {domain}: expected at least the {per_node} GPUs of a node", field=FIELD
        )
    return Cluster(
        gpu=gpu, per_node=per_node, nodes=nodes, domain=max(per_node, min(domain, per_node * nodes)), **links
    )


def _gpu(where: str, content: Any) -> tuple[Preset | None, Gpu]:
    if isinstance(content, str):
        usual = preset(content)
        return usual, usual.gpu
    if not isinstance(content, dict):
        raise FormatError(f"{where}: invalid gpu: expected a name, or a mapping of its fields", field=FIELD)
    base = preset(str(content["base"])) if "base" in content else None
    return base, gpu_from(where, content, base.gpu if base else None)
