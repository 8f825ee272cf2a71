"""Rules of batches: global, micro and evaluation batches, sequences, and microbatches against ranks."""

from __future__ import annotations

from math import prod

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.rule import RuleRow

_ARGUMENTS = "Megatron-LM megatron/training/arguments.py validate_args"
_CALCULATOR = "Megatron-LM megatron/core/num_microbatches_calculator.py"
_SCHEDULES = "Megatron-LM megatron/core/pipeline_parallel/schedules.py forward_backward_pipelining_with_interleaving"


def _last_group(c: ReviewFacts) -> int:
    return int(c.count % (c.get("group_size", None) or c.pp))


def _least_padding(c: ReviewFacts) -> int:
    """Return the number that must divide the length of NeMo RL's packed sequences."""
    return (2 * c.cp if c.cp > 1 else 1) * (c.tp if c.tp > 1 and c.sequence_parallel else 1)


def _positional_limit(c: ReviewFacts) -> bool:
    return bool(c.max_position_embeddings < c.seq_length)


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="batch-not-divisible", group="batches", trainer="megatron-core",
        when=lambda c: not c.get("rampup_batch_size", None)
        and c.global_batch % (c.replicas * (1 if c.get("packed", False) else c.micro_batch)),
        message="global batch {c.global_batch} is not divisible by micro batch {c.micro_batch} x dp {c.replicas}",
        remedy="use a micro batch that divides {c.global_batch} / {c.replicas}, or another global batch",
        settings=("micro_batch", "global_batch"), repairs=("shrink-micro-batch", "round-global-batch"),
        source=f"{_CALCULATOR} ConstantNumMicroBatchesCalculator; Megatron-Bridge #5832; NeMo collections/llm/api.py",
    ),
    RuleRow(
        id="accumulation-not-divisible", group="batches", trainer="nemo-automodel",
        when=lambda c: c.global_batch % (c.local_batch * c.replica_step),
        message="global batch {c.global_batch} is not divisible by local batch {c.local_batch} x dp {c.replica_step}",
        remedy="use a local_batch_size that divides {c.global_batch} / {c.replica_step}",
        settings=("global_batch", "local_batch"), repairs=("round-global-batch",),
        source="NeMo AutoModel components/training/step_scheduler.py StepScheduler, components/distributed/mesh_utils.py",
    ),
    RuleRow(
        id="titan-batch-not-divisible", group="batches", trainer="torchtitan", releases="<0.3",
        when=lambda c: c.global_batch % (c.local_batch * c.replicas),
        message="global batch {c.global_batch} is not divisible by local batch {c.local_batch} x dp {c.replicas}",
        remedy="use a global_batch_size that is a multiple of local_batch_size x dp",
        settings=("global_batch", "local_batch"), repairs=("round-global-batch",),
        source="torchtitan 0.2 torchtitan/train.py Trainer.__init__",
    ),
    RuleRow(
        id="deepspeed-batch-product", group="batches", trainer="deepspeed",
        when=lambda c: c.global_batch != c.micro_batch * c.microbatches * c.replicas,
        message="train_batch_size {c.global_batch} is not micro batch {c.micro_batch} x accumulation {c.microbatches} x dp "
        "{c.replicas}",
        remedy="leave one of the three out: DeepSpeed computes it from the others",
        settings=("global_batch", "micro_batch", "microbatches"),
        source="DeepSpeed deepspeed/runtime/config.py DeepSpeedConfig._batch_assertion",
    ),
    RuleRow(
        id="local-batch-not-divisible", group="batches", trainer="pytorch",
        when=lambda c: c.pp > 1 and c.local_batch % c.micro_batch,
        message="local batch {c.local_batch} is not divisible by the microbatch size {c.micro_batch}",
        remedy="use a microbatch size that divides {c.local_batch}",
        settings=("micro_batch", "local_batch"), repairs=("shrink-micro-batch",),
        source="torchtitan 0.2 distributed/pipeline_parallel.py build_pipeline_schedule; AutoModel pipelining/functional.py",
    ),
    RuleRow(
        id="eval-batch-not-divisible", group="batches", trainer="megatron-core",
        when=lambda c: c.eval_global_batch
        and c.eval_global_batch % ((c.get("eval_micro_batch", None) or c.micro_batch) * c.replicas),
        message="evaluation batch {c.eval_global_batch} is not divisible by its micro batch x dp {c.replicas}",
        remedy="use an eval-global-batch-size that is a multiple of micro batch x dp",
        settings=("eval_global_batch", "eval_micro_batch"), repairs=("round-eval-batch",),
        source=f"{_ARGUMENTS}; Megatron-Bridge training/config.py ConfigContainer.validate",
    ),
    RuleRow(
        id="eval-too-few-microbatches", group="batches", trainer="megatron-core",
        when=lambda c: c.has("eval_global_batch") and c.pp > 1 and c.chunks > 1 and 0 < c.eval_count < c.pp,
        message="evaluation has {c.eval_count} microbatches, fewer than pp {c.pp}: the interleaved schedule raises",
        remedy="set eval-global-batch-size to at least micro batch x dp x pp",
        settings=("eval_global_batch", "vpp", "layers_per_virtual_stage"), repairs=("grow-eval-batch",),
        source=f"{_SCHEDULES}; Megatron-LM #5022",
    ),
    RuleRow(
        id="interleaving-too-few-microbatches", group="batches", trainer="megatron-core",
        when=lambda c: c.pp > 1 and c.chunks > 1 and c.count < c.pp,
        message="{c.count} microbatches are fewer than pp {c.pp}: the interleaved schedule raises",
        remedy="use a global batch of at least micro batch x dp x pp, or no virtual stages",
        settings=("global_batch", "micro_batch", "vpp"), repairs=("shrink-micro-batch", "grow-global-batch", "no-chunks"),
        source=_SCHEDULES,
    ),
    RuleRow(
        id="group-size-range", group="batches", trainer="megatron-core",
        when=lambda c: c.pp > 1 and c.chunks > 1 and c.group_size and not c.pp <= c.group_size <= max(c.count, c.pp),
        message="microbatch group size {c.group_size} is not between pp {c.pp} and the {c.count} microbatches",
        remedy="leave microbatch-group-size-per-virtual-pipeline-stage out, or set it to {c.pp}",
        settings=("group_size",), repairs=("no-group-size",), source=_SCHEDULES,
    ),
    RuleRow(
        id="last-group-too-small", group="batches", trainer="megatron-core", releases=">=0.10",
        when=lambda c: c.pp > 1 and c.chunks > 1 and c.count >= c.pp and 0 < _last_group(c) < c.pp,
        message="{c.count} microbatches leave a last group smaller than pp {c.pp}: the interleaved schedule raises",
        remedy="use a number of microbatches that is a multiple of {c.pp}, or another group size",
        settings=("global_batch", "group_size", "micro_batch"), repairs=("fit-group-size", "round-microbatches"),
        source=_SCHEDULES,
    ),
    RuleRow(
        id="interleaving-not-multiple", group="batches", trainer="megatron-core", releases="<0.10",
        when=lambda c: c.pp > 1 and c.chunks > 1 and c.count % c.pp,
        message="{c.count} microbatches are not a multiple of pp {c.pp}, which interleaving needs before 0.10",
        remedy="use a global batch that is a multiple of micro batch x dp x pp",
        settings=("global_batch", "micro_batch"), repairs=("round-microbatches",),
        source="Megatron-LM 0.9 forward_backward_pipelining_with_interleaving",
    ),
    RuleRow(
        id="automodel-too-few-microbatches", group="batches", trainer="nemo-automodel",
        when=lambda c: c.pp > 1 and c.local_batch // c.get("micro_batch", 1) < c.pp,
        message="local batch {c.local_batch} makes fewer microbatches than pp {c.pp}",
        remedy="use a local_batch_size of at least pp x pp_microbatch_size",
        settings=("local_batch", "micro_batch"), repairs=("grow-local-batch", "shrink-micro-batch",),
        source="NeMo AutoModel recipes/llm/train_ft.py; AutoModel #2575, #1911",
    ),
    RuleRow(
        id="single-schedule-too-few-microbatches", group="batches", trainer="pytorch",
        when=lambda c: c.pp > 1 and str(c.schedule).lower() == "1f1b" and c.count < c.pp,
        message="{c.count} microbatches are fewer than the {c.pp} stages: PyTorch's 1F1B raises",
        remedy="use at least {c.pp} microbatches",
        settings=("local_batch", "microbatches", "micro_batch"), repairs=("grow-local-batch", "shrink-micro-batch"),
        source="PyTorch torch/distributed/pipelining/schedules.py Schedule1F1B",
    ),
    RuleRow(
        id="rounds-not-divisible", group="batches", trainer="pytorch",
        when=lambda c: c.pp > 1 and "interleaved" in str(c.schedule).lower()
        and c.count % max(1, c.count // c.pp),
        message="{c.count} microbatches do not divide into {c.pp}-microbatch rounds: the interleaved schedule raises",
        remedy="use a multiple of {c.pp} microbatches",
        settings=("local_batch", "microbatches", "micro_batch"), repairs=("grow-local-batch",),
        source="PyTorch torch/distributed/pipelining/schedules.py ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble",
    ),
    RuleRow(
        id="dualpipe-too-few-microbatches", group="batches", trainer="pytorch",
        when=lambda c: "dualpipe" in str(c.schedule).lower() and c.count < 2 * c.pp,
        message="DualPipeV needs as many microbatches as stages, 2 x pp {c.pp}, not {c.count}",
        remedy="use at least twice as many microbatches as ranks",
        settings=("local_batch", "microbatches"), repairs=("grow-local-batch",),
        source="PyTorch torch/distributed/pipelining/schedules.py ScheduleDualPipeV",
    ),
    RuleRow(
        id="context-sequence", group="batches", trainer="megatron-core",
        when=lambda c: c.cp > 1 and c.seq_length % (2 * c.cp),
        message="sequence length {c.seq_length} is not a multiple of 2 x cp {c.cp}",
        remedy="use a sequence length that is a multiple of 2 x cp",
        settings=("seq_length", "cp"), repairs=("shrink-cp",),
        source=f"{_ARGUMENTS}; Megatron-Bridge training/config.py ConfigContainer.validate",
    ),
    RuleRow(
        id="sequence-over-tensor", group="batches", trainer="megatron-core",
        when=lambda c: c.tp > 1 and c.sequence_parallel and c.seq_length % prod((c.tp, c.get("cp", 1))),
        message="sequence length {c.seq_length} is not a multiple of tp x cp, over which sequence parallelism cuts it",
        remedy="use a sequence length that is a multiple of tp x cp",
        settings=("seq_length", "tp", "cp"),
        source="Megatron-LM megatron/core/tensor_parallel/mappings.py _split_along_first_dim",
    ),
    RuleRow(
        # An assertion, but of packed sequences alone.
        id="padding-over-ranks", group="batches", trainer="nemo-rl", severity="warning",
        when=lambda c: _least_padding(c) > 1 and c.pad_multiple % _least_padding(c),
        message="make_sequence_length_divisible_by {c.pad_multiple} does not split packed sequences evenly over tp and cp",
        remedy="use a multiple of 2 x cp if cp is above 1, times tp with sequence parallelism",
        settings=("pad_multiple", "tp", "cp"),
        source="NeMo RL nemo_rl/models/megatron/data.py _get_pack_sequence_parameters_for_megatron",
    ),
    RuleRow(
        id="positions-too-short", group="batches", trainer="megatron-lm",
        when=_positional_limit,
        message="max-position-embeddings {c.max_position_embeddings} is less than the sequence length {c.seq_length}",
        remedy="set max-position-embeddings to at least {c.seq_length}",
        settings=("max_position_embeddings", "seq_length"), repairs=("grow-positions",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="rampup-not-divisible", group="batches", trainer="megatron-lm",
        when=lambda c: c.rampup_batch_size and int(c.rampup_batch_size[0]) % (c.micro_batch * c.replicas),
        message="the first ramp-up batch {c.rampup_batch_size[0]} is not divisible by micro batch x dp {c.replicas}",
        remedy="start the ramp-up at a multiple of micro batch x dp, or add --decrease-batch-size-if-needed",
        settings=("rampup_batch_size", "micro_batch"),
        source=f"{_CALCULATOR} RampupBatchsizeNumMicroBatchesCalculator",
    ),
    RuleRow(
        id="bubble-of-few-microbatches", group="batches", trainer="any", question="loses", severity="warning",
        when=lambda c: c.pp > 1 and c.trains
        and _bubble(c) >= _LARGE_BUBBLE,
        message="{c.count} microbatches on {c.pp} ranks: the ranks idle at least half of the step",
        remedy="use more microbatches: a smaller micro batch, fewer replicas or a larger global batch; or virtual stages",
        settings=("global_batch", "local_batch", "micro_batch", "vpp"), repairs=("grow-local-batch", "shrink-micro-batch"),
        source="arXiv 2104.04473, section 2.2: (p - 1) / (v m)",
    ),
)
# fmt: on

_LARGE_BUBBLE = 1.0
"""Idle time over ideal time, ``(p - 1) / (v m)``, from which on a review warns: ranks idle at least half of the step."""


def _bubble(c: ReviewFacts) -> float:
    chunks = c.chunks if "megatron-core" in c.trainer.scopes else 2 if c.get("schedule", "") and c.looped else 1
    return float((c.pp - 1) / (chunks * c.count))
