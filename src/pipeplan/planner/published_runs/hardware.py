"""The cluster that a published row names: its GPU by any of its names, its links in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeplan.errors import InputError
from pipeplan.hardware import Cluster, Preset, preset

_RATE = re.compile(r"(?:(\d+)\s*x\s*)?(\d+(?:\.\d+)?)\s*G(b|B)(?:it)?(?:/s|ps)", re.ASCII)
"""``8x200 Gb/s``, ``400 Gb/s a GPU``, ``50 GB/s``."""

_BITS = 8


def cluster_of(hardware: Mapping[str, Any], needed: int) -> tuple[Cluster, list[str]]:
    """The cluster of a row, and what was assumed of it.

    Parameters
    ----------
    hardware
        ``gpu``, ``count``, ``gpus_per_node``, ``nvlink_domain``, ``inter_node`` and ``hbm_tb_s``; all but the first may be
        missing.
    needed
        GPUs that the degrees multiply to: taken where there is no ``count``.

    Raises
    ------
    UnknownNameError
        For a GPU that nobody knows.
    InputError
        For GPUs that do not fill nodes.
    """
    found = preset(_gpu_name(hardware["gpu"]))
    count = int(hardware.get("count") or needed)
    per_node = min(int(hardware.get("gpus_per_node") or found.node.per_node), count)
    if count % per_node:
        raise InputError(f"{count} GPUs do not fill nodes of {per_node}", field="count")
    assumed = [] if hardware.get("count") else [f"number of GPUs: {count}, the fewest that the degrees need"]
    between, said = _between(hardware, found, per_node)
    if count > per_node and said:
        assumed.append(said)
    gpu = found.gpu
    if "hbm_tb_s" in hardware:
        gpu = replace(gpu, memory_bandwidth=float(hardware["hbm_tb_s"]) * 1e12)
    domain = int(hardware.get("nvlink_domain") or per_node)
    return (
        Cluster(
            gpu=gpu,
            per_node=per_node,
            nodes=count // per_node,
            inside=found.node.inside,
            between=replace(found.node.between, bandwidth=between),
            domain=max(per_node, min(domain, count)),
        ),
        assumed,
    )


def _gpu_name(text: str) -> str:
    """Without what stands in brackets: ``A100 (NVIDIA Ampere)``."""
    return re.sub(r"\s*\(.*\)", "", text)


def _between(hardware: Mapping[str, Any], found: Preset, per_node: int) -> tuple[float, str]:
    """Bytes/s of one GPU over the network, and what was assumed of it."""
    text = hardware.get("inter_node", "")
    match = _RATE.search(text)
    if match is None:
        usual = found.node.between.bandwidth
        return usual, f"network: {usual / 1e9:g} GB/s a GPU, as such nodes usually have"
    rate = float(match[2]) * 1e9 / (_BITS if match[3] == "b" else 1)
    if match[1]:
        return rate * int(match[1]) / per_node, ""
    return (rate / per_node if "a node" in text else rate), ""
