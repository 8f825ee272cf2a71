"""Rules of schedules: interleaving, PyTorch's schedules, split backwards, combinations that deadlock or train wrongly."""

from __future__ import annotations

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.rule import RuleRow

_ARGUMENTS = "Megatron-LM megatron/training/arguments.py validate_args"
_STATE = "Megatron-LM megatron/core/parallel_state.py initialize_model_parallel"
_PARALLEL = "Megatron-LM megatron/core/model_parallel_config.py ModelParallelConfig.__post_init__"
_TORCH = "PyTorch torch/distributed/pipelining/schedules.py"

_TORCH_SCHEDULES = (
    *("1f1b", "interleaved1f1b", "gpipe", "loopedbfs", "interleavedzerobubble", "pipelineschedulesingle"),
    *("pipelineschedulemulti", "zbvzerobubble", "dualpipev", "_pipelinescheduleruntime"),
)


def _checkpoints(c: ReviewFacts) -> bool:
    mode = str(c.get("ac_mode", "") or "").lower()
    return bool(c.get("activation_checkpointing", False)) or mode in ("full", "selective")


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="chunks-on-one-rank", group="schedules", trainer="megatron-core",
        when=lambda c: (c.get("vpp", None) or 1) > 1 and c.pp == 1,
        message="{c.vpp} virtual stages at pp 1: interleaving needs at least two ranks",
        remedy="drop the virtual stages",
        settings=("vpp", "pp"), repairs=("no-chunks",), source=f"{_ARGUMENTS}; {_STATE}",
    ),
    RuleRow(
        id="two-ranks-batched-messages", group="schedules", trainer="megatron-lm", question="right",
        when=lambda c: c.pp == 2 and c.chunks > 1 and not c.overlap_p2p,
        message="interleaving on two ranks without overlapped messages: both directions meet between the same two ranks",
        remedy="drop no-overlap-p2p-communication, or use more ranks",
        settings=("overlap_p2p", "pp", "vpp"), repairs=("overlap-messages", "no-chunks"),
        source=f"{_ARGUMENTS}; Megatron-LM #750",
    ),
    RuleRow(
        id="two-ranks-mixed-gradients", group="schedules", trainer="megatron-core", question="right",
        when=lambda c: c.pp == 2 and c.chunks > 1 and c.batch_p2p and not c.overlap_p2p,
        message="interleaving on two ranks with batched messages mixes up the two directions: gradients are wrong",
        remedy="set overlap_p2p_comm True and batch_p2p_comm False",
        settings=("batch_p2p", "overlap_p2p"), repairs=("overlap-messages",), source="Megatron-LM #750",
    ),
    RuleRow(
        id="overlap-and-batch", group="schedules", trainer="megatron-core",
        when=lambda c: c.pp > 1 and c.chunks > 1 and c.overlap_p2p and c.batch_p2p and "megatron-lm" not in c.trainer.scopes,
        message="overlap_p2p_comm and batch_p2p_comm exclude each other",
        remedy="set batch_p2p_comm False",
        settings=("batch_p2p", "overlap_p2p"), repairs=("no-batch-messages",),
        source="Megatron-LM megatron/core/pipeline_parallel/schedules.py forward_backward_pipelining_with_interleaving",
    ),
    RuleRow(
        id="warmup-overlap", group="schedules", trainer="megatron-core",
        when=lambda c: c.p2p_warmup_overlap and (not c.overlap_p2p or c.get("batch_p2p", False)),
        message="overlapped messages of warm-up and flush need overlap_p2p_comm without batch_p2p_comm",
        remedy="set overlap_p2p_comm, or drop overlap-p2p-communication-warmup-flush",
        settings=("p2p_warmup_overlap", "overlap_p2p"), source=_PARALLEL,
    ),
    RuleRow(
        id="pipeline-dtype", group="schedules", trainer="nemo-rl",
        when=lambda c: c.pp > 1 and c.pipeline_dtype is None,
        message="pipeline parallelism needs a pipeline_dtype",
        remedy="set pipeline_dtype to the precision of the activations",
        settings=("pipeline_dtype", "pp"), source=_PARALLEL,
    ),
    RuleRow(
        id="defer-embedding-alone", group="schedules", trainer="megatron-core",
        when=lambda c: c.pp == 1 and c.defer_embedding_wgrad,
        message="deferred weight gradients of the embedding need pipeline parallelism",
        remedy="drop defer-embedding-wgrad-compute",
        settings=("defer_embedding_wgrad", "pp"), source=_PARALLEL,
    ),
    RuleRow(
        id="defer-embedding-fusion", group="schedules", trainer="megatron-core",
        when=lambda c: c.defer_embedding_wgrad and not c.gradient_accumulation_fusion,
        message="deferred weight gradients of the embedding need fused gradient accumulation",
        remedy="drop defer-embedding-wgrad-compute, or no-gradient-accumulation-fusion",
        settings=("defer_embedding_wgrad", "gradient_accumulation_fusion"), source=_PARALLEL,
    ),
    RuleRow(
        id="hyper-connections-pipeline", group="schedules", trainer="megatron-core",
        when=lambda c: c.pp > 1 and c.mhc,
        message="hyper-connections do not support pipeline parallelism: messages have the wrong shape",
        remedy="use pp 1",
        settings=("mhc", "pp"),
        source="Megatron-LM megatron/core/transformer/transformer_config.py TransformerConfig.__post_init__",
    ),
    RuleRow(
        id="hyper-connections-mtp", group="schedules", trainer="megatron-core",
        when=lambda c: c.mtp > 0 and c.mhc,
        message="hyper-connections do not go with MTP layers",
        remedy="set mtp-num-layers 0",
        settings=("mhc", "mtp_layers"),
        source="Megatron-LM megatron/core/transformer/transformer_config.py TransformerConfig.__post_init__",
    ),
    RuleRow(
        id="mtp-positions", group="schedules", trainer="megatron-lm",
        when=lambda c: c.mtp_layers and c.position_embedding not in ("rope", "none", "learned_absolute", "mrope", "yarn"),
        message="MTP layers do not support position embeddings of type {c.position_embedding}",
        remedy="use rope, or drop the MTP layers",
        settings=("position_embedding", "mtp_layers"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="unknown-torch-schedule", group="schedules", trainer="pytorch",
        when=lambda c: c.pp > 1 and not c.get("schedule_csv", None) and str(c.schedule).lower() not in _TORCH_SCHEDULES,
        message="PyTorch has no schedule '{c.schedule}'",
        remedy="use 1F1B, GPipe, Interleaved1F1B, LoopedBFS, InterleavedZeroBubble, ZBVZeroBubble or DualPipeV",
        settings=("schedule",), source=f"{_TORCH} get_schedule_class",
    ),
    RuleRow(
        id="abstract-schedule", group="schedules", trainer="torchtitan",
        when=lambda c: c.pp > 1 and not c.get("schedule_csv", None)
        and str(c.schedule).lower() in ("pipelineschedulesingle", "pipelineschedulemulti"),
        message="{c.schedule} is an abstract class, which needs pipeline_parallel_schedule_csv",
        remedy="name a schedule such as 1F1B, or add the CSV file",
        settings=("schedule", "schedule_csv"),
        source="torchtitan torchtitan/distributed/pipeline_parallel.py _build_pipeline_schedule",
    ),
    RuleRow(
        id="split-backward-compile", group="schedules", trainer="pytorch", question="right",
        when=lambda c: c.pp > 1 and c.splits_backward and c.compile,
        message="{c.schedule} splits the backward, which torch.compile does not support",
        remedy="turn compile off, or use Interleaved1F1B",
        settings=("schedule", "compile"), repairs=("no-compile", "interleaved"),
        source=f"{_TORCH} _check_torch_compile_compatibility; PyTorch #161904",
    ),
    RuleRow(
        id="split-backward-checkpointing", group="schedules", trainer="pytorch", question="right", severity="warning",
        when=lambda c: c.pp > 1 and c.splits_backward and _checkpoints(c),
        message="{c.schedule} beside activation checkpointing recomputes for I and again for W, and fails in some releases",
        remedy="turn activation checkpointing off, or use Interleaved1F1B",
        settings=("schedule", "activation_checkpointing", "ac_mode"), repairs=("interleaved",),
        source="torchtitan #774, #545; PyTorch torch/distributed/pipelining/_backward.py",
    ),
    RuleRow(
        id="split-backward-flex", group="schedules", trainer="torchtitan", question="right",
        when=lambda c: c.pp > 1 and c.splits_backward and "flex" in str(c.attention).lower(),
        message="{c.schedule} splits the backward, which FlexAttention's compiled kernel does not support",
        remedy="use Interleaved1F1B, or another attention",
        settings=("schedule", "attention"), repairs=("interleaved",), source="torchtitan #3584",
    ),
    RuleRow(
        id="split-backward-tied", group="schedules", trainer="pytorch", question="right",
        when=lambda c: c.pp > 1 and c.splits_backward and c.tied,
        message="{c.schedule} splits the backward, which counts the gradient of a tied embedding twice",
        remedy="untie the embedding, or use a schedule with full backwards",
        settings=("schedule", "tied"), repairs=("interleaved",), source="PyTorch #180952",
    ),
    RuleRow(
        id="split-backward-ddp", group="schedules", trainer="pytorch", question="right",
        when=lambda c: c.pp > 1 and c.splits_backward and c.dp_replicate > 1 and c.get("dp_shard", 0) == 1,
        message="{c.schedule} bypasses the hooks by which DDP reduces gradients: replicas drift apart",
        remedy="shard the replicas (FSDP), or use a schedule with full backwards",
        settings=("schedule", "dp_replicate"), repairs=("interleaved",), source="PyTorch #144530",
    ),
    RuleRow(
        id="titan-tied-embedding", group="schedules", trainer="torchtitan",
        when=lambda c: c.pp > 1 and c.tied,
        message="torchtitan does not support tied embeddings with pipeline parallelism",
        remedy="untie the embedding, or use pp 1",
        settings=("tied", "pp"), source="torchtitan torchtitan/models/common/decoder.py update_from_config",
    ),
    RuleRow(
        id="titan-varlen", group="schedules", trainer="torchtitan", releases="<0.3",
        when=lambda c: c.pp > 1 and "varlen" in str(c.attention).lower(),
        message="variable-length attention does not support pipeline parallelism",
        remedy="use flex attention, or pp 1",
        settings=("attention", "pp"), source="torchtitan #3777; #3856 removes the check",
    ),
    RuleRow(
        id="titan-graphs-pipeline", group="schedules", trainer="torchtitan", releases=">=0.3",
        when=lambda c: c.pp > 1 and not c.disable_cuda_graphs,
        message="CUDA graphs do not support pipeline parallelism",
        remedy="set training.disable_cuda_graphs",
        settings=("disable_cuda_graphs", "pp"), source="torchtitan torchtitan/trainer.py _validate_cuda_graphs",
    ),
    RuleRow(
        id="titan-context-attention", group="schedules", trainer="torchtitan",
        when=lambda c: c.cp > 1 and any(word in str(c.attention).lower() for word in ("sdpa", "varlen")),
        message="context parallelism does not support {c.attention} attention",
        remedy="use flex attention, or context_parallel_degree 1",
        settings=("attention", "cp"), source="torchtitan torchtitan/models/common/decoder.py update_from_config",
    ),
    RuleRow(
        id="gpipe-memory", group="schedules", trainer="pytorch", question="loses", severity="advice",
        when=lambda c: c.pp > 1 and str(c.schedule).lower() == "gpipe" and c.count > c.pp,
        message="GPipe keeps the activations of all {c.count} microbatches; 1F1B of {c.pp} in the same time",
        remedy="use 1F1B",
        settings=("schedule",), repairs=("single-stage",), source="arXiv 2104.04473, section 2.2",
    ),
    RuleRow(
        id="reshard-each-microbatch", group="schedules", trainer="pytorch", question="loses", severity="warning",
        when=lambda c: c.pp > 1 and str(c.fsdp_reshard).lower() == "always",
        message="FSDP beside a pipeline gathers the weights for every microbatch",
        remedy="set fsdp_reshard_after_forward default or never",
        settings=("fsdp_reshard",), source="torchtitan torchtitan/distributed/fsdp.py",
    ),
    RuleRow(
        id="zero-beside-pipeline", group="schedules", trainer="deepspeed",
        when=lambda c: c.pp > 1 and c.zero_stage > 1,
        message="ZeRO stage {c.zero_stage} does not go with pipeline parallelism",
        remedy="use ZeRO stage 1",
        settings=("zero_stage", "pp"), repairs=("zero-one",),
        source="DeepSpeed deepspeed/runtime/pipe/engine.py PipelineEngine.__init__; DeepSpeed #1110",
    ),
    RuleRow(
        id="unknown-partition-method", group="schedules", trainer="deepspeed",
        when=lambda c: c.has("partition_method") and not any(str(c.partition_method).lower().startswith(word)
                               for word in ("uniform", "parameters", "type:", "profile", "best")),
        message="DeepSpeed has no partition method '{c.partition_method}'",
        remedy="use uniform, parameters or type:REGEX",
        settings=("partition_method",), source="DeepSpeed deepspeed/runtime/pipe/module.py PipelineModule._partition_layers",
    ),
    RuleRow(
        id="profile-partition", group="schedules", trainer="deepspeed",
        when=lambda c: str(c.get("partition_method", "")).lower().startswith("profile"),
        message="the partition method 'profile' is not implemented",
        remedy="use parameters, or type:REGEX",
        settings=("partition_method",), source="DeepSpeed deepspeed/runtime/pipe/module.py PipelineModule._partition_layers",
    ),
    RuleRow(
        id="bf16-immediate-gradients", group="schedules", trainer="deepspeed", question="right", severity="warning",
        when=lambda c: c.pp > 1 and c.bf16 and str(c.deepspeed_bf16_grads).lower() in ("bf16", "bfloat16"),
        message="gradients of many microbatches are summed in bf16",
        remedy="set data_types.grad_accum_dtype fp32",
        settings=("deepspeed_bf16_grads", "bf16"), source="DeepSpeed deepspeed/runtime/pipe/engine.py",
    ),
    RuleRow(
        id="lazy-communicators", group="schedules", trainer="pytorch", question="right", severity="advice",
        when=lambda c: c.pp > 1 and c.world > 1 and c.v_shaped and c.get("torch_version", "9") < "2.5",
        message="before PyTorch 2.5, communicators that are created lazily in the first step deadlock in V schedules",
        remedy="use PyTorch 2.5 or later, or pass device_id to init_process_group",
        settings=("schedule", "torch_version"), source="PyTorch torch/distributed/distributed_c10d.py batch_isend_irecv",
    ),
    RuleRow(
        id="automodel-fsdp-pipeline", group="schedules", trainer="nemo-automodel",
        when=lambda c: c.pp > 1 and "megatron" in str(c.strategy).lower(),
        message="Megatron FSDP does not support pipeline parallelism in AutoModel",
        remedy="use strategy fsdp2",
        settings=("strategy", "pp"), source="NeMo AutoModel recipes/llm/train_ft.py",
    ),
)
# fmt: on
