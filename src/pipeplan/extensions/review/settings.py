"""Settings that a review judges: one row each, with the keys by which trainers and files spell it.

A row's first key is the attribute of Megatron's arguments, which is mostly also the field of Megatron-Bridge's and NeMo's
model. Keys with a dot are read only with that parent (``zero_optimization.stage``); all others with any parent
(``cfg.model.tensor_model_parallel_size``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

SettingKind = Literal["count", "number", "flag", "text", "names", "layout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSetting:
    """Setting that a rule can judge.

    Attributes
    ----------
    name
        Name in rules, in the row form of a configuration and in findings.
    kind
        Type of its values.
    keys
        Keys in files, the spelling of Megatron first.
    nullable
        Whether ``null`` is a value: no layout, no chunks. Otherwise ``null`` leaves the setting out.
    """

    name: str
    kind: SettingKind
    keys: tuple[str, ...]
    nullable: bool = False


class Unknown:
    """Type of :data:`UNKNOWN`."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
"""Marks a value that a configuration leaves out."""


def _setting(name: str, kind: SettingKind, keys: str, *, nullable: bool = False) -> ReviewSetting:
    return ReviewSetting(name=name, kind=kind, keys=tuple(keys.split()), nullable=nullable)


def _flag(name: str, keys: str = "") -> ReviewSetting:
    return _setting(name, "flag", keys or name)


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
_ROWS = (
    # Degrees and machines
    _setting("tp", "count", "tensor_model_parallel_size tensor_parallel_degree tp_size tensor_parallelism "
             "tensor_parallel tensor_parallel_size"),
    _setting("pp", "count", "pipeline_model_parallel_size pipeline_parallel_degree pp_size pipeline_parallelism "
             "pipeline_parallel pipeline.stages pipe_parallel_size"),
    _setting("vpp", "count", "num_virtual_stages_per_pipeline_rank virtual_pipeline_model_parallel_size "
             "virtual_pipeline_parallel_size virtual_pipeline_parallelism vp_size", nullable=True),
    _setting("cp", "count", "context_parallel_size context_parallel_degree cp_size context_parallelism"),
    _setting("ep", "count", "expert_model_parallel_size expert_parallel_degree ep_size expert_parallelism"),
    _setting("etp", "count", "expert_tensor_parallel_size expert_tensor_parallel_degree", nullable=True),
    _setting("dp", "count", "data_parallel_size dp_size data_parallelism"),
    _setting("dp_shard", "number", "data_parallel_shard_degree"),
    _setting("dp_replicate", "count", "data_parallel_replicate_degree dp_replicate_size"),
    _setting("gpus", "count", "world_size num_gpus gpu_count ngpu"),
    _setting("nodes", "count", "nnodes num_nodes actor_num_nodes ci.nodes"),
    _setting("gpus_per_node", "count", "nproc_per_node num_gpus_per_node devices trainer.devices n_gpus_per_node "
             "actor_num_gpus_per_node gpus_per_node"),
    _setting("device", "text", "gpu_name gpu_type"),
    _setting("hierarchical_cp", "names", "hierarchical_context_parallel_sizes", nullable=True),
    _setting("cp_comm_type", "names", "cp_comm_type", nullable=True),
    # Batches
    _setting("micro_batch", "count", "micro_batch_size train_micro_batch_size_per_gpu train_micro_batch_size "
             "pp_microbatch_size pipeline_parallel_microbatch_size"),
    _setting("global_batch", "count", "global_batch_size train_batch_size train_global_batch_size"),
    _setting("local_batch", "count", "local_batch_size"),
    _setting("microbatches", "count", "num_microbatches gradient_accumulation_steps num_pp_microbatches"),
    _setting("group_size", "count", "microbatch_group_size_per_virtual_pipeline_stage "
             "microbatch_group_size_per_vp_stage", nullable=True),
    _setting("eval_global_batch", "count", "eval_global_batch_size", nullable=True),
    _setting("eval_micro_batch", "count", "eval_micro_batch_size", nullable=True),
    _setting("rampup_batch_size", "names", "rampup_batch_size", nullable=True),
    _setting("seq_length", "count", "seq_length encoder_seq_length sequence_length seq_len max_context_length max_length"),
    _setting("max_position_embeddings", "count", "max_position_embeddings"),
    _setting("pad_multiple", "count", "make_sequence_length_divisible_by"),
    _flag("packed", "sequence_packing.enabled dynamic_batching.enabled"),
    # The model
    _setting("model_name", "text", "model_name pretrained_model_name_or_path model_name_or_path hf_path hf_model_id "
             "hf_model_path model_id hf_checkpoint"),
    _setting("layers", "count", "num_layers n_layers num_hidden_layers"),
    _setting("hidden", "count", "hidden_size"),
    _setting("heads", "count", "num_attention_heads"),
    _setting("kv_groups", "count", "num_query_groups num_key_value_heads"),
    _setting("head_dim", "count", "kv_channels"),
    _setting("ffn", "count", "ffn_hidden_size"),
    _setting("vocab", "count", "padded_vocab_size vocab_size"),
    _setting("experts", "count", "num_experts num_moe_experts", nullable=True),
    _setting("topk", "count", "moe_router_topk"),
    _setting("moe_ffn", "count", "moe_ffn_hidden_size", nullable=True),
    _setting("moe_layer_freq", "text", "moe_layer_freq"),
    _setting("shared_expert_size", "count", "moe_shared_expert_intermediate_size", nullable=True),
    _setting("mtp_layers", "count", "mtp_num_layers", nullable=True),
    _setting("untied", "flag", "untie_embeddings_and_output_weights"),
    _setting("tied", "flag", "share_embeddings_and_output_weights tie_word_embeddings enable_weight_tying tied_embeddings"),
    _setting("hybrid_pattern", "text", "hybrid_layer_pattern hybrid_override_pattern", nullable=True),
    _setting("spec", "names", "spec", nullable=True),
    _setting("mamba_num_heads", "count", "mamba_num_heads", nullable=True),
    _setting("mamba_head_dim", "count", "mamba_head_dim"),
    _setting("mamba_state_dim", "count", "mamba_state_dim"),
    _setting("mamba_num_groups", "count", "mamba_num_groups"),
    _setting("linear_num_key_heads", "count", "linear_num_key_heads"),
    _setting("linear_key_head_dim", "count", "linear_key_head_dim"),
    _setting("linear_num_value_heads", "count", "linear_num_value_heads"),
    _setting("linear_value_head_dim", "count", "linear_value_head_dim"),
    _setting("linear_conv_kernel_dim", "count", "linear_conv_kernel_dim"),
    _flag("output_gate", "attention_output_gate"),
    _setting("moe_latent", "count", "moe_latent_size", nullable=True),
    _flag("mla", "multi_latent_attention"),
    _setting("q_lora", "count", "q_lora_rank"),
    _setting("kv_lora", "count", "kv_lora_rank"),
    _setting("qk_nope", "count", "qk_head_dim"),
    _setting("qk_rope", "count", "qk_pos_emb_head_dim"),
    _setting("v_dim", "count", "v_head_dim"),
    _flag("gated", "swiglu quick_geglu gated_linear_unit"),
    _setting("dense_layers", "count", "first_k_dense_replace"),
    _flag("group_query_attention"),
    _setting("attention_variant", "text", "experimental_attention_variant", nullable=True),
    _setting("position_embedding", "text", "position_embedding_type"),
    _flag("add_bias_linear"),
    _flag("add_qkv_bias"),
    _setting("normalization", "text", "normalization"),
    _flag("qk_layernorm"),
    _setting("window", "text", "window_size", nullable=True),
    _setting("window_every", "text", "window_attn_skip_freq", nullable=True),
    _setting("softmax", "text", "softmax_type"),
    _flag("mhc", "enable_mhc_connections"),
    _setting("vision", "flag", "has_vision_encoder"),
    _setting("attention_dropout", "number", "attention_dropout"),
    _setting("hidden_dropout", "number", "hidden_dropout"),
    # The split into stages, and the schedule
    _setting("layout", "layout", "pipeline_model_parallel_layout pp_layout pipeline_layout", nullable=True),
    _setting("first_stage_layers", "count", "decoder_first_pipeline_num_layers "
             "num_layers_in_first_pipeline_stage", nullable=True),
    _setting("last_stage_layers", "count", "decoder_last_pipeline_num_layers "
             "num_layers_in_last_pipeline_stage", nullable=True),
    _flag("account_embedding", "account_for_embedding_in_pipeline_split"),
    _flag("account_loss", "account_for_loss_in_pipeline_split"),
    _setting("layers_per_virtual_stage", "count", "num_layers_per_virtual_pipeline_stage", nullable=True),
    _setting("layers_per_stage", "count", "pipeline_parallel_layers_per_stage pipeline.layers_per_stage", nullable=True),
    _setting("first_stage_less", "count", "pipeline_parallel_first_stage_less_layers"),
    _setting("last_stage_less", "count", "pipeline_parallel_last_stage_less_layers"),
    _setting("round_stages", "text", "round_virtual_stages_to_pp_multiple round_to_pp_multiple", nullable=True),
    _setting("modules_per_part", "layout", "module_fqns_per_model_part", nullable=True),
    _setting("partition_method", "text", "partition_method pipeline.partition"),
    _setting("schedule", "text", "pipeline_parallel_schedule pp_schedule"),
    _setting("schedule_csv", "text", "pipeline_parallel_schedule_csv pp_schedule_csv", nullable=True),
    _setting("standalone_embedding", "flag", "standalone_embedding_stage"),
    _setting("layer_list", "names", "num_layer_list", nullable=True),
    _setting("noop_layers", "names", "noop_layers", nullable=True),
    # Number formats
    _setting("precision", "text", "precision compute_dtype mixed_precision"),
    _flag("bf16"),
    _flag("fp16"),
    _setting("fp8", "text", "fp8_format fp8", nullable=True),
    _setting("fp8_recipe", "text", "fp8_recipe", nullable=True),
    _setting("fp4", "text", "fp4_format fp4", nullable=True),
    _flag("fp8_param_gather", "fp8_param_gather fp8_param"),
    _flag("fp4_param_gather", "fp4_param_gather fp4_param"),
    _flag("first_last_layers_bf16"),
    _setting("layers_at_start_bf16", "number", "num_layers_at_start_in_bf16"),
    _setting("layers_at_end_bf16", "number", "num_layers_at_end_in_bf16"),
    _flag("reuse_grad_buffer", "reuse_grad_buf_for_mxfp8_param_ag"),
    _setting("pipeline_dtype", "text", "pipeline_dtype", nullable=True),
    _flag("fp32_residual", "fp32_residual_connection"),
    _flag("grad_reduce_in_bf16"),
    _flag("fp32_gradients", "accumulate_allreduce_grads_in_fp32"),
    _setting("transformer_impl", "text", "transformer_impl"),
    _setting("te_version", "text", "transformer_engine_version te_version"),
    _setting("torch_version", "text", "torch_version pytorch_version"),
    # Recomputation and offloading
    _setting("recompute_granularity", "text", "recompute_granularity", nullable=True),
    _setting("recompute_method", "text", "recompute_method", nullable=True),
    _setting("recompute_num_layers", "number", "recompute_num_layers", nullable=True),
    _setting("recompute_modules", "names", "recompute_modules", nullable=True),
    _flag("recompute_activations"),
    _flag("distribute_saved_activations"),
    _setting("activation_checkpointing", "flag", "activation_checkpointing"),
    _setting("ac_mode", "text", "activation_checkpoint.mode", nullable=True),
    _flag("cpu_offloading"),
    _setting("cpu_offloading_layers", "number", "cpu_offloading_num_layers"),
    _flag("fine_grained_offloading", "fine_grained_activation_offloading"),
    _setting("offload_modules", "names", "offload_modules", nullable=True),
    # Experts
    _setting("dispatcher", "text", "moe_token_dispatcher_type"),
    _setting("dispatcher_backend", "text", "moe_flex_dispatcher_backend", nullable=True),
    _flag("deepep", "moe_enable_deepep"),
    _flag("ep_a2a_overlap", "overlap_moe_expert_parallel_comm moe_a2a_overlap"),
    _flag("delay_wgrad", "delay_wgrad_compute"),
    _flag("shared_expert_overlap", "moe_shared_expert_overlap"),
    _flag("early_attn_release", "ep_overlap_early_attn_memory_release"),
    _flag("dispatch_overlap", "overlap_dispatch_backward_with_experts_wgrad"),
    _flag("grouped_gemm", "moe_grouped_gemm"),
    _setting("capacity_factor", "number", "moe_expert_capacity_factor", nullable=True),
    _flag("pad_to_capacity", "moe_pad_expert_input_to_capacity"),
    _setting("load_balancing", "names", "moe_router_load_balancing_type"),
    _setting("router_groups", "count", "moe_router_num_groups", nullable=True),
    _setting("router_group_topk", "count", "moe_router_group_topk", nullable=True),
    _flag("router_pre_softmax", "moe_router_pre_softmax"),
    _setting("router_score", "text", "moe_router_score_function"),
    _flag("router_expert_bias", "moe_router_enable_expert_bias"),
    _flag("router_padding", "moe_router_padding_for_quantization moe_router_padding_for_fp8"),
    _setting("router_dtype", "text", "moe_router_dtype", nullable=True),
    # Communication, optimizer and the rest
    _flag("sequence_parallel", "sequence_parallel enable_sequence_parallel"),
    _flag("tp_comm_overlap"),
    _flag("overlap_p2p", "overlap_p2p_communication overlap_p2p_comm"),
    _setting("batch_p2p", "flag", "batch_p2p_comm batch_p2p_communication"),
    _flag("p2p_warmup_overlap", "overlap_p2p_communication_warmup_flush overlap_p2p_comm_warmup_flush"),
    _flag("overlap_grad_reduce"),
    _flag("overlap_param_gather"),
    _flag("param_gather_with_step", "overlap_param_gather_with_optimizer_step"),
    _flag("align_param_gather"),
    _flag("distributed_optimizer", "use_distributed_optimizer"),
    _setting("optimizer", "text", "optimizer optimizer_type"),
    _flag("precision_aware_optimizer", "use_precision_aware_optimizer"),
    _flag("optimizer_cpu_offload"),
    _setting("main_grads_dtype", "text", "main_grads_dtype"),
    _setting("exp_avg_dtype", "text", "exp_avg_dtype"),
    _flag("megatron_fsdp", "use_megatron_fsdp use_custom_fsdp"),
    _flag("torch_fsdp2", "use_torch_fsdp2"),
    _setting("sharding_strategy", "text", "data_parallel_sharding_strategy"),
    _setting("zero_stage", "number", "zero_optimization.stage zero_stage"),
    _setting("ckpt_format", "text", "ckpt_format dist_ckpt_format"),
    _flag("gradient_accumulation_fusion"),
    _flag("defer_embedding_wgrad", "defer_embedding_wgrad_compute"),
    _setting("device_connections", "text", "cuda_device_max_connections", nullable=True),
    _setting("cuda_graph_impl", "text", "cuda_graph_impl"),
    _setting("cuda_graph_modules", "names", "cuda_graph_modules cuda_graph_scope", nullable=True),
    _flag("enable_cuda_graph"),
    _flag("disable_cuda_graphs"),
    _flag("external_cuda_graph"),
    _flag("check_nan", "check_for_nan_in_loss_and_grad"),
    _setting("loss_fusion", "flag", "cross_entropy_loss_fusion"),
    _setting("loss_fusion_impl", "text", "cross_entropy_fusion_impl"),
    _setting("alloc_conf", "text", "pytorch_cuda_alloc_conf pytorch_alloc_conf"),
    _setting("cpu_offload_v1", "text", "nvte_cpu_offload_v1"),
    _flag("hybrid_context_parallel"),
    _flag("reshard_always", "fsdp_reshard_after_forward_always"),
    _setting("fsdp_reshard", "text", "fsdp_reshard_after_forward"),
    _setting("compile", "flag", "compile.enable torch_compile"),
    _setting("async_tp", "flag", "enable_async_tensor_parallel"),
    _setting("attention", "text", "attn_type attention_backend attn_implementation"),
    _setting("deepspeed_bf16_grads", "text", "data_types.grad_accum_dtype"),
    _setting("strategy", "text", "distributed.strategy"),
    _setting("phase", "text", "phase task"),
    _setting("lora_rank", "count", "lora_rank lora_r peft.dim peft.rank lora_cfg.dim lora.rank lora_dim peft.r"),
    _setting("lora_targets", "names", "lora_target_modules lora_target lora_targets peft.target_modules "
             "lora_cfg.target_modules lora.target_modules", nullable=True),
    _setting("peft", "text", "peft_scheme peft tuner_type train_type"),
)
# fmt: on

SETTINGS: Mapping[str, ReviewSetting] = MappingProxyType({setting.name: setting for setting in _ROWS})
"""Every setting by its name."""
