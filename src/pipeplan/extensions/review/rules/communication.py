"""Rules of communication: overlap with computation, sharded states, CUDA graphs, and the environment."""

from __future__ import annotations

from math import prod

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.rule import RuleRow

_ARGUMENTS = "Megatron-LM megatron/training/arguments.py validate_args"
_CONFIG = "Megatron-LM megatron/core/transformer/transformer_config.py TransformerConfig.__post_init__"


def _graph_modules(c: ReviewFacts) -> frozenset[str]:
    return frozenset(module for module in c.cuda_graph_modules or () if module not in ("full", "none"))


def _graphs(c: ReviewFacts) -> bool:
    return str(c.cuda_graph_impl).lower() in ("local", "transformer_engine", "full_iteration")


def _by_layer(c: ReviewFacts) -> bool:
    return str(c.cuda_graph_impl).lower() in ("local", "transformer_engine")


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="gather-overlap-optimizer", group="communication", trainer="megatron-lm",
        when=lambda c: c.overlap_param_gather and not c.distributed_optimizer and not c.megatron_fsdp
        and "muon" not in str(c.get("optimizer", "")),
        message="overlap-param-gather needs the distributed optimizer",
        remedy="add use-distributed-optimizer",
        settings=("overlap_param_gather", "distributed_optimizer"), repairs=("distributed-optimizer",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="gather-overlap-reduce", group="communication", trainer="megatron-lm",
        when=lambda c: c.overlap_param_gather and not c.overlap_grad_reduce,
        message="overlap-param-gather needs overlap-grad-reduce",
        remedy="add overlap-grad-reduce",
        settings=("overlap_grad_reduce", "overlap_param_gather"), repairs=("overlap-reduce",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="gather-with-step", group="communication", trainer="megatron-lm",
        when=lambda c: c.param_gather_with_step and (not c.overlap_param_gather or not c.distributed_optimizer
                                                     or (c.pp == 1 or c.chunks == 1)),
        message="overlap-param-gather-with-optimizer-step needs overlap-param-gather and interleaving",
        remedy="drop overlap-param-gather-with-optimizer-step",
        settings=("param_gather_with_step", "vpp", "overlap_param_gather"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="tensor-overlap-sequence", group="communication", trainer="megatron-lm",
        when=lambda c: c.tp_comm_overlap and (not c.sequence_parallel or c.tp == 1),
        message="tp-comm-overlap needs sequence parallelism",
        remedy="add sequence-parallel at tp above 1, or drop tp-comm-overlap",
        settings=("tp_comm_overlap", "sequence_parallel"), repairs=("sequence-parallel",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="connections-one", group="communication", trainer="megatron-lm",
        when=lambda c: prod((c.tp, c.get("cp", 1))) > 1
        and c.device_connections is not None and str(c.device_connections) != "1"
        and not c.is_blackwell and not c.megatron_fsdp and not c.torch_fsdp2 and not c.ep_a2a_overlap,
        message="tensor and context parallelism need CUDA_DEVICE_MAX_CONNECTIONS=1 before Blackwell",
        remedy="export CUDA_DEVICE_MAX_CONNECTIONS=1",
        settings=("device_connections", "tp", "cp"), repairs=("connections-one",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="connections-fsdp", group="communication", trainer="megatron-core",
        when=lambda c: (c.megatron_fsdp or c.get("torch_fsdp2", False)) and str(c.device_connections) == "1",
        message="FSDP refuses CUDA_DEVICE_MAX_CONNECTIONS=1",
        remedy="unset CUDA_DEVICE_MAX_CONNECTIONS",
        settings=("device_connections", "megatron_fsdp"), source=f"{_ARGUMENTS}; Megatron-Bridge training/config.py",
    ),
    RuleRow(
        id="connections-exchange", group="communication", trainer="megatron-core", question="loses", severity="warning",
        when=lambda c: c.get("ep", 2) > 1 and c.ep_a2a_overlap and str(c.device_connections) == "1" and not c.is_blackwell,
        message="CUDA_DEVICE_MAX_CONNECTIONS=1 orders the expert exchanges behind the kernels they should overlap",
        remedy="set CUDA_DEVICE_MAX_CONNECTIONS=32",
        settings=("device_connections", "ep_a2a_overlap"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="fsdp2-pipeline", group="communication", trainer="megatron-lm",
        when=lambda c: (c.pp > 1 or c.get("ep", 1) > 1) and c.torch_fsdp2,
        message="use-torch-fsdp2 supports neither pipeline nor expert parallelism",
        remedy="drop use-torch-fsdp2, or set pp 1 and ep 1",
        settings=("torch_fsdp2", "pp", "ep"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="fsdp2-optimizer", group="communication", trainer="megatron-lm",
        when=lambda c: c.torch_fsdp2 and (c.distributed_optimizer or c.gradient_accumulation_fusion),
        message="use-torch-fsdp2 excludes the distributed optimizer and fused gradient accumulation",
        remedy="drop use-distributed-optimizer, and add no-gradient-accumulation-fusion",
        settings=("distributed_optimizer", "torch_fsdp2", "gradient_accumulation_fusion"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="fsdp2-tied", group="communication", trainer="megatron-lm",
        when=lambda c: c.torch_fsdp2 and not c.untied,
        message="use-torch-fsdp2 needs untied embeddings",
        remedy="add untie-embeddings-and-output-weights",
        settings=("untied", "torch_fsdp2"), source=_ARGUMENTS,
    ),
    RuleRow(
        # Megatron-Bridge asks for it only if it saves or loads a checkpoint, which benchmarks do not.
        id="fsdp-checkpoint", group="communication", trainer="megatron-lm",
        when=lambda c: c.megatron_fsdp and c.ckpt_format != "fsdp_dtensor",
        message="Megatron FSDP needs checkpoints in the format fsdp_dtensor, not {c.ckpt_format}",
        remedy="set ckpt-format fsdp_dtensor",
        settings=("ckpt_format", "megatron_fsdp"), repairs=("fsdp-checkpoints",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="checkpoint-without-fsdp", group="communication", trainer="megatron-lm",
        when=lambda c: c.ckpt_format == "fsdp_dtensor" and not c.megatron_fsdp,
        message="checkpoints in the format fsdp_dtensor need Megatron FSDP",
        remedy="set ckpt-format torch_dist",
        settings=("ckpt_format", "megatron_fsdp"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="fsdp-optimizer", group="communication", trainer="megatron-lm",
        when=lambda c: c.megatron_fsdp and c.optimizer not in ("adam", "sgd"),
        message="Megatron FSDP does not support the optimizer {c.optimizer}",
        remedy="use adam",
        settings=("optimizer", "megatron_fsdp"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="sharded-pipeline", group="communication", trainer="megatron-core", question="loses", severity="warning",
        when=lambda c: c.pp > 1 and c.megatron_fsdp and str(c.sharding_strategy) == "optim_grads_params",
        message="sharded parameters are gathered again for every microbatch of a pipeline",
        remedy="use sharding strategy optim beside a pipeline, or pp 1",
        settings=("sharding_strategy", "pp"), source="arXiv 1910.02054, section 7",
    ),
    RuleRow(
        id="graphs-full-recompute", group="communication", trainer="megatron-core", releases=">=0.16",
        when=lambda c: c.get("recompute_granularity", "full") == "full" and _by_layer(c)
        and c.recompute_granularity == "full",
        message="full recomputation does not go with CUDA graphs of single layers",
        remedy="use selective recomputation, or cuda-graph-impl full_iteration",
        settings=("cuda_graph_impl", "recompute_granularity"), repairs=("no-graphs", "selective-recompute"), source=_CONFIG,
    ),
    RuleRow(
        id="graphs-offload", group="communication", trainer="megatron-core",
        when=lambda c: c.get("cpu_offloading", True) and _by_layer(c) and c.cpu_offloading,
        message="CUDA graphs do not go with CPU offloading",
        remedy="drop one of them",
        settings=("cuda_graph_impl", "cpu_offloading"), repairs=("no-graphs",), source=_CONFIG,
    ),
    RuleRow(
        id="graphs-nan-check", group="communication", trainer="megatron-lm",
        when=lambda c: c.get("check_nan", True) and c.cuda_graph_impl == "full_iteration" and c.check_nan,
        message="a CUDA graph of the whole iteration excludes the check for NaN",
        remedy="add no-check-for-nan-in-loss-and-grad",
        settings=("check_nan", "cuda_graph_impl"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="graphs-experts-and-router", group="communication", trainer="megatron-core",
        when=lambda c: _by_layer(c) and {"moe", "moe_router"} <= _graph_modules(c),
        message="CUDA graphs cover moe or moe_router, not both",
        remedy="keep moe_router",
        settings=("cuda_graph_modules",), source=_CONFIG,
    ),
    RuleRow(
        id="graphs-preprocess", group="communication", trainer="megatron-core",
        when=lambda c: c.cuda_graph_impl == "transformer_engine" and "moe_preprocess" in _graph_modules(c)
        and "moe_router" not in _graph_modules(c),
        message="a CUDA graph of moe_preprocess needs moe_router",
        remedy="add moe_router to cuda-graph-modules",
        settings=("cuda_graph_modules",), source=_CONFIG,
    ),
    RuleRow(
        id="graphs-dense", group="communication", trainer="megatron-core",
        when=lambda c: _by_layer(c) and not c.experts and _graph_modules(c) & {"moe", "moe_router"},
        message="CUDA graphs of moe modules need a mixture of experts",
        remedy="use attn and mlp",
        settings=("cuda_graph_modules", "experts"), source=_CONFIG,
    ),
    RuleRow(
        id="graphs-dropless-experts", group="communication", trainer="megatron-core",
        when=lambda c: not c.dense and _by_layer(c) and "moe" in _graph_modules(c) and c.experts
        and not (c.capacity_factor and c.pad_to_capacity),
        message="a CUDA graph of whole moe layers needs a capacity with padding",
        remedy="use moe_router in place of moe",
        settings=("cuda_graph_modules", "capacity_factor"), source=_CONFIG,
    ),
    RuleRow(
        id="graphs-recomputed-experts", group="communication", trainer="megatron-core",
        when=lambda c: c.get("recompute_granularity", "selective") == "selective"
        and c.cuda_graph_impl == "transformer_engine" and "moe_router" in _graph_modules(c)
        and "moe" in (c.recompute_modules or ()) and c.recompute_granularity == "selective",
        message="a CUDA graph of moe_router excludes recomputation of moe",
        remedy="drop moe from recompute-modules, or moe_router from cuda-graph-modules",
        settings=("cuda_graph_modules", "recompute_modules"), source=_CONFIG,
    ),
    RuleRow(
        id="graphs-exchange-overlap", group="communication", trainer="megatron-core",
        when=lambda c: c.ep_a2a_overlap and c.cuda_graph_impl == "transformer_engine" and _graph_modules(c) & {"moe", "mlp"},
        message="CUDA graphs of moe and mlp exclude overlapped expert exchanges",
        remedy="use attn and moe_router",
        settings=("cuda_graph_modules", "ep_a2a_overlap"), source=_CONFIG,
    ),
    RuleRow(
        id="graphs-iteration-modules", group="communication", trainer="megatron-core",
        when=lambda c: c.cuda_graph_impl == "full_iteration" and _graph_modules(c) - {"full_iteration"},
        message="a CUDA graph of the whole iteration takes no cuda-graph-modules",
        remedy="drop cuda-graph-modules",
        settings=("cuda_graph_modules", "cuda_graph_impl"), source=f"{_ARGUMENTS}; {_CONFIG}",
    ),
    RuleRow(
        id="two-graph-switches", group="communication", trainer="megatron-core",
        when=lambda c: (c.enable_cuda_graph or c.external_cuda_graph) and _graphs(c),
        message="enable-cuda-graph and external-cuda-graph exclude cuda-graph-impl",
        remedy="keep cuda-graph-impl",
        settings=("enable_cuda_graph", "external_cuda_graph", "cuda_graph_impl"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="graphs-allocator", group="communication", trainer="megatron-lm", question="right",
        when=lambda c: c.cuda_graph_impl == "transformer_engine" and "expandable_segments:True" in str(c.alloc_conf)
        and not c.settings["alloc_conf"].assumed and c.pp > 1, severity="warning",
        message="CUDA graphs with expandable segments need NCCL_GRAPH_REGISTER=0",
        remedy="export NCCL_GRAPH_REGISTER=0",
        settings=("alloc_conf", "cuda_graph_impl"), source=_ARGUMENTS,
    ),
    RuleRow(
        # Scripts of forks rarely name their release, which may be older: no error.
        id="refused-loss-fusion", group="communication", trainer="megatron-lm", releases=">=0.19", severity="warning",
        when=lambda c: c.loss_fusion and c.loss_fusion_impl == "te",
        message="Megatron-LM refuses Transformer Engine's fused cross entropy, which is unstable, from 0.19 on",
        remedy="set cross-entropy-fusion-impl native",
        settings=("loss_fusion_impl", "loss_fusion"), repairs=("native-loss",),
        source=f"{_ARGUMENTS}; Megatron-LM #5115",
    ),
    RuleRow(
        id="unstable-loss-fusion", group="communication", trainer="megatron-lm", releases="<0.19", question="right",
        severity="advice",
        when=lambda c: c.loss_fusion and c.loss_fusion_impl == "te",
        message="Transformer Engine's fused cross entropy is unstable; Megatron-LM refuses it from 0.19 on",
        remedy="set cross-entropy-fusion-impl native",
        settings=("loss_fusion_impl", "loss_fusion"), repairs=("native-loss",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="hybrid-context-pipeline", group="communication", trainer="megatron-lm",
        when=lambda c: c.pp > 1 and c.hybrid_context_parallel,
        message="hybrid context parallelism does not support pipeline parallelism",
        remedy="use pp 1, or context-parallel-size",
        settings=("hybrid_context_parallel", "pp"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="hierarchical-context", group="communication", trainer="megatron-core",
        when=lambda c: c.hierarchical_cp and prod(map(int, c.hierarchical_cp)) != c.cp,
        message="the hierarchical context degrees do not multiply to cp {c.cp}",
        remedy="use degrees whose product is {c.cp}",
        settings=("hierarchical_cp", "cp"), source=f"{_ARGUMENTS}; Megatron-Bridge training/config.py",
    ),
    RuleRow(
        id="hierarchical-context-missing", group="communication", trainer="megatron-lm",
        when=lambda c: c.cp > 1 and c.cp_comm_type and "a2a+p2p" in c.cp_comm_type and not c.hierarchical_cp,
        message="cp-comm-type a2a+p2p needs hierarchical-context-parallel-sizes",
        remedy="set the two degrees, whose product is cp",
        settings=("cp_comm_type", "hierarchical_cp"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="context-all-to-all-heads", group="communication", trainer="megatron-core",
        when=lambda c: c.cp > 1 and c.cp_comm_type and set(c.cp_comm_type) == {"a2a"}
        and (c.kv_groups or c.heads) % (c.cp * c.tp),
        message="context parallelism by all-to-all needs KV groups that are a multiple of tp x cp",
        remedy="use cp-comm-type p2p",
        settings=("cp_comm_type", "cp", "kv_groups"), repairs=("ring-context",),
        source="Transformer Engine transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py",
    ),
    RuleRow(
        id="latent-with-groups", group="communication", trainer="megatron-lm",
        when=lambda c: c.group_query_attention and c.mla,
        message="latent attention excludes group-query-attention",
        remedy="drop group-query-attention",
        settings=("group_query_attention", "mla"), repairs=("no-groups",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="replicated-state", group="communication", trainer="megatron-lm", question="loses", severity="warning",
        when=lambda c: not c.distributed_optimizer and c.replicas > 1 and not c.megatron_fsdp and not c.torch_fsdp2
        and "muon" not in str(c.get("optimizer", "")),
        message="every one of dp {c.replicas} replicas keeps the whole optimizer state",
        remedy="add use-distributed-optimizer",
        settings=("distributed_optimizer",), repairs=("distributed-optimizer",), source="arXiv 1910.02054, section 5",
    ),
    RuleRow(
        id="exposed-gradients", group="communication", trainer="megatron-lm", question="loses", severity="advice",
        when=lambda c: not c.overlap_grad_reduce and c.replicas > 1,
        message="gradients are reduced after the last backward, without overlap",
        remedy="add overlap-grad-reduce and overlap-param-gather",
        settings=("overlap_grad_reduce",), repairs=("overlap-reduce",),
        source="Megatron-LM megatron/core/distributed/README.md",
    ),
    RuleRow(
        id="exposed-messages", group="communication", trainer="megatron-lm", question="loses", severity="advice",
        when=lambda c: c.pp > 2 and c.chunks > 1 and not c.overlap_p2p,
        message="messages between stages are not overlapped with computation",
        remedy="drop no-overlap-p2p-communication",
        settings=("overlap_p2p",), repairs=("overlap-messages",), source="arXiv 2104.04473, section 4.1",
    ),
    RuleRow(
        id="replicated-activations", group="communication", trainer="megatron-core", question="loses", severity="advice",
        when=lambda c: c.tp > 1 and c.get("ep", 1) == 1 and c.trains and not c.sequence_parallel,
        message="tensor ranks keep the same norms and dropouts {c.tp} times",
        remedy="add sequence-parallel",
        settings=("sequence_parallel",), repairs=("sequence-parallel",), source="arXiv 2205.05198, section 4.2",
    ),
)
# fmt: on
