"""Which software a published row ran on, and in which numbers: from its framework, its source's title, and its precision."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeplan.errors import InputError
from pipeplan.workload import Precision

_BY_WORDS = (
    (r"torchtitan.*\beager\b", "torchtitan-eager"),
    (r"torchtitan.*row-?wise.*\basync\s*-?tp\b(?!.*vanilla)", "torchtitan-row-wise-async-tp"),
    (r"torchtitan.*row-?wise", "torchtitan-row-wise"),
    (r"torchtitan.*\basync\s*-?tp\b(?!.*vanilla)", "torchtitan-async-tp"),
    (r"torchtitan.*2024", "torchtitan-2024"),
    (r"torchtitan", "torchtitan"),
    (r"megatron[ -]bridge", "megatron-bridge"),
    (r"nemo|dgx cloud", "nemo"),
    (r"(?:llm-foundry|mosaicml|\bmpt\b).*\bpure\b", "llm-foundry-pure"),
    (r"llm-foundry|mosaicml|\bmpt\b", "llm-foundry"),
    (r"deepseek-v3 technical|hai-llm|dualpipe", "hai-llm"),
    (r"primus", "primus"),
    (r"megascale", "megascale"),
    (r"simumax", "megatron-core-plain"),
    (r"golden values", "megatron-core-unfused-loss"),
    (r"megatron[ -]core|parallel folding", "megatron-core"),
    (r"turing nlg|deepspeed|vtrain", "megatron-deepspeed"),
    (r"efficient large-scale language model training", "megatron-lm-2021-unfused"),
    (r"zero bubble|megatron-lm|activation recomputation", "megatron-lm-2021"),
)
"""Words of a row's framework, source and precision, the first that is found deciding."""


def software_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a row's software, and what was assumed.

    The framework decides where the row names one; else its source. Of rows that name neither: fully sharded ones ran on
    PyTorch's FSDP as torchtitan does it, those on A100 with an ungated FFN on the Megatron-LM of that time, others on
    Megatron Core.
    """
    source = row.get("source", {})
    title = source if isinstance(source, str) else str(source.get("title", ""))
    detail = f"{row.get('precision') or ''} {row.get('notes') or ''}"
    framework = row.get("framework") or ""
    if re.fullmatch(r"megatron-lm", framework, re.IGNORECASE):
        return "megatron-core-plain", "software: Megatron-LM since flash attention, without flags for overlap"
    for text in (framework, title):
        for words, name in _BY_WORDS:
            if text and re.search(words, f"{text} {detail}", re.IGNORECASE):
                return (name if name != "megatron-bridge" else _bridge(row)), ""
    if row.get("parallel", {}).get("fsdp"):
        return "torchtitan", "software: torchtitan's, for parameters are fully sharded"
    if "A100" in str(row.get("hardware", {}).get("gpu")) and not row.get("model", {}).get("gated", True):
        return "megatron-lm-2021", "software: Megatron-LM before flash attention, as models of this kind had on A100"
    return "megatron-core", "software: Megatron Core"


_SINCE_GRAPHS, _SINCE_EXCHANGES = (26, 4), (26, 6)
"""Releases of Megatron Bridge from which its recipes capture whole graphs, and from which those in MXFP8 run exchanges of
experts beside computation."""


def _bridge(row: Mapping[str, Any]) -> str:
    """By the release that a row's locator names (``26.08 container``), and by whether experts' exchanges leave the node.

    Earlier recipes ran only these beside computation (scripts/performance/configs of its repository).
    """
    source, hardware = row.get("source", {}), row.get("hardware", {})
    locator = "" if isinstance(source, str) else str(source.get("locator", ""))
    found = re.search(r"\b(\d\d)\.(\d\d)\b", locator)
    release = (int(found[1]), int(found[2])) if found else _SINCE_EXCHANGES
    joined = int(hardware.get("nvlink_domain") or hardware.get("gpus_per_node") or 1)
    leaves = int(row.get("parallel", {}).get("ep", 1)) > joined
    small = re.search(r"mx", row.get("precision") or "", re.IGNORECASE) is not None
    if small and (release >= _SINCE_EXCHANGES or leaves):
        return "megatron-bridge"
    return "megatron-bridge-26.04" if release >= _SINCE_GRAPHS else "megatron-bridge-26.02"


_PRECISIONS: tuple[tuple[str, Precision], ...] = (
    (r"nvfp4|fp4", "nvfp4"),
    (r"mxfp8|fp8-mx", "mxfp8"),
    (r"(fp8|float8)", "fp8"),
    (r"bf16", "bf16"),
    (r"fp16", "fp16"),
)


def precision_of(text: str | None) -> tuple[Precision, str]:
    """The precision of a row's products, and what was assumed.

    Raises
    ------
    InputError
        For words that are not understood.
    """
    if not text:
        return "bf16", "precision: bf16"
    for words, precision in _PRECISIONS:
        if re.search(words, text, re.IGNORECASE):
            return precision, "precision: bf16" if "assumed" in text else ""
    raise InputError(f"the precision '{text}' is not understood", field="precision")
