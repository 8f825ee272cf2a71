"""Sizes of models that configurations name and the planner has no shape of, as far as a trainer's code states them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.review.settings import SETTINGS
from pipeplan.extensions.review.values import value_of

# Sources: Primus primus/configs/models/megatron/*.yaml; slime scripts/models/*.sh; AutoModel components/models/*/config* and
# its examples; Megatron-Bridge recipes; Transformers' documentation of Qwen3.5.
_PUBLISHED = """
deepseek-llm-7b: layers=30 hidden=4096 heads=32 kv_groups=32 experts=
deepseek-v4-pro: layers=61 hidden=7168 heads=128 kv_groups=1 experts=384
glm4-9b: layers=40 hidden=4096 heads=32 kv_groups=2 experts=
glm4-32b: layers=64 hidden=6144 heads=48 kv_groups=8 experts=
grok2: layers=64 hidden=8192 heads=64 kv_groups=8 experts=8
hy3: layers=80 hidden=4096 heads=64 kv_groups=8 experts=192
inkling: layers=66 hidden=6144 heads=64 kv_groups=8 experts=256
k-exaone-2.0-750b-a37b: layers=78
kimi-k3: layers=93 hidden=7168 heads=96 experts=896
ling-1t: layers=80 experts=256
ling-mini-2.0: layers=20 hidden=2048 heads=16 kv_groups=4 experts=256
llama-3_3-nemotron-super-49b-v1: layers=80 hidden=8192 experts=
llama-3_3-nemotron-super-49b-v1_5: layers=80 hidden=8192 experts=
mimo-7b: layers=36 hidden=4096 heads=32 kv_groups=8 experts=
minimax-m3: layers=60 hidden=6144 heads=64 kv_groups=4 experts=128
mistral-medium-3.5-128b: layers=88 experts=
mistral-small-4-119b: layers=36 hidden=4096 heads=32 experts=128
qwen3.5-0.8b: layers=24 hidden=1024 heads=8 kv_groups=2 experts=
qwen3.5-4b: layers=32 hidden=2560 heads=16 kv_groups=4 experts=
qwen3.5-122b-a10b: layers=48 experts=256
step-3.5-flash: layers=45 hidden=4096 heads=64 experts=288
step-3.7-flash: layers=45 hidden=4096 heads=64 experts=288
"""

_OF_PRIMUS = """
glm4_7: layers=90 hidden=5120 heads=96 kv_groups=8 experts=160
kimi_k3_8l_official: layers=8 hidden=7168 heads=96 experts=896
mamba_370m: layers=48 hidden=1024
moe_1t: layers=96 hidden=8192 heads=64 kv_groups=8 experts=224
moe_2t: layers=96 hidden=8192 heads=64 kv_groups=8 experts=448
moe_4t: layers=96 hidden=8192 heads=64 kv_groups=8 experts=896
moe_515b: layers=96 hidden=8192 heads=64 kv_groups=8 experts=112
moe_proxy_single_node: layers=64 hidden=2048 heads=32 kv_groups=8 experts=128
qwen3_235b_a22b_4layer: layers=4 hidden=4096 heads=64 kv_groups=4 experts=128
"""
"""Names of Primus whose files differ from the published model, or are its own."""


def sizes_of_name(name: str, trainer: str = "") -> Mapping[str, Any] | None:
    """Return the sizes of a model by its name without suffixes; None if they are not known."""
    own = _table(_OF_PRIMUS).get(_key(name)) if trainer == "primus" else None
    return own or _table(_PUBLISHED).get(_key(name))


def _key(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


@cache
def _table(rows: str) -> Mapping[str, Mapping[str, Any]]:
    table = {}
    for row in rows.strip().splitlines():
        name, _, values = row.partition(":")
        words = (word.partition("=") for word in values.split())
        table[_key(name)] = MappingProxyType({size: value_of(SETTINGS[size], text) for size, _, text in words})
    return MappingProxyType(table)
