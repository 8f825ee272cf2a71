"""Rules of number formats."""

from __future__ import annotations

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.rule import RuleRow

_ARGUMENTS = "Megatron-LM megatron/training/arguments.py validate_args"
_CONFIG = "Megatron-LM megatron/core/transformer/transformer_config.py TransformerConfig.__post_init__"
_DDP = "Megatron-LM megatron/core/distributed/distributed_data_parallel_config.py"


def _shards_state(c: ReviewFacts) -> bool:
    return any(c.get(name, False) for name in ("distributed_optimizer", "megatron_fsdp", "torch_fsdp2"))


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="two-precisions", group="precision", trainer="megatron-core",
        when=lambda c: c.bf16 and c.fp16,
        message="bf16 and fp16 exclude each other",
        remedy="keep bf16",
        settings=("fp16", "bf16"), repairs=("no-fp16",), source=_CONFIG,
    ),
    RuleRow(
        id="fp8-and-fp4", group="precision", trainer="megatron-core",
        when=lambda c: c.fp8 and c.fp4,
        message="fp8 and fp4 exclude each other",
        remedy="drop one of them",
        settings=("fp4", "fp8"), source=f"{_ARGUMENTS}; {_CONFIG}",
    ),
    RuleRow(
        id="fp8-parameters", group="precision", trainer="megatron-core",
        when=lambda c: c.fp8_param_gather and not c.fp8,
        message="fp8 parameters need fp8 computation",
        remedy="set fp8-format, or drop fp8-param-gather",
        settings=("fp8_param_gather", "fp8"), source=_CONFIG,
    ),
    RuleRow(
        id="fp8-parameters-optimizer", group="precision", trainer="megatron-lm",
        when=lambda c: c.trains and c.fp8_param_gather and not _shards_state(c),
        message="fp8 parameters need the distributed optimizer or FSDP",
        remedy="add use-distributed-optimizer",
        settings=("fp8_param_gather", "distributed_optimizer"), repairs=("distributed-optimizer",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="fp4-parameters", group="precision", trainer="megatron-core",
        when=lambda c: c.fp4_param_gather and not c.fp4,
        message="fp4 parameters need fp4 computation",
        remedy="set fp4-format, or drop fp4-param-gather",
        settings=("fp4_param_gather", "fp4"), source=f"{_ARGUMENTS}; {_CONFIG}",
    ),
    RuleRow(
        id="gradient-buffer-reuse", group="precision", trainer="megatron-core",
        when=lambda c: c.reuse_grad_buffer and not c.fp8_param_gather,
        message="reuse-grad-buf-for-mxfp8-param-ag needs fp8 parameters",
        remedy="add fp8-param-gather, or drop it",
        settings=("reuse_grad_buffer", "fp8_param_gather"), source=_DDP,
    ),
    RuleRow(
        id="gradient-buffer-step", group="precision", trainer="megatron-core",
        when=lambda c: c.reuse_grad_buffer and c.param_gather_with_step,
        message="reuse-grad-buf-for-mxfp8-param-ag excludes overlap-param-gather-with-optimizer-step",
        remedy="drop overlap-param-gather-with-optimizer-step",
        settings=("param_gather_with_step", "reuse_grad_buffer"),
        source="Megatron-LM megatron/core/optimizer/optimizer_config.py",
    ),
    RuleRow(
        id="mxfp8-without-overlap", group="precision", trainer="megatron-lm", releases="<0.19", question="right",
        when=lambda c: c.fp8_param_gather and c.reuse_grad_buffer and not (c.overlap_grad_reduce and c.overlap_param_gather),
        message="mxfp8 parameters with a reused gradient buffer and without overlap become NaN",
        remedy="add overlap-grad-reduce and overlap-param-gather",
        settings=("reuse_grad_buffer", "overlap_grad_reduce", "overlap_param_gather"), source="Megatron-LM #2272",
    ),
    RuleRow(
        id="delayed-edges", group="precision", trainer="megatron-core",
        when=lambda c: c.fp8 and c.first_last_layers_bf16 and c.fp8_recipe == "delayed",
        message="delayed scaling does not support the first and last layers in bf16",
        remedy="use another fp8-recipe",
        settings=("fp8_recipe", "first_last_layers_bf16"), source=_CONFIG,
    ),
    RuleRow(
        id="edges-in-bf16", group="precision", trainer="megatron-core",
        when=lambda c: c.fp8 and c.first_last_layers_bf16
        and max(c.layers_at_start_bf16, c.layers_at_end_bf16) > c.layers // c.pp,
        message="more layers in bf16 at an edge than a rank has, {c.layers} / {c.pp}",
        remedy="lower num-layers-at-start-in-bf16 and num-layers-at-end-in-bf16",
        settings=("layers_at_start_bf16", "layers_at_end_bf16", "pp"), source=_CONFIG,
    ),
    RuleRow(
        id="fp32-gradients", group="precision", trainer="megatron-core",
        when=lambda c: not c.precision_aware_optimizer
        and str(c.main_grads_dtype).lower().rpartition(".")[2] not in ("fp32", "float32", "float"),
        message="main gradients in {c.main_grads_dtype} need the precision-aware optimizer",
        remedy="add use-precision-aware-optimizer, or keep main-grads-dtype fp32",
        settings=("main_grads_dtype", "precision_aware_optimizer"),
        source="Megatron-LM megatron/core/optimizer/optimizer_config.py",
    ),
    RuleRow(
        id="mxfp8-on-hopper", group="precision", trainer="transformer-engine",
        when=lambda c: "mxfp8" in str(c.either("fp8_recipe", "precision")).lower()
        and any(word in str(c.device).lower() for word in ("h100", "h200", "h800", "h20", "a100")),
        message="{c.device} has no mxfp8: block scaling of 32 values needs Blackwell",
        remedy="use fp8-recipe tensorwise or blockwise",
        settings=("fp8_recipe", "precision", "device"),
        source="Transformer Engine transformer_engine/pytorch/fp8.py check_mxfp8_support",
    ),
    RuleRow(
        id="fp4-before-blackwell", group="precision", trainer="transformer-engine",
        when=lambda c: any(word in str(c.either("fp4", "precision") or "").lower() for word in ("fp4", "e2m1"))
        and any(word in str(c.device).lower() for word in ("h100", "h200", "h800", "h20", "a100")),
        message="{c.device} has no 4-bit products",
        remedy="use fp8, or Blackwell GPUs",
        settings=("fp4", "precision", "device"),
        source="Transformer Engine transformer_engine/pytorch/fp8.py check_nvfp4_support",
    ),
    RuleRow(
        id="fp8-on-ampere", group="precision", trainer="transformer-engine",
        when=lambda c: c.quantized and "a100" in str(c.device).lower(),
        message="{c.device} has no 8-bit products",
        remedy="use bf16",
        settings=("fp8", "precision", "device"),
        source="Transformer Engine transformer_engine/pytorch/fp8.py check_fp8_support",
    ),
    RuleRow(
        id="fp8-hidden-size", group="precision", trainer="transformer-engine",
        when=lambda c: c.fp8 and (c.hidden % (16 * c.tp) or c.ffn % (16 * c.tp)),
        message="fp8 products need hidden and FFN sizes per tensor rank that are multiples of 16",
        remedy="use a smaller tp",
        settings=("fp8", "tp", "hidden"), repairs=("shrink-tp",),
        source="Transformer Engine transformer_engine/pytorch/utils.py assert_dim_for_fp8_exec",
    ),
    RuleRow(
        id="fp8-tokens", group="precision", trainer="transformer-engine", severity="warning",
        when=lambda c: c.fp8 and (c.seq_length * c.micro_batch // (c.get("cp", 1) * _sequence_ranks(c))) % 16,
        message="fp8 products need a number of tokens per rank that is a multiple of 16",
        remedy="use a longer sequence, or smaller tp and cp",
        settings=("seq_length", "micro_batch", "tp", "cp"),
        source="Transformer Engine transformer_engine/pytorch/utils.py assert_dim_for_fp8_exec",
    ),
    RuleRow(
        id="residual-messages", group="precision", trainer="megatron-core", severity="advice", question="loses",
        when=lambda c: c.pp > 1 and c.fp32_residual,
        message="the residual stream in fp32 doubles the messages between stages",
        remedy="drop fp32-residual-connection unless it is needed",
        settings=("fp32_residual",), source=_CONFIG,
    ),
    RuleRow(
        id="fp32-training", group="precision", trainer="megatron-lm", severity="warning", question="loses",
        when=lambda c: c.pp > 1 and not c.has("precision") and not c.bf16 and not c.fp16 and not c.fp8 and not c.fp4,
        message="neither bf16 nor fp16 is set: everything runs in fp32",
        remedy="add bf16",
        settings=("bf16",), repairs=("bf16",), source=_ARGUMENTS,
    ),
)
# fmt: on


def _sequence_ranks(c: ReviewFacts) -> int:
    return int(c.tp) if c.get("sequence_parallel", False) else 1
