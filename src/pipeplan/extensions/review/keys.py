"""Meaning of the keys in trainers' files: the setting that each spells, and values that leave a setting out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.review.settings import SETTINGS, ReviewSetting

_KEYS: Mapping[str, ReviewSetting] = MappingProxyType(
    {key: setting for setting in SETTINGS.values() for key in setting.keys}
)


_OTHER_MODELS = re.compile(
    r"(?:^|\.)(?:ref|critic|reward|reward_model|teacher|teacher_model|draft|draft_model|rollout|generation|vllm|sglang)\."
)
"""Matches a key of a model beside the one that trains."""

_GROUPS: Mapping[str, frozenset[str]] = MappingProxyType({"nemo-rl": frozenset({"policy", "cluster"})})
"""Groups with the keys of the trained model, for trainers whose files configure other models beside it."""

_OTHER_NAMES = re.compile(r"(?:^|\.)[\w-]*(?:tokenizer|processor|data|dataset)[\w-]*\.")
"""Matches a key of a group whose paths name no model: the tokenizer's may be that of a smaller model."""


@lru_cache(1 << 14)
def setting_of(key: str, trainer: str | None = None) -> ReviewSetting | None:
    """Return the setting that a key of a file spells: ``--tensor-model-parallel-size``, ``cfg.model.mtp_num_layers``.

    Parameters
    ----------
    trainer
        Name of the trainer, some of which give a key a meaning of their own; empty: one that has no row. None: any trainer,
        for readers that pass on every key that one of them may mean.

    Returns
    -------
    ReviewSetting or None
        None for a key that no rule judges.
    """
    parts = [re.sub(r"[-\s]", "_", part.strip().lstrip("-")).lower() for part in key.split(".")]
    if _OTHER_MODELS.search(".".join(parts)) or (len(parts) > 1 and parts[0] not in _GROUPS.get(trainer or "", parts)):
        return None
    for name in (".".join(parts[-2:]), parts[-1]):
        setting = _named(name, trainer)
        if setting is not None:
            return None if setting.name == "model_name" and _OTHER_NAMES.search(".".join(parts)) else setting
        if name in OWN_KEYS.get(trainer or "", {}):
            return None
    return None


def _named(name: str, trainer: str | None) -> ReviewSetting | None:
    if trainer is None:
        own = (keys[name] for keys in OWN_KEYS.values() if keys.get(name))
        return _KEYS.get(name) or next((SETTINGS[setting] for setting in own), None)
    own_keys = OWN_KEYS.get(trainer, {})
    return SETTINGS.get(own_keys[name]) if name in own_keys else _KEYS.get(name)


def _own(keys: str) -> Mapping[str, str]:
    """Return keys with their settings from words ``key=setting``; a key without a setting has no meaning."""
    return MappingProxyType(dict(word.split("=") for word in keys.split()))


# Sources: the trainers' parsers and dataclasses, as in :mod:`pipeplan.extensions.review.defaults`.
OWN_KEYS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        # ms-swift's model_name is what the assistant calls itself. A checkpoint's folder may name a model.
        "ms-swift": _own(
            "model=model_name load=model_name mcore_model=model_name model_name= target_modules=lora_targets"
        ),
        # The batches of data and of PPO are counted in prompts, and are divided again before they reach Megatron.
        "verl": _own("model.path=model_name train_batch_size= model.target_modules=lora_targets"),
        "nemo-rl": _own("max_total_sequence_length=seq_length"),
        "slime": _own("global_batch_size= ref_load=model_name"),
        "openrlhf": _own(
            "pretrain=model_name actor.model_name_or_path=model_name ds.tensor_parallel_size=tp ds_tensor_parallel_size=tp "
            "ds.ring_attn_size=cp ring_attn_size=cp train.micro_batch_size=micro_batch micro_train_batch_size=micro_batch "
            "train.batch_size=global_batch train_batch_size=global_batch ds.zero_stage=zero_stage data.max_len=seq_length "
            "max_len=seq_length model_name_or_path=model_name num_nodes= num_gpus_per_node= target_modules=lora_targets"
        ),
        "megatron-bridge": _own("model_recipe_name=model_name"),
        # Sequences are packed to this length; 0 packs none.
        "nemo-automodel": _own("packed_sequence_size=seq_length"),
        # Megatron-LM's arguments set the number of virtual stages anew.
        "primus": _own("model=model_name virtual_pipeline_model_parallel_size="),
        "gpt-neox": _own(
            "model_parallel_size=tp pipe_parallel_size=pp pipe_partition_method=partition_method num_kv_heads=kv_groups "
            "intermediate_size=ffn global_num_gpus=gpus num_gpus=gpus_per_node fp16.enabled=fp16 bf16.enabled=bf16 "
            "no_weight_tying=untied moe_num_experts=experts moe_top_k=topk"
        ),
        "nanotron": _own(
            "parallelism.dp=dp parallelism.pp=pp parallelism.tp=tp expert_parallel_size=ep pp_engine=schedule "
            "batch_accumulation_per_replica=microbatches intermediate_size=ffn"
        ),
    }
)
"""Keys of which a trainer has a meaning of its own, with the setting; empty: none."""

UNSAID_AT_NULL: Mapping[str, frozenset[str]] = MappingProxyType({"megatron-bridge": frozenset({"pp_layout"})})
"""Keys whose null leaves the value to the trainer: the scripts of Megatron-Bridge then take the model's own layout."""

NONE_AT_ZERO: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "": frozenset({"vpp"}),
        "megatron-lm": frozenset(),
        # GPT-NeoX runs without its pipeline module at 0, and counts both degrees as 1.
        "gpt-neox": frozenset({"pp", "tp"}),
        "openrlhf": frozenset({"tp", "cp"}),
        # Batches that another part of the trainer decides.
        "verl": frozenset({"vpp", "global_batch", "micro_batch"}),
        "nemo-automodel": frozenset({"pp", "tp", "cp", "ep", "dp", "dp_replicate"}),
    }
)
"""Settings for which a trainer takes 0 as left out; the empty name stands for all other trainers.

A count of -1 is left out for every trainer.
"""


_SWITCHES: Mapping[str, tuple[str, Any]] = MappingProxyType(
    {
        "disable_bias_linear": ("add_bias_linear", False),
        "no_gradient_accumulation_fusion": ("gradient_accumulation_fusion", False),
        "no_overlap_p2p_communication": ("overlap_p2p", False),
        "no_check_for_nan_in_loss_and_grad": ("check_nan", False),
        "no_enable_sequence_parallel": ("sequence_parallel", False),
        "grad_reduce_in_fp32": ("grad_reduce_in_bf16", False),
    }
)
"""Switches with the setting that each turns off, and the value that it then has."""


def switch_of(key: str) -> tuple[str, Any] | None:
    """Return the setting that a switch turns off and its value then; None for other keys."""
    return _SWITCHES.get(key.rpartition(".")[2].lstrip("-").replace("-", "_").lower())
