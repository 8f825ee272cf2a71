"""Rules of recomputation and offload."""

from __future__ import annotations

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.rule import RuleRow

_ARGUMENTS = "Megatron-LM megatron/training/arguments.py validate_args"
_CONFIG = "Megatron-LM megatron/core/transformer/transformer_config.py TransformerConfig.__post_init__"

_RECOMPUTABLE = frozenset(
    {"core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts", "gdn_norm_out", "gdp_in_proj"}
    | {"gdp_qkv", "mhc"}
)
_OFFLOADABLE = frozenset(
    {
        "core_attn",
        "attn_proj",
        "expert_fc1",
        "fused_group_mlp",
        "moe_act",
        "attn_norm",
        "mlp_norm",
        "qkv_linear",
        "gdp_qkv",
    }
)


_OWN_RECOMPUTE = ("primus", "nemo-rl")
"""Trainers that decide themselves which layers full recomputation has."""


def _fills(c: ReviewFacts, name: str) -> bool:
    """Return True if the trainer, or a recipe of Megatron-Bridge, may set what full recomputation needs."""
    left_out = name not in c.settings or c.settings[name].assumed
    return c.trainer.name in _OWN_RECOMPUTE or (left_out and c.trainer.name == "megatron-bridge")


def _modules(c: ReviewFacts) -> frozenset[str]:
    """Return the recomputed modules of selective recomputation; empty for another granularity."""
    if c.get("recompute_granularity", "selective") not in ("selective", None):
        return frozenset()
    return frozenset(c.recompute_modules or ())


def _offloaded(c: ReviewFacts) -> frozenset[str]:
    return frozenset(c.offload_modules or ())


def _offloads(c: ReviewFacts) -> bool:
    """Return True if layers are offloaded; Megatron-LM's argument for their number turns it on."""
    layers = c.get("cpu_offloading_layers", 0) if "megatron-lm" in c.trainer.scopes else 0
    return bool(layers or c.cpu_offloading)


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="full-without-method", group="memory", trainer="megatron-core",
        # Primus takes lists of layers (recompute_layer_ids), NeMo RL sets both.
        when=lambda c: c.recompute_granularity == "full" and not _fills(c, "recompute_method") and not c.recompute_method,
        message="full recomputation needs a recompute-method",
        remedy="set recompute-method uniform or block",
        settings=("recompute_method", "recompute_granularity"), repairs=("uniform-recompute",), source=_CONFIG,
    ),
    RuleRow(
        id="full-without-layers", group="memory", trainer="megatron-core",
        when=lambda c: c.recompute_granularity == "full" and not _fills(c, "recompute_num_layers")
        and c.recompute_num_layers is None,
        message="full recomputation needs recompute-num-layers",
        remedy="set recompute-num-layers 1",
        settings=("recompute_num_layers", "recompute_granularity"), repairs=("uniform-recompute",), source=_CONFIG,
    ),
    RuleRow(
        id="selective-with-method", group="memory", trainer="megatron-lm",
        when=lambda c: (c.recompute_granularity == "selective" or c.recompute_activations) and c.recompute_method,
        message="selective recomputation does not take a recompute-method",
        remedy="drop recompute-method and recompute-num-layers",
        settings=("recompute_method", "recompute_granularity"), repairs=("selective-recompute",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="selective-with-layers", group="memory", trainer="megatron-core",
        when=lambda c: c.recompute_granularity == "selective" and c.recompute_num_layers is not None,
        message="selective recomputation does not take recompute-num-layers",
        remedy="drop recompute-num-layers",
        settings=("recompute_num_layers", "recompute_granularity"), repairs=("selective-recompute",), source=_CONFIG,
    ),
    RuleRow(
        id="unknown-granularity", group="memory", trainer="megatron-core",
        when=lambda c: c.recompute_granularity not in (None, "full", "selective"),
        message="unknown recompute-granularity {c.recompute_granularity}",
        remedy="use full or selective",
        settings=("recompute_granularity",), source=_CONFIG,
    ),
    RuleRow(
        id="unknown-recompute-method", group="memory", trainer="megatron-core",
        when=lambda c: c.recompute_method not in (None, "uniform", "block"),
        message="unknown recompute-method {c.recompute_method}",
        remedy="use uniform or block",
        settings=("recompute_method",), source=_CONFIG,
    ),
    RuleRow(
        id="unknown-recompute-module", group="memory", trainer="megatron-core",
        when=lambda c: c.recompute_granularity == "selective" and _modules(c) - _RECOMPUTABLE,
        message="a module of recompute-modules is unknown",
        remedy="use core_attn, moe_act, layernorm, mla_up_proj, mlp, moe or shared_experts",
        settings=("recompute_modules",), source=_CONFIG,
    ),
    RuleRow(
        id="recompute-activation-experts", group="memory", trainer="megatron-core",
        when=lambda c: c.recompute_granularity == "selective" and "moe_act" in _modules(c) and not c.grouped_gemm,
        message="recomputing moe_act needs grouped products",
        remedy="add moe-grouped-gemm, or drop moe_act",
        settings=("recompute_modules", "grouped_gemm"), source=_CONFIG,
    ),
    RuleRow(
        id="recompute-latent", group="memory", trainer="megatron-core",
        when=lambda c: c.recompute_granularity == "selective" and "mla_up_proj" in _modules(c) and not c.mla,
        message="recomputing mla_up_proj needs latent attention",
        remedy="drop mla_up_proj from recompute-modules",
        settings=("recompute_modules", "mla"), source=_CONFIG,
    ),
    RuleRow(
        id="recompute-shared-experts", group="memory", trainer="megatron-core",
        when=lambda c: c.recompute_granularity == "selective" and "shared_experts" in _modules(c)
        and c.shared_expert_overlap and c.shared_expert_size,
        message="recomputing shared experts excludes moe-shared-expert-overlap",
        remedy="drop moe-shared-expert-overlap",
        settings=("shared_expert_overlap", "recompute_modules"), repairs=("no-shared-overlap",), source=_CONFIG,
    ),
    RuleRow(
        id="recompute-delayed-scaling", group="memory", trainer="megatron-core",
        when=lambda c: c.fp8 and c.fp8_recipe == "delayed" and _modules(c) & {"moe_act", "layernorm"},
        message="delayed scaling does not support recomputing moe_act or layernorm",
        remedy="use another fp8-recipe, or drop the modules",
        settings=("fp8_recipe", "recompute_modules"), source=_CONFIG,
    ),
    RuleRow(
        id="distribute-without-tensor", group="memory", trainer="megatron-lm",
        when=lambda c: c.distribute_saved_activations
        and (c.tp == 1 or c.recompute_granularity != "full" or not c.recompute_method),
        message="distributed saved activations need tp above 1 and full recomputation",
        remedy="drop distribute-saved-activations",
        settings=("distribute_saved_activations", "recompute_granularity", "tp"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="distribute-with-sequence", group="memory", trainer="megatron-core",
        when=lambda c: c.distribute_saved_activations and c.sequence_parallel and c.recompute_granularity,
        message="distributed saved activations exclude sequence parallelism",
        remedy="drop distribute-saved-activations",
        settings=("distribute_saved_activations", "sequence_parallel"), source=_CONFIG,
    ),
    RuleRow(
        id="offload-pipeline", group="memory", trainer="megatron-core",
        when=lambda c: c.pp > 1 and _offloads(c),
        message="CPU offloading of layers does not support pipeline parallelism",
        remedy="use fine-grained-activation-offloading, or recomputation",
        settings=("cpu_offloading", "cpu_offloading_layers", "pp"), repairs=("no-offload",), source=_CONFIG,
    ),
    RuleRow(
        id="offload-recompute", group="memory", trainer="megatron-core",
        when=lambda c: c.get("recompute_granularity", "full") and _offloads(c) and c.recompute_granularity,
        message="CPU offloading of layers excludes recomputation",
        remedy="drop one of them",
        settings=("cpu_offloading", "cpu_offloading_layers", "recompute_granularity"), repairs=("no-offload",),
        source=_CONFIG,
    ),
    RuleRow(
        id="offload-layers", group="memory", trainer="megatron-core",
        when=lambda c: c.cpu_offloading_layers and _offloads(c) and not 0 <= c.cpu_offloading_layers < c.layers,
        message="{c.cpu_offloading_layers} offloaded layers are not fewer than the {c.layers} of the model",
        remedy="offload fewer layers",
        settings=("cpu_offloading_layers", "layers"), source=_CONFIG,
    ),
    RuleRow(
        id="two-offloads", group="memory", trainer="megatron-core",
        when=lambda c: c.fine_grained_offloading and _offloads(c),
        message="fine-grained offloading excludes CPU offloading of layers",
        remedy="drop one of them",
        settings=("fine_grained_offloading", "cpu_offloading"), source=_CONFIG,
    ),
    RuleRow(
        id="offload-without-modules", group="memory", trainer="megatron-core",
        when=lambda c: c.fine_grained_offloading and not c.offload_modules,
        message="fine-grained offloading needs offload-modules",
        remedy="set offload-modules, such as core_attn attn_proj",
        settings=("offload_modules", "fine_grained_offloading"), source=_CONFIG,
    ),
    RuleRow(
        id="unknown-offload-module", group="memory", trainer="megatron-core",
        when=lambda c: c.fine_grained_offloading and _offloaded(c) - _OFFLOADABLE,
        message="a module of offload-modules is unknown",
        remedy="use core_attn, attn_proj, expert_fc1, moe_act, attn_norm, mlp_norm or qkv_linear",
        settings=("offload_modules",), source=_CONFIG,
    ),
    RuleRow(
        id="offload-projection-alone", group="memory", trainer="megatron-core",
        when=lambda c: c.fine_grained_offloading and "attn_proj" in _offloaded(c) and "core_attn" not in _offloaded(c),
        message="offloading attn_proj needs core_attn, too",
        remedy="add core_attn to offload-modules",
        settings=("offload_modules",), source=_CONFIG,
    ),
    RuleRow(
        id="offload-inside-recompute", group="memory", trainer="megatron-core",
        when=lambda c: c.fine_grained_offloading and "moe" in _modules(c)
        and _offloaded(c) & {"moe_act", "expert_fc1", "fused_group_mlp"},
        message="modules inside a recomputed moe layer are offloaded",
        remedy="drop moe from recompute-modules, or the modules from offload-modules",
        settings=("offload_modules", "recompute_modules"), source=_CONFIG,
    ),
    RuleRow(
        id="offload-engine", group="memory", trainer="megatron-lm",
        when=lambda c: c.fine_grained_offloading and c.transformer_impl not in ("transformer_engine", "te"),
        message="fine-grained offloading needs transformer-impl transformer_engine",
        remedy="set transformer-impl transformer_engine",
        settings=("transformer_impl", "fine_grained_offloading"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="offload-environment", group="memory", trainer="transformer-engine", releases=">=2.10",
        when=lambda c: c.fine_grained_offloading and str(c.cpu_offload_v1) != "1",
        message="fine-grained offloading needs NVTE_CPU_OFFLOAD_V1=1 with Transformer Engine 2.10 and later",
        remedy="export NVTE_CPU_OFFLOAD_V1=1",
        settings=("cpu_offload_v1", "fine_grained_offloading"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="offloaded-optimizer", group="memory", trainer="megatron-lm",
        when=lambda c: c.optimizer_cpu_offload and not c.precision_aware_optimizer,
        message="offloading the optimizer needs use-precision-aware-optimizer",
        remedy="add use-precision-aware-optimizer",
        settings=("optimizer_cpu_offload", "precision_aware_optimizer"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="full-recompute-advice", group="memory", trainer="megatron-core", question="loses", severity="advice",
        when=lambda c: c.pp > 1 and c.recompute_granularity == "full" and c.recompute_method == "uniform",
        message="every stage recomputes all layers, although later stages keep fewer microbatches",
        remedy="use recompute-method block with fewer layers, or selective modules, where memory allows",
        settings=("recompute_method", "recompute_granularity"), source="arXiv 2205.05198, section 5",
    ),
    RuleRow(
        id="fused-attention-recompute", group="memory", trainer="megatron-core", question="loses", severity="advice",
        when=lambda c: c.recompute_granularity == "selective" and _modules(c) == {"core_attn"}
        and c.transformer_impl in ("transformer_engine", "te") and c.has("recompute_modules")
        and not c.settings["recompute_modules"].assumed,
        message="recomputing core_attn saves little with fused attention, which keeps no scores",
        remedy="drop core_attn, or recompute layernorm, moe_act or mla_up_proj in its place",
        settings=("recompute_modules",), source=_CONFIG,
    ),
)
# fmt: on
