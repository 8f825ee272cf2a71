"""Settings of a run's row in pipeplan's terms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.published_runs.bridge import Release, bridge_software
from pipeplan.extensions.planning.estimates.software import software
from pipeplan.extensions.planning.hardware import Cluster, Preset, preset
from pipeplan.extensions.planning.workload import Precision
from pipeplan.foundation.errors import InputError

# Specific names come before general ones: "torchtitan ... eager" before "torchtitan".
_BY_WORDS = (
    (r"torchtitan.*\beager\b", "torchtitan-eager"),
    (r"torchtitan.*row-?wise.*\basync\s*-?tp\b(?!.*vanilla)", "torchtitan-row-wise+hidden-tensor"),
    (r"torchtitan.*row-?wise", "torchtitan-row-wise"),
    (r"torchtitan.*(?:2024|one-stop).*\basync\s*-?tp\b(?!.*vanilla)", "torchtitan-2024+hidden-tensor"),
    (r"torchtitan.*\basync\s*-?tp\b(?!.*vanilla)", "torchtitan+hidden-tensor"),
    (r"torchtitan.*(?:2024|one-stop)", "torchtitan-2024"),
    (r"torchtitan", "torchtitan"),
    (r"megatron[ -]bridge", "megatron-bridge"),
    (r"automodel", "automodel+tokens-to-neighbours"),
    (r"kempnerforge.*\beager\b", "kempnerforge-eager"),
    (r"kempnerforge", "kempnerforge"),
    (r"nemo|dgx cloud", "nemo"),
    (r"(?:llm-foundry|mosaicml|\bmpt\b).*\bpure\b", "llm-foundry-pure"),
    (r"llm-foundry|mosaicml|\bmpt\b", "llm-foundry"),
    (r"deepseek-v3 technical|hai-llm|dualpipe", "hai-llm"),
    (r"primus", "primus"),
    (r"megascale", "megascale"),
    (r"simumax", "megatron-core-plain"),
    (r"golden values", "megatron-core+unfused-loss"),
    (r"megatron[ -]core|parallel folding", "megatron-core"),
    (r"turing nlg|deepspeed|vtrain", "megatron-deepspeed"),
    (r"efficient large-scale language model training", "megatron-lm-2021+gradients-added-apart"),
    (r"zero bubble|megatron-lm|activation recomputation", "megatron-lm-2021"),
)
"""Patterns of a row's framework, source and precision; the first match decides."""


_STUDIED = re.compile(r"\basync\s*-?tp\b", re.IGNORECASE)
"""Matches what the title of a study compares: its runs are with and without it, so that the title decides nothing."""


def software_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of a row's software, and the assumption about it.

    The row's ``software`` decides, a name of the software table; else its framework if it names one, otherwise the source.
    Without any, fully sharded runs are assumed to use torchtitan, those on A100 with an ungated FFN the Megatron-LM of that
    time, and others Megatron Core. Notes decide nothing.

    Raises
    ------
    UnknownNameError
        If ``software`` is not in the table.
    """
    if row.get("software"):
        return software(str(row["software"])).name, ""
    title = _title(row)
    framework = row.get("framework") or ""
    if re.fullmatch(r"megatron-lm", framework, re.IGNORECASE):
        return "megatron-core-plain", "software: Megatron-LM with flash attention, without overlap flags"
    for text, studied in ((framework, False), (_STUDIED.sub("", title), _STUDIED.search(title) is not None)):
        named = _by_words(text, row, studied=studied)
        if named is not None:
            return named
    if row.get("parallel", {}).get("fsdp"):
        return "torchtitan", "software: torchtitan, because parameters are fully sharded"
    if "A100" in str(row.get("hardware", {}).get("gpu")) and not row.get("model", {}).get("gated", True):
        return "megatron-lm-2021", "software: Megatron-LM before flash attention, as usual for such models on A100"
    return "megatron-core", "software: Megatron Core"


def _by_words(text: str, row: Mapping[str, Any], *, studied: bool) -> tuple[str, str] | None:
    """Return the software that a text of a row names, and the assumption about it; None if it names none."""
    words = f"{text} {row.get('precision') or ''}"
    name = next((name for pattern, name in _BY_WORDS if text and re.search(pattern, words, re.IGNORECASE)), None)
    if name is None:
        return None
    if studied and name.startswith("torchtitan") and "hidden-tensor" not in name:
        return name, "software: without asynchronous tensor parallelism"
    return _released(name, row)


def _title(row: Mapping[str, Any]) -> str:
    source = row.get("source") or {}
    return source if isinstance(source, str) else str(source.get("title") or "")


_SINCE_FLASH_3: Release = (24, 9, 0)
"""Release of NeMo from which attention has kernels for Hopper: Transformer Engine 1.11 and cuDNN 9.5 (October 2024)."""

_RELEASE = re.compile(r"(?<![\d.])(2\d)\.(0[1-9]|1[0-2])(?:\.(\d\d))?(?!\d)")
"""Matches ``26.08 container``, ``26.06.01 container``, ``tag v25.02.02``, ``24.07 summary``."""

_DATE = re.compile(r"20(2\d)-?(0[1-9]|1[0-2])")
"""Matches the year and month of ``2024-07``, ``2024-07-15`` and ``202407``."""


def _released(name: str, row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the software of a trainer in the release that a row names, and the assumption about the release.

    Without a release, it is that of the source's date; without a date, the current one.
    """
    if name not in ("megatron-bridge", "nemo"):
        return name, ""
    release, dated = _release(row), _date(row)
    assumed = ""
    if release is None:
        when = "the current one" if dated is None else f"{dated[0]}.{dated[1]:02}, by the date of the source"
        assumed = f"software: release of {name}: {when}"
    if name == "megatron-bridge":
        return bridge_software(row, release or dated), assumed
    return "nemo-2024" if (release or dated or _SINCE_FLASH_3) < _SINCE_FLASH_3 else name, assumed


def _release(row: Mapping[str, Any]) -> Release | None:
    """Return the release of a row: its own, or that in its source or framework, in this order."""
    source = row.get("source") or {}
    parts = [source] if isinstance(source, str) else [source.get(key) for key in ("version", "locator", "title")]
    matches = (_RELEASE.search(str(text or "")) for text in (row.get("release"), *parts, row.get("framework")))
    match = next((match for match in matches if match), None)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def _date(row: Mapping[str, Any]) -> Release | None:
    source = row.get("source") or {}
    match = None if isinstance(source, str) else _DATE.match(str(source.get("date") or ""))
    return (int(match[1]), int(match[2]), 0) if match else None


_PRECISIONS: tuple[tuple[str, Precision], ...] = (
    (r"nvfp4|fp4", "nvfp4"),
    (r"mxfp8|fp8-mx", "mxfp8"),
    (r"(fp8|float8)", "fp8"),
    (r"bf16", "bf16"),
    (r"fp16", "fp16"),
)


def precision_of(text: str | None) -> tuple[Precision, str]:
    """Return the precision of a row's products, and the assumption about it."""
    if not text:
        return "bf16", "precision: bf16"
    for words, precision in _PRECISIONS:
        if re.search(words, text, re.IGNORECASE):
            return precision, "precision: bf16" if "assumed" in text else ""
    raise InputError(f"unknown precision '{text}'", field="precision")


_RECOMPUTE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"^none", ()),
    (r"recomputes RMSNorm and MLA up-projection", ("layernorm", "moe_act", "mla_up_proj")),
    (r"^full", ("full",)),
    (r"per[ -]op|recipe default", ("selective-op",)),
    (r"^selective", ("core_attn",)),
    (r"^mlp, norms and attention", ("mlp", "layernorm", "core_attn")),
)
"""Patterns of a row's recomputation with their modules; Megatron's ``selective`` is the attention core, the last pattern is
MaxText's ``save_dot_except_mlp``."""


def recompute_of(text: str | None) -> tuple[str, ...] | None:
    """Return the modules that a row recomputes; None if it does not say."""
    return next((modules for words, modules in _RECOMPUTE if re.search(words, text or "")), None)


# Optional ports, number, and Gb or GB per second.
_RATE = re.compile(r"(?:(\d+)\s*x\s*)?(\d+(?:\.\d+)?)\s*G(b|B)(?:it)?(?:/s|ps)", re.ASCII)
"""Matches ``8x200 Gb/s``, ``400 Gb/s a GPU``, ``50 GB/s``."""

_BITS = 8


def cluster_of(hardware: Mapping[str, Any], needed: int) -> tuple[Cluster, list[str]]:
    """Return the cluster of a row, and the assumptions about it.

    Parameters
    ----------
    hardware
        Mapping with ``gpu`` and optionally ``count``, ``gpus_per_node``, ``nvlink_domain``, ``inter_node`` and ``hbm_tb_s``.
    needed
        Number of GPUs that the degrees multiply to; the default of ``count``.

    Raises
    ------
    UnknownNameError
        If the GPU is unknown.
    InputError
        If the GPUs do not fill whole nodes.
    """
    usual = preset(re.sub(r"\s*\(.*\)", "", hardware["gpu"]))  # without brackets: ``A100 (NVIDIA Ampere)``
    count = int(hardware.get("count") or needed)
    per_node = min(int(hardware.get("gpus_per_node") or usual.node.per_node), count)
    if count % per_node:
        raise InputError(f"{count} GPUs do not fill whole nodes of {per_node}", field="count")
    assumed = [] if hardware.get("count") else [f"number of GPUs: {count}, the fewest that the degrees need"]
    between, assumption = _between(hardware, usual, per_node)
    if count > per_node and assumption:
        assumed.append(assumption)
    gpu = usual.gpu
    if "hbm_tb_s" in hardware:
        gpu = replace(gpu, memory_bandwidth=float(hardware["hbm_tb_s"]) * 1e12)
    domain = int(hardware.get("nvlink_domain") or per_node)
    return (
        Cluster(
            gpu=gpu,
            per_node=per_node,
            nodes=count // per_node,
            inside=usual.node.inside,
            between=replace(usual.node.between, bandwidth=between),
            domain=max(per_node, min(domain, count)),
        ),
        assumed,
    )


def _between(hardware: Mapping[str, Any], usual: Preset, per_node: int) -> tuple[float, str]:
    """Return the network bandwidth of one GPU in bytes/s, and the assumption about it."""
    text = hardware.get("inter_node", "")
    match = _RATE.search(text)
    if match is None:
        bandwidth = usual.node.between.bandwidth
        return bandwidth, f"network: {bandwidth / 1e9:g} GB/s per GPU, as usual for such nodes"
    rate = float(match[2]) * 1e9 / (_BITS if match[3] == "b" else 1)
    if match[1]:
        return rate * int(match[1]) / per_node, ""
    return (rate / per_node if "a node" in text else rate), ""
