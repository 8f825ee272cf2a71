"""Software of Megatron Bridge's performance recipes by release, model and system.

Source: NVIDIA-NeMo/Megatron-Bridge, the recipes in the tags v0.2.0 (25.11) to v0.6.0 (26.08), and for 25.09 the commit
a2884419; ``set_workload_base_configs`` selects the all-to-all dispatcher if a recipe names no other one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Release = tuple[int, int, int]
"""Year, month and number of a patch."""

CURRENT: Release = (26, 8, 0)

_DROPS = "megatron-bridge-25.09"
_PLAIN, _PLAIN_OVERLAPPED = "megatron-bridge-all-to-all", "megatron-bridge-all-to-all-overlapped"
_BY_RANK, _BY_RANK_OVERLAPPED = "megatron-bridge-26.04", "megatron-bridge-26.04-overlapped"
_WHOLE, _SLOWED = "megatron-bridge", "megatron-bridge-26.06.01"
_WHOLE_16 = "megatron-bridge-16-bit-attention"
_CAPTURED = frozenset({_WHOLE, _WHOLE_16, _SLOWED})

_NVL72, _HGX, _HOPPER = r"gb[23]00", r"^(dgx-)?b[23]00", r"h100|h200"
_25_09, _25_11, _26_02 = (25, 9, 0), (25, 11, 0), (26, 2, 0)
_26_04, _26_06, _26_08 = (26, 4, 0), (26, 6, 0), (26, 8, 0)

_RECIPES: tuple[tuple[str, str, Mapping[Release, str]], ...] = (
    (r"deepseek.*v3", _HOPPER, {_25_09: _BY_RANK_OVERLAPPED, _26_02: _BY_RANK}),
    (r"deepseek.*v3", r"gb200", {_25_09: _DROPS, _25_11: _BY_RANK, _26_06: _WHOLE_16}),
    (r"deepseek.*v3", r"^b200", {_25_09: _DROPS, _25_11: _PLAIN, _26_02: _BY_RANK, (26, 4, 1): _BY_RANK_OVERLAPPED}),
    (
        r"qwen3.*30b",
        _HOPPER,
        {_25_09: _PLAIN, _25_11: _PLAIN_OVERLAPPED, _26_02: _BY_RANK_OVERLAPPED, (26, 2, 1): _BY_RANK},
    ),
    (r"qwen3.*30b", r"^b200", {_25_09: _DROPS, _25_11: _PLAIN, (26, 2, 1): _BY_RANK, _26_06: _WHOLE}),
    (
        r"qwen3.*235b",
        _HOPPER,
        {_25_09: _PLAIN, _25_11: _PLAIN_OVERLAPPED, (26, 2, 1): _BY_RANK_OVERLAPPED, _26_04: _PLAIN_OVERLAPPED},
    ),
    (
        r"qwen3.*235b",
        r"^b200",
        {
            **{_25_09: _DROPS, _25_11: _PLAIN_OVERLAPPED, _26_02: _PLAIN, (26, 2, 1): _BY_RANK, _26_04: _PLAIN},
            (26, 6, 1): _WHOLE,
        },
    ),
    (
        r"qwen3.*235b",
        r"^b300",
        {_26_02: _PLAIN_OVERLAPPED, (26, 2, 1): _BY_RANK, _26_04: _PLAIN, (26, 4, 1): _BY_RANK, (26, 6, 1): _WHOLE},
    ),
    (r"qwen3.*next", _HOPPER, {_25_09: _PLAIN}),
    (r"qwen3.*next", r"", {_25_09: _PLAIN, _26_04: _BY_RANK}),
    (
        r"gpt.?oss",
        r"gb200",
        {
            _25_09: _PLAIN,
            _26_04: _BY_RANK_OVERLAPPED,
            (26, 4, 1): _PLAIN_OVERLAPPED,
            _26_06: _WHOLE,
            (26, 6, 1): _SLOWED,
            _26_08: _WHOLE,
        },
    ),
    (r"gpt.?oss", r"gb300", {_25_09: _PLAIN, _26_06: _WHOLE, (26, 6, 1): _SLOWED, _26_08: _WHOLE}),
    (r"gpt.?oss", r"^b300", {_25_09: _PLAIN, _26_04: _BY_RANK}),
    (r"gpt.?oss", r"^b200", {_25_09: _PLAIN, _26_04: _BY_RANK, (26, 4, 1): _PLAIN}),
    (r"gpt.?oss", _HOPPER, {_25_09: _PLAIN}),
    (r"kimi", _NVL72, {_25_09: _BY_RANK}),
    (r"kimi", r"", {_25_09: _PLAIN}),
    (r"nemotron", r"", {_25_09: _BY_RANK}),
    (r"", _HOPPER, {_25_09: _PLAIN, _26_02: _BY_RANK}),
    (r"", _HGX, {_25_09: _DROPS, _25_11: _PLAIN, _26_02: _BY_RANK, _26_06: _WHOLE}),
    (r"", r"", {_25_09: _DROPS, _25_11: _BY_RANK, _26_06: _WHOLE}),
)
"""Patterns of models and systems, the specific ones first, with the software from each release on."""


_WITHOUT_CHUNKS = {_PLAIN_OVERLAPPED: _PLAIN, _BY_RANK_OVERLAPPED: _BY_RANK}


def bridge_software(row: Mapping[str, Any], release: Release | None) -> str:
    """Return the Megatron Bridge software of a row; without a release, the current one.

    Only MXFP8 recipes capture whole CUDA graphs. Exchanges overlap the computation of another microbatch, so with a pipeline
    its ranks must have several chunks (``overlap_moe_expert_parallel_comm``).
    """
    model, gpu = str(row.get("model", {}).get("name", "")), str(row.get("hardware", {}).get("gpu", ""))
    parallel = row.get("parallel", {})
    recipes = next(
        by_release
        for models, systems, by_release in _RECIPES
        if re.search(models, model, re.IGNORECASE) and re.search(systems, gpu, re.IGNORECASE)
    )
    captured = re.search(r"mx", row.get("precision") or "", re.IGNORECASE) is not None
    chunked = int(parallel.get("pp") or 1) == 1 or int(parallel.get("vp") or 1) > 1
    names = [name for since, name in recipes.items() if since <= (release or CURRENT)]
    name = next((name for name in reversed(names) if name not in _CAPTURED or (captured and chunked)), _BY_RANK)
    return name if chunked else _WITHOUT_CHUNKS.get(name, name)
