"""How a trainer's files spell a setting, and beside which other one it belongs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.review.facts import Entry, ReviewFacts, SettingPlace
from pipeplan.extensions.review.readers import SourceText
from pipeplan.extensions.review.settings import SETTINGS


def _words(spellings: str) -> Mapping[str, str]:
    """Return names and texts from words ``name=text``."""
    return MappingProxyType(dict(word.split("=") for word in spellings.split()))


def _grouped(**groups: str) -> Mapping[str, str]:
    """Return the group of each setting from the settings of each group."""
    return MappingProxyType({name: group for group, names in groups.items() for name in names.split()})


_CORE_SPELLINGS = _words(
    "vpp=virtual_pipeline_model_parallel_size first_stage_layers=num_layers_in_first_pipeline_stage "
    "last_stage_layers=num_layers_in_last_pipeline_stage overlap_p2p=overlap_p2p_comm batch_p2p=batch_p2p_comm "
    "group_size=microbatch_group_size_per_vp_stage fp8=fp8 experts=num_moe_experts gpus=num_gpus"
)
"""Fields of Megatron-core's configuration where Megatron-LM's argument has another name."""

_OF_CORE = frozenset({"megatron-bridge", "nemo", "nemo-rl", "verl"})
"""Trainers whose files set Megatron-core's fields; those of others are Megatron-LM's arguments."""

_TORCH_SPELLINGS = {
    "torchtitan": _words(
        "tp=tensor_parallel_degree pp=pipeline_parallel_degree cp=context_parallel_degree ep=expert_parallel_degree "
        "dp_shard=data_parallel_shard_degree local_batch=local_batch_size micro_batch=pipeline_parallel_microbatch_size "
        "schedule=pipeline_parallel_schedule layers_per_stage=pipeline_parallel_layers_per_stage "
        "microbatches=num_pp_microbatches ac_mode=mode"
    ),
    "nemo-automodel": _words(
        "tp=tp_size pp=pp_size cp=cp_size ep=ep_size local_batch=local_batch_size micro_batch=pp_microbatch_size "
        "schedule=pp_schedule layers_per_stage=layers_per_stage round_stages=round_virtual_stages_to_pp_multiple"
    ),
}

BESIDE = {
    "ac_mode": (),
    "last_stage_layers": ("first_stage_layers",),
    "first_stage_layers": ("last_stage_layers",),
    "eval_global_batch": ("global_batch", "micro_batch"),
    "micro_batch": ("global_batch", "local_batch"),
    "local_batch": ("global_batch", "micro_batch"),
    "global_batch": ("micro_batch", "local_batch"),
    "microbatches": ("schedule", "pp"),
    "nodes": ("gpus_per_node",),
    "gpus_per_node": ("nodes",),
}
"""Settings beside which a new one is written; of all others those of the pipeline."""

PIPELINE = ("pp", "vpp", "layout", "first_stage_layers", "last_stage_layers", "tp", "cp", "ep", "schedule")

BRIDGE_PARTS = _grouped(
    train="global_batch micro_batch",
    validation="eval_global_batch eval_micro_batch",
    ddp="overlap_grad_reduce overlap_param_gather distributed_optimizer",
    checkpoint="ckpt_format",
)
"""Parts of Megatron-Bridge's configuration with settings that are not the model's."""

_GROUPS = {
    "torchtitan": _grouped(
        parallelism="tp pp cp ep etp dp_shard dp_replicate schedule micro_batch layers_per_stage first_stage_less "
        "last_stage_less modules_per_part schedule_csv fsdp_reshard",
        training="local_batch global_batch seq_length",
    ),
    "nemo-automodel": _grouped(
        distributed="tp pp cp ep dp dp_replicate sequence_parallel activation_checkpointing",
        pipeline="schedule micro_batch layers_per_stage round_stages microbatches",
        step_scheduler="local_batch global_batch",
    ),
    "nemo-rl": _grouped(policy="global_batch micro_batch seq_length"),
    "megatron-bridge": BRIDGE_PARTS,
}
"""Groups of a trainer's file, whose settings stand only beside each other; all other settings are the model's."""


def spelling(facts: ReviewFacts, name: str, form: str) -> str:
    """Return the key by which the trainer spells a setting."""
    own = _TORCH_SPELLINGS.get(facts.trainer.name, {}).get(name)
    if own is None and facts.trainer.name in _OF_CORE:
        own = _CORE_SPELLINGS.get(name)
    return own or SETTINGS[name].keys[0].rpartition(".")[2]


def plain(value: Any) -> str:
    """Return a value as YAML and JSON write it."""
    return value if isinstance(value, str) else json.dumps(value)


def anchor_of(
    source: SourceText, facts: ReviewFacts, name: str, free: Callable[[SettingPlace], bool]
) -> SettingPlace | None:
    """Return the place of a setting beside which another one belongs."""
    for other in (*BESIDE.get(name, ()), *PIPELINE, "global_batch", "micro_batch", "local_batch"):
        entry = facts.settings.get(other)
        if entry is None or not _is_anchor(entry, source) or not free(entry.place):
            continue
        if source.form != "shell" and _group_of(facts, source, name) != _group_of(facts, source, other):
            continue
        if source.form != "shell" or entry.place.key.startswith("--"):
            return entry.place
    return None


def _group_of(facts: ReviewFacts, source: SourceText, name: str) -> str:
    """Return the group of a setting in its trainer's files; empty for the model's."""
    if source.form == "python" and "megatron-bridge" in facts.trainer.scopes:
        return ""  # where attributes name the group
    return _GROUPS.get(facts.trainer.name, {}).get(name, "")


def _is_anchor(entry: Entry, source: SourceText) -> bool:
    return not entry.assumed and bool(entry.place.line) and entry.place.file == source.file
