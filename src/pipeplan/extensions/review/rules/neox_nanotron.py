"""Rules of GPT-NeoX and nanotron, which have pipelines of their own."""

from __future__ import annotations

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.rule import RuleRow

_NEOX = "GPT-NeoX megatron/neox_arguments/arguments.py NeoXArgs"
_NANOTRON = "nanotron src/nanotron/config/config.py Config.__post_init__"


def _enters_1f1b(c: ReviewFacts) -> bool:
    return c.pp > 1 and str(c.schedule).lower() == "1f1b"


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="neox-groups-over-tensor", group="grid", trainer="gpt-neox",
        when=lambda c: c.kv_groups < c.heads and c.kv_groups % c.tp,
        message="{c.kv_groups} KV heads do not divide by model_parallel_size {c.tp}",
        remedy="use a model_parallel_size that divides {c.kv_groups}",
        settings=("tp", "kv_groups"), repairs=("shrink-tp",), source=f"{_NEOX}.validate_values",
    ),
    RuleRow(
        id="neox-zero-with-experts", group="experts", trainer="gpt-neox",
        when=lambda c: (c.experts or 0) > 1 and c.zero_stage >= 2,
        message="ZeRO stage {c.zero_stage} cannot train a mixture of experts",
        remedy="set the stage of zero_optimization to 1",
        settings=("zero_stage", "experts"), source=f"{_NEOX}.calculate_derived",
    ),
    RuleRow(
        id="neox-bf16-gradients", group="precision", trainer="gpt-neox", severity="warning", question="right",
        when=lambda c: c.zero_stage > 0 and "bf" in str(c.precision).lower()
        and c.get("deepspeed_bf16_grads", "") != "fp32",
        message="with bfloat16 and ZeRO stage {c.zero_stage}, DeepSpeed accumulates gradients wrongly unless they are fp32",
        remedy="set data_types grad_accum_dtype fp32",
        settings=("precision", "zero_stage"), source=f"{_NEOX}.calculate_derived; DeepSpeed #1835",
    ),
    RuleRow(
        id="nanotron-too-few-microbatches", group="batches", trainer="nanotron",
        when=lambda c: _enters_1f1b(c) and c.microbatches < c.pp - 1,
        message="{c.microbatches} microbatches are fewer than pp - 1 with pp {c.pp}: the 1f1b engine raises",
        remedy="set batch_accumulation_per_replica to at least pp {c.pp}, or pp_engine afab",
        settings=("microbatches", "pp", "schedule"),
        source="nanotron src/nanotron/parallel/pipeline_parallel/engine.py OneForwardOneBackwardPipelineEngine; #347",
    ),
    RuleRow(
        id="nanotron-kv-heads-over-tensor", group="grid", trainer="nanotron",
        when=lambda c: c.kv_groups % c.tp,
        message="{c.kv_groups} KV heads do not divide by tp {c.tp}",
        remedy="use a tp that divides {c.kv_groups}",
        settings=("tp", "kv_groups"), repairs=("shrink-tp",),
        source=f"{_NANOTRON}; src/nanotron/models/llama.py CausalSelfAttention",
    ),
    RuleRow(
        id="nanotron-heads-over-groups", group="grid", trainer="nanotron",
        when=lambda c: c.heads % c.kv_groups,
        message="{c.heads} attention heads are not a multiple of {c.kv_groups} KV heads",
        remedy="use a number of KV heads that divides {c.heads}",
        settings=("kv_groups", "heads"), source=_NANOTRON,
    ),
)
# fmt: on
