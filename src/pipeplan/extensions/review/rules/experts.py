"""Rules of mixtures of experts: dispatchers, overlapped exchanges, routing."""

from __future__ import annotations

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.rule import RuleRow

_ARGUMENTS = "Megatron-LM megatron/training/arguments.py validate_args"
_CONFIG = "Megatron-LM megatron/core/transformer/transformer_config.py TransformerConfig.__post_init__"
_FLEX = "Megatron-Bridge src/megatron/bridge/training/flex_dispatcher_backend.py"

_CAPACITY_ROUTING = frozenset({"aux_loss", "seq_aux_loss", "global_aux_loss", "none"})


def _recomputed(c: ReviewFacts) -> tuple[str, ...]:
    return tuple(c.get("recompute_modules", None) or ())


def _backend(c: ReviewFacts) -> str:
    """Return the backend of the flex dispatcher, from either setting; some rows name it as the dispatcher."""
    words = (c.get("dispatcher_backend", None), c.get("dispatcher", None), "deepep" if c.get("deepep", False) else None)
    return next((str(word).lower() for word in words if str(word).lower() in ("deepep", "hybridep", "ncclep")), "")


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="overlap-needs-chunks", group="experts", trainer="megatron-core",
        when=lambda c: c.pp > 1 and c.ep_a2a_overlap and c.chunks == 1,
        message="overlapped expert exchanges need virtual stages at pp {c.pp}",
        remedy="set virtual stages, or drop overlap-moe-expert-parallel-comm",
        settings=("ep_a2a_overlap", "vpp"), repairs=("no-exchange-overlap",), source=_CONFIG,
    ),
    RuleRow(
        id="overlap-needs-experts", group="experts", trainer="megatron-core",
        when=lambda c: c.get("ep", 1) == 1 and c.ep_a2a_overlap and c.ep == 1,
        message="overlapped expert exchanges need expert parallelism",
        remedy="drop overlap-moe-expert-parallel-comm, or set an ep above 1",
        settings=("ep_a2a_overlap", "ep"), repairs=("no-exchange-overlap",), source=_CONFIG,
    ),
    RuleRow(
        id="overlap-dispatcher", group="experts", trainer="megatron-core",
        when=lambda c: c.ep_a2a_overlap and str(c.dispatcher).lower() == "allgather",
        message="overlapped expert exchanges need the alltoall or flex dispatcher, not {c.dispatcher}",
        remedy="set moe-token-dispatcher-type alltoall",
        settings=("dispatcher", "ep_a2a_overlap"), repairs=("alltoall", "no-exchange-overlap"), source=_CONFIG,
    ),
    RuleRow(
        id="overlap-full-recompute", group="experts", trainer="megatron-core",
        when=lambda c: c.ep_a2a_overlap and (c.recompute_granularity == "full" or c.get("recompute_method", None)
                                             or c.get("recompute_num_layers", None)),
        message="overlapped expert exchanges exclude full recomputation",
        remedy="use selective recomputation, or drop overlap-moe-expert-parallel-comm",
        settings=("recompute_granularity", "recompute_method", "ep_a2a_overlap"),
        repairs=("no-exchange-overlap", "selective-recompute"), source=_CONFIG,
    ),
    RuleRow(
        id="overlap-recomputed-experts", group="experts", trainer="megatron-core",
        when=lambda c: "moe" in _recomputed(c) and c.ep_a2a_overlap,
        message="overlapped expert exchanges exclude recomputation of the module moe",
        remedy="recompute moe_act in place of moe, or drop overlap-moe-expert-parallel-comm",
        settings=("recompute_modules", "ep_a2a_overlap"), repairs=("no-exchange-overlap",), source=_CONFIG,
    ),
    RuleRow(
        id="overlap-precision", group="experts", trainer="megatron-core",
        when=lambda c: c.ep_a2a_overlap and not c.bf16 and not c.fp16 and not c.has("precision"),
        message="overlapped expert exchanges need bf16 or fp16",
        remedy="add bf16",
        settings=("bf16", "ep_a2a_overlap"), source=_CONFIG,
    ),
    RuleRow(
        id="overlap-shared-experts", group="experts", trainer="megatron-core",
        when=lambda c: c.ep_a2a_overlap and c.shared_expert_overlap,
        message="overlapped expert exchanges exclude overlapped shared experts",
        remedy="drop moe-shared-expert-overlap",
        settings=("shared_expert_overlap", "ep_a2a_overlap"), repairs=("no-shared-overlap",), source=_CONFIG,
    ),
    RuleRow(
        id="overlap-mtp", group="experts", trainer="megatron-core",
        when=lambda c: c.mtp > 1 and c.ep_a2a_overlap,
        message="overlapped expert exchanges support one MTP layer, not {c.mtp}",
        remedy="set mtp-num-layers 1, or drop overlap-moe-expert-parallel-comm",
        settings=("mtp_layers", "ep_a2a_overlap"), repairs=("no-exchange-overlap",), source=_CONFIG,
    ),
    RuleRow(
        id="overlap-release", group="experts", trainer="megatron-lm", releases="<0.14",
        when=lambda c: c.ep_a2a_overlap,
        message="overlapped expert exchanges need Megatron-core 0.14",
        remedy="use a newer release, or drop overlap-moe-expert-parallel-comm",
        settings=("ep_a2a_overlap",), repairs=("no-exchange-overlap",), source="Megatron-LM 0.13 arguments.py",
    ),
    RuleRow(
        id="delayed-weights-overlap", group="experts", trainer="megatron-core", releases=">=0.14",
        when=lambda c: c.delay_wgrad and not c.ep_a2a_overlap,
        message="delayed weight gradients need overlapped expert exchanges",
        remedy="drop delay-wgrad-compute, or add overlap-moe-expert-parallel-comm",
        settings=("delay_wgrad", "ep_a2a_overlap"), repairs=("no-delay",), source=_CONFIG,
    ),
    RuleRow(
        id="delayed-weights-engine", group="experts", trainer="megatron-lm",
        when=lambda c: c.delay_wgrad and c.transformer_impl not in ("transformer_engine", "te"),
        message="delayed weight gradients need transformer-impl transformer_engine",
        remedy="set transformer-impl transformer_engine, or drop delay-wgrad-compute",
        settings=("transformer_impl", "delay_wgrad"), repairs=("no-delay",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="early-release-overlap", group="experts", trainer="megatron-core",
        when=lambda c: c.early_attn_release and not c.ep_a2a_overlap,
        message="early release of attention memory needs overlapped expert exchanges",
        remedy="drop ep-overlap-early-attn-memory-release",
        settings=("early_attn_release", "ep_a2a_overlap"), source=_CONFIG,
    ),
    RuleRow(
        id="two-exchange-overlaps", group="experts", trainer="megatron-core",
        when=lambda c: c.dispatch_overlap and (c.ep_a2a_overlap or c.get("delay_wgrad", False)),
        message="overlap-dispatch-backward-with-experts-wgrad excludes overlapped exchanges and delayed weight gradients",
        remedy="keep one of them",
        settings=("dispatch_overlap", "ep_a2a_overlap"), source=_CONFIG,
    ),
    RuleRow(
        id="deepep-without-flex", group="experts", trainer="megatron-core",
        when=lambda c: c.deepep and str(c.dispatcher).lower() != "flex",
        message="DeepEP needs the flex dispatcher, not {c.dispatcher}",
        remedy="set moe-token-dispatcher-type flex",
        settings=("dispatcher", "deepep"), repairs=("flex-dispatcher",), source=_CONFIG,
    ),
    RuleRow(
        id="deepep-on-grace", group="experts", trainer="megatron-bridge",
        when=lambda c: _backend(c) == "deepep" and str(c.dispatcher).lower() in ("flex", "deepep") and c.is_grace,
        message="DeepEP does not support {c.device}",
        remedy="set moe_flex_dispatcher_backend hybridep",
        settings=("dispatcher_backend", "dispatcher", "device"), repairs=("hybridep",),
        source=f"{_FLEX} validate_flex_dispatcher_backend",
    ),
    RuleRow(
        id="deepep-between-blackwell-nodes", group="experts", trainer="megatron-core", question="right",
        severity="warning",
        when=lambda c: _backend(c) == "deepep" and c.is_blackwell and not c.is_grace and c.ep > 8,
        message="DeepEP over several nodes of {c.device} crashes with illegal memory accesses in current recipes",
        remedy="use ep 8 without DeepEP, or the HybridEP backend",
        settings=("dispatcher", "dispatcher_backend", "ep"), repairs=("hybridep",), source="Megatron-Bridge #6021",
    ),
    RuleRow(
        id="deepep-capacity-padding", group="experts", trainer="megatron-core",
        when=lambda c: _backend(c) == "deepep" and c.pad_to_capacity,
        message="DeepEP does not support moe-pad-expert-input-to-capacity",
        remedy="drop moe-pad-expert-input-to-capacity, or use the alltoall dispatcher",
        settings=("pad_to_capacity", "dispatcher_backend"), source=_CONFIG,
    ),
    RuleRow(
        id="shared-overlap-dispatcher", group="experts", trainer="megatron-core",
        when=lambda c: c.shared_expert_overlap and c.shared_expert_size and str(c.dispatcher).lower() == "allgather",
        message="overlapped shared experts need the alltoall or flex dispatcher",
        remedy="set moe-token-dispatcher-type alltoall",
        settings=("dispatcher", "shared_expert_overlap"), repairs=("alltoall", "no-shared-overlap"), source=_CONFIG,
    ),
    RuleRow(
        id="capacity-routing", group="experts", trainer="megatron-core",
        when=lambda c: c.capacity_factor and c.capacity_factor > 0 and not set(c.load_balancing) <= _CAPACITY_ROUTING,
        message="an expert capacity needs auxiliary-loss load balancing or none",
        remedy="drop moe-expert-capacity-factor, or use aux_loss",
        settings=("capacity_factor", "load_balancing"), source=_CONFIG,
    ),
    RuleRow(
        id="padding-without-capacity", group="experts", trainer="megatron-core",
        when=lambda c: c.pad_to_capacity and c.capacity_factor is None,
        message="padding to capacity needs moe-expert-capacity-factor",
        remedy="set moe-expert-capacity-factor",
        settings=("pad_to_capacity", "capacity_factor"), source=_CONFIG,
    ),
    RuleRow(
        id="experts-over-groups", group="experts", trainer="megatron-core",
        when=lambda c: c.router_group_topk and c.router_groups and c.experts and c.experts % c.router_groups,
        message="{c.experts} experts do not divide by {c.router_groups} routing groups",
        remedy="use a number of groups that divides the experts",
        settings=("router_groups", "experts"), source=_CONFIG,
    ),
    RuleRow(
        id="group-topk", group="experts", trainer="megatron-core",
        when=lambda c: c.router_group_topk and (not c.router_groups or c.router_group_topk > c.router_groups),
        message="moe-router-group-topk {c.router_group_topk} needs at least as many routing groups",
        remedy="set moe-router-num-groups to at least {c.router_group_topk}",
        settings=("router_group_topk", "router_groups"), source=_CONFIG,
    ),
    RuleRow(
        id="top-one-softmax", group="experts", trainer="megatron-core", question="right",
        when=lambda c: c.get("topk", 1) == 1 and c.experts and c.topk == 1 and c.router_score == "softmax"
        and not c.router_pre_softmax and "sinkhorn" not in c.load_balancing,
        message="a softmax over one selected expert has zero gradients",
        remedy="add moe-router-pre-softmax",
        settings=("topk", "router_pre_softmax"), repairs=("pre-softmax",), source=_CONFIG,
    ),
    RuleRow(
        id="expert-bias-score", group="experts", trainer="megatron-core",
        # MindSpeed's own check accepts softmax, too (features_manager/moe/moe_router.py).
        when=lambda c: c.router_expert_bias and c.router_score not in ("sigmoid", "sqrtsoftplus")
        and c.trainer.name != "mindspeed",
        message="the expert bias needs a sigmoid score, not {c.router_score}",
        remedy="set moe-router-score-function sigmoid",
        settings=("router_score", "router_expert_bias"), source=_CONFIG,
    ),
    RuleRow(
        id="router-padding-precision", group="experts", trainer="megatron-core",
        when=lambda c: c.router_padding and not c.fp8 and not c.fp4 and not c.has("precision"),
        message="padding of the router needs fp8 or fp4",
        remedy="drop moe-router-padding-for-quantization",
        settings=("router_padding", "fp8"), repairs=("no-router-padding",), source=_CONFIG,
    ),
    RuleRow(
        id="router-padding-dispatcher", group="experts", trainer="megatron-core",
        when=lambda c: c.router_padding and str(c.dispatcher).lower() in ("allgather", "alltoall_seq"),
        message="the {c.dispatcher} dispatcher does not support padding of the router",
        remedy="set moe-token-dispatcher-type alltoall",
        settings=("dispatcher", "router_padding"), repairs=("alltoall",), source=_CONFIG,
    ),
    RuleRow(
        id="router-precision", group="experts", trainer="megatron-core", question="right", severity="advice",
        when=lambda c: c.experts and c.experts >= 32 and not c.router_dtype,
        message="{c.experts} experts are routed in 16 bits",
        remedy="set moe-router-dtype fp32",
        settings=("router_dtype", "experts"), source=_CONFIG,
    ),
    RuleRow(
        id="allgather-many-experts", group="experts", trainer="megatron-core", question="loses", severity="warning",
        when=lambda c: not c.dense and c.ep > c.get("topk", 2) and str(c.dispatcher).lower() == "allgather",
        message="the allgather dispatcher sends every token to all {c.ep} expert ranks, not only to those of its experts",
        remedy="set moe-token-dispatcher-type alltoall",
        settings=("dispatcher", "ep"), repairs=("alltoall",),
        source="Megatron-LM megatron/core/transformer/moe/README.md",
    ),
    RuleRow(
        id="no-grouped-products", group="experts", trainer="megatron-core", question="loses", severity="advice",
        when=lambda c: c.experts and c.experts > c.get("ep", 1) and not c.grouped_gemm,
        message="the products of a rank's experts run one after the other",
        remedy="add moe-grouped-gemm",
        settings=("grouped_gemm", "experts"), source="Megatron-LM megatron/core/transformer/moe/README.md",
    ),
    RuleRow(
        id="experts-over-tensor-ranks", group="experts", trainer="megatron-core", question="loses", severity="advice",
        when=lambda c: not c.dense and c.get("etp", None) is None and c.tp > 1 and c.ep > 1 and c.experts and c.etp is None,
        message="without expert-tensor-parallel-size, each expert is cut over tp {c.tp} ranks",
        remedy="set expert-tensor-parallel-size 1 and a larger ep",
        settings=("etp", "tp"), source="arXiv 2504.14960",
    ),
)
# fmt: on
