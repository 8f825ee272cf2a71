"""Rules of the grid of GPUs: degrees against the number of GPUs, and against the model's sizes."""

from __future__ import annotations

from math import prod

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.rule import RuleRow
from pipeplan.extensions.review.settings import SETTINGS

_ARGUMENTS = "Megatron-LM megatron/training/arguments.py validate_args"
_CONFIG = "Megatron-LM megatron/core/transformer/transformer_config.py TransformerConfig.__post_init__"
_PARALLEL = "Megatron-LM megatron/core/model_parallel_config.py ModelParallelConfig.__post_init__"
_STATE = "Megatron-LM megatron/core/parallel_state.py initialize_model_parallel"

_DEGREES = ("tp", "pp", "cp", "ep")

_BATCHES = ("micro_batch", "global_batch")

_MEGATRON = (*_DEGREES, "etp", "vpp", "layers")

_ABOVE_ZERO = {
    "megatron-lm": (*_MEGATRON, *_BATCHES),
    "megatron-bridge": (*_MEGATRON, *_BATCHES),
    "nemo": (*_MEGATRON, *_BATCHES),
    "torchtitan": (*_DEGREES, "local_batch"),
    "nemo-automodel": ("global_batch", "local_batch"),
}
"""Counts of which a trainer refuses zero; of the others with Megatron-core, those of the grid.

Elsewhere zero means none: a batch of verl or of Primus' other backends, a degree of AutoModel or GPT-NeoX.
"""


def _below_one(c: ReviewFacts) -> bool:
    """Return True if a count is below 1 and its trainer refuses that; all other rules take such a count as left out.

    A degree of -1 leaves it to the checkpoint or to the trainer.
    """
    names = _ABOVE_ZERO.get(c.trainer.name, _MEGATRON if "megatron-core" in c.trainer.scopes else ())
    values = [c.settings[name].value for name in names if name in c.settings]
    return any(isinstance(value, int) and value < 1 and value != -1 for value in values)


def _expert_ranks(c: ReviewFacts) -> int:
    """Return the GPUs that the experts of one pipeline need, as far as the configuration says: the rest counts as 1."""
    etp = c.get("etp", None)
    if etp is None and c.has("etp"):
        # Megatron's default is the tensor degree.
        etp = c.get("tp", 1)
    return prod((c.ep, c.get("pp", 1), etp or 1))


def _leaves_gpus(c: ReviewFacts) -> bool:
    """Return True if a replica, as far as its degrees are known, does not divide the GPUs."""
    return bool(c.world >= c.model_parallel and c.world % c.model_parallel)


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="degree-below-one", group="grid", trainer="any", when=_below_one,
        message="a degree, batch size or number of layers is below 1",
        remedy="set it to at least 1, or leave it out",
        settings=(*_DEGREES, "vpp", "micro_batch", "global_batch", "layers"),
        source=f"{_ARGUMENTS}; torchtitan torchtitan/distributed/parallel_dims.py ParallelDims._validate; NeMo AutoModel "
        "components/training/step_scheduler.py StepScheduler",
    ),
    RuleRow(
        id="gpus-not-divisible", group="grid", trainer="any",
        when=lambda c: not _one_gpu(c) and (_leaves_gpus(c) or c.lacks("tp", "pp", "cp")),
        message="{c.world} GPUs are not a multiple of tp x pp x cp = {c.model_parallel}",
        remedy="use a multiple of {c.model_parallel} GPUs, or degrees whose product divides {c.world}",
        settings=("gpus", "nodes", "pp", "tp", "cp"), repairs=("gpus", "shrink-degrees"),
        source=f"{_ARGUMENTS}; {_STATE}; Megatron-Bridge training/config.py get_data_parallel_size; NeMo #12170",
    ),
    RuleRow(
        id="too-few-gpus", group="grid", trainer="any",
        when=lambda c: not _one_gpu(c) and (c.world < c.model_parallel or c.lacks("tp", "pp", "cp")),
        message="tp x pp x cp = {c.model_parallel} GPUs are needed for one replica, and there are {c.world}",
        remedy="use at least {c.model_parallel} GPUs, or smaller degrees",
        settings=("gpus", "nodes", "tp", "pp", "cp"), repairs=("gpus", "shrink-degrees"),
        source=f"{_ARGUMENTS}; {_STATE}; NeMo RL #717",
    ),
    RuleRow(
        id="expert-grid", group="grid", trainer="megatron-core",
        when=lambda c: not c.dense and c.ep > 1 and (c.world % _expert_ranks(c) or c.lacks("pp", "etp")),
        message="the expert grid ep {c.ep} x pp x etp does not divide {c.world} GPUs; without expert-tensor-parallel-size, "
        "etp is tp",
        remedy="set expert-tensor-parallel-size 1, or an ep for which ep x etp x pp divides {c.world}",
        settings=("ep", "etp", "gpus", "pp"), repairs=("etp-one", "fit-experts", "shrink-ep"),
        source=f"{_STATE}; NeMo #12828",
    ),
    RuleRow(
        id="mesh-experts", group="grid", trainer="nemo-automodel",
        when=lambda c: not c.dense and c.ep > 1 and (c.world // c.get("pp", 1)) % c.ep,
        message="ep {c.ep} does not divide the GPUs of a pipeline rank, {c.world} / pp",
        remedy="use a multiple of pp x ep GPUs, or an ep that divides the GPUs of a pipeline rank",
        settings=("ep", "gpus", "nodes", "pp"), repairs=("expert-gpus", "shrink-ep"),
        source="NeMo AutoModel components/distributed/mesh_utils.py _create_fsdp2_device_mesh; AutoModel #2546",
    ),
    RuleRow(
        id="sparse-region", group="grid", trainer="torchtitan",
        when=lambda c: not c.dense and c.ep > 1
        and (c.world // (c.get("pp", 1) * (c.get("dp_replicate", 1) or 1))) % c.ep,
        message="ep {c.ep} does not divide dp_shard x cp x tp",
        remedy="use an expert_parallel_degree that divides data_parallel_shard_degree x context x tensor degree",
        settings=("ep", "dp_shard", "gpus"), repairs=("shrink-ep",),
        source="torchtitan torchtitan/distributed/parallel_dims.py ParallelDims._validate",
    ),
    RuleRow(
        id="mesh-product", group="grid", trainer="torchtitan",
        when=lambda c: c.dp_shard > 0
        and c.dp_shard * prod(c.get(name, 1) for name in ("dp_replicate", "tp", "pp", "cp"))
        != c.world,
        message="dp_replicate x dp_shard x cp x tp x pp is not the number of GPUs, {c.world}",
        remedy="set data_parallel_shard_degree -1, or degrees whose product is {c.world}",
        settings=("dp_shard", "dp_replicate", "gpus", "tp", "pp"), repairs=("shard-rest",),
        source="torchtitan torchtitan/distributed/parallel_dims.py ParallelDims._validate",
    ),
    RuleRow(
        id="replicas-in-shards", group="grid", trainer="nemo-automodel",
        when=lambda c: c.dp_replicate > 1 and (c.replicas % c.dp_replicate or c.dp_replicate >= c.replicas),
        message="dp_replicate_size {c.dp_replicate} must divide dp {c.replicas}, and be smaller",
        remedy="use a smaller dp_replicate_size that divides dp",
        settings=("dp_replicate", "dp"),
        source="NeMo AutoModel components/distributed/mesh_utils.py _create_fsdp2_device_mesh",
    ),
    RuleRow(
        id="data-parallel-product", group="grid", trainer="any",
        when=lambda c: c.has("dp") and c.dp * c.tp * c.pp * c.cp != c.world and c.world % c.model_parallel == 0,
        message="dp {c.dp} x tp {c.tp} x pp {c.pp} x cp {c.cp} is not the number of GPUs, {c.world}",
        remedy="leave dp out, or set it to the GPUs divided by tp x pp x cp",
        settings=("dp", "gpus"),
        source=f"{_STATE}; NeMo AutoModel components/distributed/mesh_utils.py _infer_dp_size",
    ),
    RuleRow(
        id="heads-over-tensor", group="grid", trainer="any",
        when=lambda c: c.tp > 1 and c.heads % c.tp,
        message="{c.heads} attention heads do not divide by tp {c.tp}",
        remedy="use a tp that divides {c.heads}",
        settings=("tp", "heads"), repairs=("shrink-tp",),
        source=f"{_CONFIG}; torchtitan torchtitan/models/common/decoder.py update_from_config",
    ),
    RuleRow(
        id="groups-over-tensor", group="grid", trainer="megatron-core",
        when=lambda c: c.tp > 1 and not c.get("mla", False) and c.kv_groups % c.tp and c.tp % c.kv_groups,
        message="tp {c.tp} is neither a multiple nor a divisor of the {c.kv_groups} KV groups",
        remedy="use a tp that divides {c.kv_groups}, or a multiple of it",
        settings=("tp", "kv_groups"), repairs=("shrink-tp",), source=_CONFIG,
    ),
    RuleRow(
        id="groups-not-multiple", group="grid", trainer="megatron-core", releases="<0.16",
        when=lambda c: c.tp > 1 and not c.get("mla", False) and c.kv_groups % c.tp,
        message="{c.kv_groups} KV groups do not divide by tp {c.tp}, which Megatron-core needs before 0.16",
        remedy="use a tp that divides {c.kv_groups}, and more pipeline ranks",
        settings=("tp", "kv_groups"), repairs=("tp-to-pp", "shrink-tp"),
        source="Megatron-LM 0.15 TransformerConfig.__post_init__; NeMo #11127, #11267",
    ),
    RuleRow(
        id="groups-below-tensor", group="grid", trainer="megatron-core", releases=">=0.16", severity="warning",
        when=lambda c: c.tp > 1 and not c.get("mla", False) and c.kv_groups < c.tp and c.tp % c.kv_groups == 0,
        message="{c.kv_groups} KV groups are fewer than tp {c.tp}: refused before Megatron-core 0.16, replicated since",
        remedy="use a tp of at most {c.kv_groups}, or make sure that Megatron-core is 0.16 or later",
        settings=("tp", "kv_groups"), repairs=("tp-to-pp", "shrink-tp"),
        source="Megatron-LM #2565; slime #1662, ms-swift #8219",
    ),
    RuleRow(
        id="kv-heads-over-tensor", group="grid", trainer="torchtitan",
        when=lambda c: c.tp > 1 and c.kv_groups % c.tp,
        message="{c.kv_groups} KV heads do not divide by tp {c.tp}",
        remedy="use a tp that divides {c.kv_groups}",
        settings=("tp", "kv_groups"), repairs=("shrink-tp",),
        source="torchtitan torchtitan/models/common/decoder.py update_from_config",
    ),
    RuleRow(
        id="automodel-kv-heads", group="grid", trainer="nemo-automodel",
        when=lambda c: c.tp > 1 and c.kv_groups % c.tp,
        message="{c.kv_groups} KV heads do not divide by tp {c.tp}",
        remedy="use a tp that divides {c.kv_groups}",
        settings=("tp", "kv_groups"), repairs=("shrink-tp",),
        source="NeMo AutoModel components/distributed/parallelizer.py validate_tp_mesh",
    ),
    RuleRow(
        id="experts-over-ranks", group="grid", trainer="any",
        when=lambda c: not c.dense and c.ep > 1 and c.experts % c.ep,
        message="{c.experts} experts do not divide by ep {c.ep}",
        remedy="use an ep that divides {c.experts}",
        settings=("ep", "experts"), repairs=("shrink-ep",),
        source=f"{_ARGUMENTS}; torchtitan torchtitan/models/common/decoder.py update_from_config",
    ),
    RuleRow(
        id="experts-without-model", group="grid", trainer="megatron-core",
        when=lambda c: not c.get("experts", None) and c.ep > 1 and c.experts is None,
        message="ep is {c.ep}, but the model has no experts",
        remedy="set num-experts, or expert-model-parallel-size 1",
        settings=("ep", "experts"), repairs=("ep-one",), source=_CONFIG,
    ),
    RuleRow(
        id="expert-bias-over-tensor", group="grid", trainer="megatron-core",
        when=lambda c: not c.dense and c.get("etp", None) != 1 and c.get("add_bias_linear", True) and c.expert_tensor > 1
        and c.experts and c.add_bias_linear,
        message="experts with bias need etp 1, not {c.expert_tensor}",
        remedy="set expert-tensor-parallel-size 1, or --disable-bias-linear",
        settings=("etp", "add_bias_linear", "tp"), repairs=("etp-one",), source=_CONFIG,
    ),
    RuleRow(
        id="sequence-parallel-alone", group="grid", trainer="megatron-core",
        when=lambda c: c.tp == 1 and "megatron-lm" not in c.trainer.scopes and c.sequence_parallel,
        severity="advice",
        message="sequence parallelism does nothing at tp 1; Megatron-core itself refuses it",
        remedy="leave sequence_parallel out",
        settings=("sequence_parallel", "tp"), source=_PARALLEL,
    ),
    RuleRow(
        id="experts-without-sequence", group="grid", trainer="megatron-core",
        when=lambda c: not c.dense and c.tp > 1 and c.trains and c.experts and not c.sequence_parallel,
        message="training a mixture of experts at tp {c.tp} needs sequence parallelism",
        remedy="add sequence-parallel, or use tp 1",
        settings=("sequence_parallel", "tp"), repairs=("sequence-parallel",),
        source="Megatron-LM megatron/core/transformer/moe/moe_layer.py MoELayer.forward",
    ),
    RuleRow(
        id="absorbed-latent-attention", group="grid", trainer="megatron-core",
        when=lambda c: c.tp > 1 and c.attention_variant == "dsa" and not _shards_sequence(c),
        message="absorbed latent attention needs sequence parallelism at tp {c.tp}, which inference does not provide",
        remedy="use tp 1 and more pipeline ranks, or add sequence-parallel for training",
        settings=("tp", "sequence_parallel"), repairs=("tp-to-pp", "sequence-parallel"),
        source="Megatron-LM megatron/core/transformer/experimental_attention_variant/absorbed_mla.py; Megatron-Bridge #4999",
    ),
    RuleRow(
        id="linear-heads-over-tensor", group="grid", trainer="megatron-core",
        when=lambda c: c.hybrid_pattern and c.kv_groups and c.heads % (c.tp * c.get("cp", 1)),
        severity="warning",
        message="{c.heads} heads of a hybrid model do not divide by tp x cp",
        remedy="use degrees tp x cp that divide {c.heads}",
        settings=("tp", "cp", "heads"), source=_CONFIG,
    ),
    RuleRow(
        id="tensor-beyond-node", group="grid", trainer="any", question="loses", severity="warning",
        when=lambda c: c.tp > 8 and not c.is_grace,
        message="tp {c.tp} leaves the node of 8 GPUs: each layer waits for the network twice",
        remedy="use tp 8 or less, and more pipeline ranks",
        settings=("tp",), source="arXiv 2104.04473, section 3.2",
    ),
    RuleRow(
        id="experts-beyond-domain", group="grid", trainer="any", question="loses", severity="advice",
        when=lambda c: not c.dense and c.ep > 8 and c.get("pp", 1) == 1 and not c.is_grace
        and not c.either("dispatcher_backend", "deepep"),
        message="ep {c.ep} leaves the node of 8 GPUs: tokens cross the network in every layer",
        remedy="use ep 8 with pipeline ranks, or the flex dispatcher with DeepEP or HybridEP",
        settings=("ep", "dispatcher"), source="Megatron-LM megatron/core/transformer/moe/README.md",
    ),
)
# fmt: on


def _one_gpu(c: ReviewFacts) -> bool:
    """Return True if a replica is known to be a single GPU, which fits any number of GPUs."""
    return c.has("tp", "pp", "cp") and c.model_parallel == 1


def _shards_sequence(c: ReviewFacts) -> bool:
    return c.trains and bool(c.sequence_parallel)


assert all(name in SETTINGS for rule in RULES for name in rule.settings)
