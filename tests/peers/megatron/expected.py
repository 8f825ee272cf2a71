"""What Megatron-LM must read from a plan's flags, derived from the model and the configuration without the flags' writers.

Names are those of Megatron-LM's arguments after its ``validate_args``.
"""

from enum import Enum
from typing import Any

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.estimates.software import software
from pipeplan.extensions.planning.flags.megatron import offload_modules
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.workload import ModelShape, SparseAttention

PRECISIONS: dict[str, dict[str, Any]] = {
    "bf16": {},
    "fp8": {"fp8": "hybrid", "fp8_recipe": "tensorwise"},
    "mxfp8": {"fp8": "e4m3", "fp8_recipe": "mxfp8"},
    "nvfp4": {"fp4": "e2m1", "fp4_recipe": "nvfp4"},
}
"""By the plan's precision; all are on top of bf16."""

SHARDED = {1: None, 2: "optim_grads", 3: "optim_grads_params"}
"""The sharding strategy of Megatron FSDP by the stage of ZeRO, beside no pipeline."""


OF_THE_USER: dict[str, Any] = {
    "data_path": ["data"],
    "tokenizer_type": "HuggingFaceTokenizer",
    "tokenizer_model": "tokenizer",
    "save": "checkpoints",
    "save_interval": 1000,
    "train_iters": 1000,
    "lr": 1e-4,
}
"""What a user sets who gives every variable its own name as its value."""


def expected(model: ModelShape, cluster: Cluster, plan: Configuration) -> dict[str, Any]:
    """The value of every argument that the model, the cluster and the configuration decide; None: the default."""
    return (
        of_network(model)
        | of_attention(model)
        | of_experts(model, cluster, plan)
        | of_batch(model, plan)
        | of_degrees(model, plan)
        | of_memory(model, plan)
        | of_kernels(plan)
        | OF_THE_USER
    )


def of_positions(model: ModelShape) -> dict[str, Any]:
    """Kind, base, share and scaling of positions; the scaling's names are those of the only four kinds with flags."""
    details, scaling = model.details, model.details.rotary_scaling
    kind = "" if scaling is None else scaling.kind
    yarn = scaling if kind == "yarn" else None
    plain = yarn is not None and model.latent is None
    rotary = model.positions == "rope"
    return {
        "position_embedding_type": "yarn"
        if plain
        else {"learned": "learned_absolute", "alibi": "none"}.get(model.positions, model.positions),
        "rotary_base": model.rope_theta if rotary else None,
        "rotary_percent": details.rotary_share if rotary and details.rotary_share != 1 else None,
        "rotary_interleaved": details.rotary_interleaved or None,
        "no_rope_freq": details.no_rotary_every or None,
        "use_rope_scaling": True if kind == "llama3" else None,
        "rope_scaling_factor": scaling.factor if scaling is not None and kind == "llama3" else None,
        "rotary_seq_len_interpolation_factor": scaling.factor if scaling is not None and kind == "linear" else None,
        "rotary_scaling_factor": yarn.factor if yarn is not None else None,
        "mscale": yarn.mscale if yarn is not None else None,
        "mscale_all_dim": yarn.mscale_all if yarn is not None else None,
        "yarn_original_max_position_embeddings": yarn.original if plain and yarn is not None else None,
        "yarn_beta_fast": yarn.beta_fast if plain and yarn is not None else None,
        "yarn_beta_slow": yarn.beta_slow if plain and yarn is not None else None,
        "yarn_correction_range_round_to_int": False if plain and yarn is not None and not yarn.rounded else None,
    }


def of_network(model: ModelShape) -> dict[str, Any]:
    details = model.details
    return {
        "num_layers": model.layers,
        "hidden_size": model.hidden,
        "ffn_hidden_size": model.ffn,
        "num_attention_heads": model.heads,
        "vocab_size": model.vocabulary,
        "untie_embeddings_and_output_weights": not model.tied_embeddings,
        **of_positions(model),
        "layernorm_epsilon": model.norm_epsilon,
        "normalization": "RMSNorm" if model.norm == "rms" else "LayerNorm",
        "swiglu": model.gated and "gelu" not in model.activation,
        "quick_geglu": model.gated and "gelu" in model.activation,
        "squared_relu": model.activation == "relu2",
        "activation_func_clamp_value": details.gate_limit,
        "glu_linear_offset": details.gate_offset or None,
        "bias_gelu_fusion": False if model.bias_all and model.activation == "gelu" else None,
        "bias_dropout_fusion": False if model.bias_all and model.experts is not None else None,
        "layernorm_zero_centered_gamma": details.centered_norms or None,
        "add_bias_linear": model.bias_all,
        "add_qkv_bias": None if model.bias_all else model.bias_qkv,
        "qk_layernorm": model.qk_norm or model.latent is not None,
        "qk_l2_norm": details.unit_qk_norm or None,
        "mtp_num_layers": model.mtp_layers or None,
    }


def of_attention(model: ModelShape) -> dict[str, Any]:
    latent = model.latent
    if latent is not None:
        return {
            "multi_latent_attention": True,
            "q_lora_rank": latent.query_rank,
            "kv_lora_rank": latent.key_value_rank,
            "qk_head_dim": latent.nope_dim,
            "qk_pos_emb_head_dim": latent.rope_dim,
            "v_head_dim": latent.value_dim,
            "kv_channels": latent.value_dim if model.hidden % model.heads else None,
            **({} if model.sparse is None else of_indexer(model.sparse)),
        }
    windowed = model.sliding_window is not None
    listed = [int(model.is_windowed(layer)) for layer in range(model.layers)]
    windows = model.sliding_every if model.pattern is None else listed
    return {
        "multi_latent_attention": False,
        "group_query_attention": model.key_heads < model.heads,
        "num_query_groups": model.key_heads,
        "kv_channels": model.head_dim or model.hidden // model.heads,
        "window_size": (model.sliding_window - 1, 0) if model.sliding_window is not None else None,
        "window_attn_skip_freq": windows if windowed and windows != 1 else None,
        "softmax_type": "learnable" if model.attention_sinks else "vanilla",
    }


def of_indexer(sparse: SparseAttention) -> dict[str, Any]:
    return {
        "experimental_attention_variant": "dsa",
        "dsa_indexer_n_heads": sparse.index_heads,
        "dsa_indexer_head_dim": sparse.index_dim,
        "dsa_indexer_topk": sparse.keys,
    }


def of_experts(model: ModelShape, cluster: Cluster, plan: Configuration) -> dict[str, Any]:
    experts = model.experts
    if experts is None:
        return {"num_experts": None, "expert_model_parallel_size": 1}
    limited = experts.groups is not None and experts.nodes_a_token is not None
    sigmoid = experts.router_score == "sigmoid"
    nodes = cluster.gpu.name == "b200-sxm" and plan.expert * plan.expert_tensor > 8
    library = "hybridep" if cluster.gpu.name == "gb200" or nodes else "deepep"
    by_rank = software(plan.software).dispatch == "ranks" and plan.expert * plan.tensor > 1
    return {
        "num_experts": experts.count,
        "moe_router_topk": experts.top_k,
        "moe_ffn_hidden_size": experts.width,
        "moe_shared_expert_intermediate_size": experts.shared_width or None,
        "moe_layer_freq": [int(model.has_experts(layer)) for layer in range(model.layers)],
        "moe_shared_expert_gate": experts.shared_gate,
        "moe_apply_probs_on_input": model.details.weights_on_input or None,
        "moe_router_score_function": experts.router_score,
        "moe_router_enable_expert_bias": sigmoid and experts.router_bias,
        "moe_router_pre_softmax": not sigmoid and (experts.top_k == 1 or not experts.normalized_weights),
        "moe_router_topk_scaling_factor": experts.weight_scale if experts.weight_scale != 1 else None,
        "moe_router_dtype": "fp32" if by_rank else None,
        "moe_grouped_gemm": True,
        "moe_token_dispatcher_type": "flex" if by_rank else "alltoall",
        "moe_flex_dispatcher_backend": library if by_rank else None,
        "moe_router_num_groups": experts.groups if limited else None,
        "moe_router_group_topk": experts.nodes_a_token if limited else None,
        "expert_model_parallel_size": plan.expert,
        "expert_tensor_parallel_size": plan.expert_tensor,
    }


def of_batch(model: ModelShape, plan: Configuration) -> dict[str, Any]:
    return {
        "seq_length": plan.sequence,
        "max_position_embeddings": max(plan.sequence, model.learned_positions or 0),
        "micro_batch_size": plan.microbatch_size,
        "global_batch_size": plan.global_batch,
    }


def of_degrees(model: ModelShape, plan: Configuration) -> dict[str, Any]:
    chunks = plan.chunks if plan.schedule.startswith("interleaved") else 1
    fsdp = plan.zero > 1 and plan.pipeline == 1
    hides = software(plan.software).hides
    return {
        "tensor_model_parallel_size": plan.tensor,
        "sequence_parallel": plan.sequence_parallel and plan.tensor > 1,
        "context_parallel_size": plan.context,
        "cp_comm_type": "p2p" if plan.context > 1 else None,
        "pipeline_model_parallel_size": plan.pipeline,
        "pipeline_model_parallel_layout": layout(model, plan, chunks) if plan.pipeline > 1 else None,
        "microbatch_group_size_per_vp_stage": (plan.group_size or plan.pipeline) if chunks > 1 else plan.pipeline,
        # Batched messages of two interleaved ranks give wrong gradients.
        "overlap_p2p_comm": chunks > 1,
        "batch_p2p_comm": chunks == 1,
        "overlap_moe_expert_parallel_comm": False,
        "delay_wgrad_compute": False,
        "grad_reduce_in_bf16": not software(plan.software).fp32_gradients,
        "use_distributed_optimizer": plan.zero > 0,
        "use_megatron_fsdp": fsdp,
        "data_parallel_sharding_strategy": SHARDED[plan.zero] if fsdp else None,
        "ckpt_format": "fsdp_dtensor" if fsdp else None,
        "gradient_accumulation_fusion": False if fsdp else None,
        "overlap_grad_reduce": "data" in hides,
        "overlap_param_gather": plan.zero > 0 and {"data", "parameters"} <= hides,
    }


def layout(model: ModelShape, plan: Configuration, chunks: int) -> list[list[str]]:
    """The names of what each stage holds, in the order of the model; earlier stages have more where it is not even."""
    stages = plan.pipeline * chunks
    share, more = divmod(model.layers, stages)
    counts = plan.layers or [share + (stage < more) for stage in range(stages)]
    held = [["decoder"] * count for count in counts]
    held[0].insert(0, "embedding")
    held[-1] += ["mtp"] * model.mtp_layers + ["loss"]
    return held


def of_memory(model: ModelShape, plan: Configuration) -> dict[str, Any]:
    by_stage = plan.recompute_by_stage or (plan.recompute,)
    modules = {module for stage in by_stage for module in stage} - {"selective-op"}
    full = "full" in modules
    share = max(plan.offload) if isinstance(plan.offload, tuple) else plan.offload
    return {
        "recompute_granularity": "full" if full else "selective" if modules else None,
        "recompute_method": "uniform" if full else None,
        "recompute_num_layers": 1 if full else None,
        "recompute_modules": modules if modules and not full else None,
        "fine_grained_activation_offloading": share > 0,
        "offload_modules": set(offload_modules(model, share, tuple(modules))) if share > 0 else None,
    }


def of_kernels(plan: Configuration) -> dict[str, Any]:
    trainer = software(plan.software)
    low: dict[str, Any] = {"fp8": None, "fp8_recipe": None, "fp4": None, "fp4_recipe": None} | PRECISIONS[
        plan.precision
    ]
    return low | {
        "bf16": True,
        "fp16": False,
        "attention_dropout": 0.1 if trainer.dropout else 0.0,
        "hidden_dropout": 0.1 if trainer.dropout else 0.0,
        "attention_backend": None,
        "cross_entropy_loss_fusion": trainer.fused_loss,
        "tp_comm_overlap": "tensor" in trainer.hides and plan.sequence_parallel and plan.tensor > 1,
    }


def wrong(wanted: dict[str, Any], parsed: dict[str, Any], explicit: set[str]) -> dict[str, str]:
    """Each argument that is not as expected, with what it is and what it should be.

    Parameters
    ----------
    parsed
        The arguments by name, defaults included.
    explicit
        The names of those that the flags set: one that nothing expects is wrong, too.
    """
    faults = {name: f"set to {parsed[name]!r}, which nothing planned" for name in sorted(explicit - wanted.keys())}
    for name, value in wanted.items():
        if value is None and name in explicit:
            faults[name] = f"set to {parsed[name]!r}, planned to be left out"
        elif value is not None and plain(name, parsed, wanted) != value:
            faults[name] = f"{plain(name, parsed, wanted)!r}, planned: {value!r}"
    return faults


def plain(name: str, parsed: dict[str, Any], wanted: dict[str, Any]) -> Any:
    """A parsed value in the form of the expected ones: names for enums, sets of modules, a list of layers, stages."""
    value = parsed.get(name)
    if isinstance(value, Enum):
        return value.name
    if name in ("recompute_modules", "offload_modules"):
        return set(value or ())
    if name == "no_rope_freq" and isinstance(value, list):
        return value.index(1) + 1
    if name == "window_size" and value is not None:
        return tuple(value)
    if name == "moe_layer_freq" and isinstance(value, int):
        return [int(layer % value == 0) for layer in range(wanted["num_layers"])]
    if name == "pipeline_model_parallel_layout" and value is not None:
        return [[layer.name for layer in rank[chunk]] for chunk in range(len(value.layout[0])) for rank in value.layout]
    if name == "cp_comm_type" and isinstance(value, list):
        return value[0] if len(value) == 1 else value
    return value
