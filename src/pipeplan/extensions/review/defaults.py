"""Values of settings that a trainer takes where a configuration leaves them out, from the trainer's own code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from pipeplan.extensions.review.settings import SETTINGS
from pipeplan.extensions.review.values import value_of


@dataclass(frozen=True, slots=True)
class TrainerDefaults:
    """Defaults of a trainer.

    Attributes
    ----------
    source
        Files of the trainer that set them: its parser, dataclasses or base configurations.
    values
        Words ``setting=value`` in the row form of a configuration; an empty value is null.
    base
        Trainer whose defaults apply to the other settings; empty: none.
    """

    source: str
    values: str
    base: str = ""


_EVEN = (
    "tp=1 pp=1 vpp= cp=1 ep=1 layout= first_stage_layers= last_stage_layers= account_embedding=false account_loss=false "
    "layers_per_virtual_stage= hybrid_pattern= group_size= layer_list= noop_layers= "
)
"""Megatron-core's split without a setting: one rank, one chunk, the same number of layers everywhere."""

DEFAULTS: Mapping[str, TrainerDefaults] = MappingProxyType(
    {
        "megatron-core": TrainerDefaults(
            "Megatron-LM megatron/core model_parallel_config.py, transformer/transformer_config.py, optimizer/*_config.py",
            _EVEN + "cuda_graph_impl='none' enable_cuda_graph=false external_cuda_graph=false ep_a2a_overlap=false "
            "delay_wgrad=false early_attn_release=false dispatch_overlap=false shared_expert_overlap=false "
            "fine_grained_offloading=false cpu_offloading=false fp32_residual=false hybrid_context_parallel=false "
            "hierarchical_cp= defer_embedding_wgrad=false p2p_warmup_overlap=false first_last_layers_bf16=false mhc=false "
            "capacity_factor= pad_to_capacity=false cpu_offloading_layers=0 router_padding=false eval_global_batch= "
            "eval_micro_batch= param_gather_with_step=false distribute_saved_activations=false",
        ),
        "megatron-lm": TrainerDefaults(
            "Megatron-LM megatron/training/arguments.py, megatron/training/config/*.py and the dataclasses of its core",
            "tp=1 pp=1 vpp= cp=1 ep=1 etp= hierarchical_cp= cp_comm_type= group_size= eval_global_batch= "
            "eval_micro_batch= rampup_batch_size= experts= topk=2 moe_ffn= shared_expert_size= mtp_layers= "
            "untied=false hybrid_pattern= spec= mamba_num_heads= mamba_head_dim=64 mamba_state_dim=128 "
            "mamba_num_groups=8 linear_num_key_heads=16 linear_key_head_dim=128 linear_num_value_heads=32 "
            "linear_value_head_dim=128 linear_conv_kernel_dim=4 output_gate=false moe_latent= mla=false kv_lora=512 "
            "qk_nope=128 qk_rope=64 v_dim=128 gated=false group_query_attention=false attention_variant= "
            "add_bias_linear=true add_qkv_bias=false qk_layernorm=false window= window_every= mhc=false "
            "attention_dropout=0.1 hidden_dropout=0.1 layout= first_stage_layers= last_stage_layers= "
            "account_embedding=false account_loss=false layers_per_virtual_stage= standalone_embedding=false "
            "layer_list= noop_layers= bf16=false fp16=false fp8= fp8_recipe=delayed fp4= fp8_param_gather=false "
            "fp4_param_gather=false first_last_layers_bf16=false reuse_grad_buffer=false fp32_residual=false "
            "grad_reduce_in_bf16=false fp32_gradients=false transformer_impl=transformer_engine "
            "recompute_granularity= recompute_method= recompute_num_layers= recompute_modules= "
            "recompute_activations=false distribute_saved_activations=false cpu_offloading=false "
            "cpu_offloading_layers=0 fine_grained_offloading=false offload_modules= dispatcher=allgather "
            "dispatcher_backend= deepep=false ep_a2a_overlap=false delay_wgrad=false shared_expert_overlap=false "
            "early_attn_release=false dispatch_overlap=false grouped_gemm=false capacity_factor= "
            "pad_to_capacity=false load_balancing=aux_loss router_groups= router_group_topk= router_pre_softmax=false "
            "router_score=softmax router_expert_bias=false router_padding=false router_dtype= sequence_parallel=false "
            "tp_comm_overlap=false overlap_p2p=true p2p_warmup_overlap=false overlap_grad_reduce=false "
            "overlap_param_gather=false param_gather_with_step=false align_param_gather=false "
            "distributed_optimizer=false optimizer=adam precision_aware_optimizer=false optimizer_cpu_offload=false "
            "main_grads_dtype=fp32 exp_avg_dtype=fp32 megatron_fsdp=false torch_fsdp2=false ckpt_format=torch_dist "
            "gradient_accumulation_fusion=true defer_embedding_wgrad=false device_connections= cuda_graph_impl='none' "
            "cuda_graph_modules= enable_cuda_graph=false external_cuda_graph=false check_nan=true loss_fusion=false "
            "loss_fusion_impl=native hybrid_context_parallel=false",
        ),
        "mindspeed": TrainerDefaults("MindSpeed-LLM mindspeed_llm/training/arguments.py", "", "megatron-lm"),
        "pai-megatron-patch": TrainerDefaults(
            "Pai-Megatron-Patch megatron_patch/arguments.py on Megatron-LM's parser", "", "megatron-lm"
        ),
        "slime": TrainerDefaults(
            "slime slime/utils/arguments.py, slime/backends/megatron_utils/arguments.py",
            "micro_batch=1 bf16=true distributed_optimizer=true dispatcher=alltoall",
            "megatron-lm",
        ),
        "megatron-bridge": TrainerDefaults(
            "Megatron-Bridge src/megatron/bridge/models/gpt_provider.py on the dataclasses of Megatron-core",
            "cpu_offloading=false recompute_granularity= recompute_method= recompute_num_layers= sequence_parallel=false",
            "megatron-core",
        ),
        "nemo": TrainerDefaults("NeMo nemo/lightning/pytorch/strategies/megatron_strategy.py", "", "megatron-core"),
        "nemo-rl": TrainerDefaults("NeMo RL nemo_rl/models/megatron/setup.py on Megatron-Bridge", "", "megatron-core"),
        "primus": TrainerDefaults(
            "Primus primus/configs/modules/megatron/pre_trainer.yaml and sft_trainer.yaml where they agree; models set ep",
            "ep=? etp=? sequence_parallel=true bf16=true fp16=false fp8= fp4= fp8_recipe=delayed rampup_batch_size= "
            "distributed_optimizer=true overlap_grad_reduce=false overlap_param_gather=false "
            "param_gather_with_step=false align_param_gather=true overlap_p2p=true optimizer=adam "
            "precision_aware_optimizer=false optimizer_cpu_offload=false main_grads_dtype=fp32 exp_avg_dtype=fp32 "
            "megatron_fsdp=false torch_fsdp2=false ckpt_format=torch_dist recompute_granularity= "
            "recompute_activations=false distribute_saved_activations=false ep_a2a_overlap=false cp_comm_type=p2p "
            "hierarchical_cp= tp_comm_overlap=false defer_embedding_wgrad=false standalone_embedding=false "
            "check_nan=true first_last_layers_bf16=false grad_reduce_in_bf16=false fp32_gradients=false "
            "fp8_param_gather=false",
            "megatron-core",
        ),
        "ms-swift": TrainerDefaults(
            "ms-swift swift/megatron/arguments/megatron_args.py MegatronArguments, MegatronTunerMixin",
            "etp=1 sequence_parallel=false cp_comm_type= micro_batch=1 global_batch=16 "
            "recompute_granularity=selective recompute_method= recompute_num_layers= recompute_modules=core_attn "
            "distributed_optimizer=true megatron_fsdp=false overlap_p2p=true overlap_grad_reduce=false "
            "overlap_param_gather=false param_gather_with_step=false align_param_gather=true tp_comm_overlap=false "
            "optimizer=adam precision_aware_optimizer=false optimizer_cpu_offload=false main_grads_dtype=fp32 "
            "exp_avg_dtype=fp32 gradient_accumulation_fusion=true loss_fusion=true loss_fusion_impl=native fp8= "
            "fp8_recipe=delayed fp8_param_gather=false fp4= fp4_param_gather=false dispatcher=alltoall deepep=false "
            "grouped_gemm=true capacity_factor= pad_to_capacity=false shared_expert_overlap=false router_dtype=fp32 "
            "mtp_layers= peft=full lora_rank=8",
            "megatron-core",
        ),
        "verl": TrainerDefaults(
            "verl verl/trainer/config/engine/megatron.yaml, verl/trainer/config/ppo_megatron_trainer.yaml",
            "etp= distributed_optimizer=true recompute_granularity= recompute_method= recompute_num_layers=",
            "megatron-core",
        ),
        "nemo-automodel": TrainerDefaults(
            "NeMo AutoModel components/distributed/pipelining/config.py PipelineConfig, recipes/_dist_utils.py",
            "tp=1 pp=1 cp=1 ep=1 schedule=1f1b schedule_csv= micro_batch=1 layers_per_stage= round_stages= "
            "modules_per_part=",
        ),
        "torchtitan": TrainerDefaults(
            "torchtitan torchtitan/config/configs.py ParallelismConfig",
            "tp=1 pp=1 cp=1 ep=1 dp_replicate=1 dp_shard=-1 schedule=1F1B schedule_csv= layers_per_stage= "
            "modules_per_part= first_stage_less=1 last_stage_less=1",
        ),
        "gpt-neox": TrainerDefaults(
            "GPT-NeoX megatron/neox_arguments/neox_args.py NeoXArgsParallelism, NeoXArgsModel",
            "tp=1 pp=1 partition_method=type:transformer|mlp untied=false",
        ),
        "nanotron": TrainerDefaults(
            "nanotron src/nanotron/config/parallelism_config.py ParallelismArgs", "schedule=afab cp=1 ep=1"
        ),
        "openrlhf": TrainerDefaults("OpenRLHF openrlhf/cli/train_sft.py, openrlhf/cli/train_ppo_ray.py", "tp=1 cp=1"),
    }
)
"""Defaults by trainer, as in the releases of :data:`pipeplan.trainers.TRAINER_KINDS`."""


@cache
def defaults_of(trainer: str) -> Mapping[str, Any]:
    """Return the defaults of a trainer by the names of settings; empty for a trainer without a row."""
    row = DEFAULTS.get(trainer)
    if row is None:
        return MappingProxyType({})
    own = {
        name: value_of(SETTINGS[name], text) for name, _, text in (word.partition("=") for word in row.values.split())
    }
    return MappingProxyType({**defaults_of(row.base), **own})


SPLIT = frozenset(word.partition("=")[0] for word in _EVEN.split())
"""Settings of the pipeline's split, whose defaults are the same in all trainers on Megatron."""
