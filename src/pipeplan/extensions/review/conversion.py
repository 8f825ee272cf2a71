"""Settings of a reviewed configuration in the planner's terms: model, cluster, configuration, and what is assumed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.choice.legality import takes_shape
from pipeplan.extensions.planning.estimates.running import OVERLAPPED
from pipeplan.extensions.planning.flags import layers_of_pattern, offloaded_share
from pipeplan.extensions.planning.hardware import Cluster, Node, Preset, preset
from pipeplan.extensions.planning.workload import RECOMPUTE, ModelShape, Precision
from pipeplan.extensions.review.facts import NotSet, ReviewFacts, or_none
from pipeplan.extensions.review.models import named_model, shape_of_sizes, similar_model
from pipeplan.extensions.review.software import software_of
from pipeplan.extensions.review.stages import (
    LOSS_LAYERS,
    MTP_LAYERS,
    balanced_counts,
    chunks_of,
    layers_of_stages,
)
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.model import counted
from pipeplan.strategies import is_strategy, strategy

_PRECISIONS: tuple[tuple[str, Precision], ...] = (
    (r"nvfp4|fp4|e2m1", "nvfp4"),
    (r"mxfp8|fp8[-_]?mx|\bmx\b", "mxfp8"),
    (r"fp8|float8|e4m3|e5m2|hybrid|delayed|tensorwise|blockwise|current", "fp8"),
    (r"bf16|bfloat16", "bf16"),
    (r"fp16|half", "fp16"),
)

_USUAL_SEQUENCE = 4096
"""Tokens per sequence that an estimate assumes where a configuration does not say."""

_USUAL_RANK = 16
"""Rank of low-rank adapters that an estimate assumes where a configuration does not say."""

_FEWEST = "the fewest that the degrees need"

_SCHEDULES = {
    "1f1b": "1f1b",
    "gpipe": "gpipe",
    "interleaved1f1b": "interleaved-1f1b",
    "loopedbfs": "looped-bfs",
    "interleavedzerobubble": "interleaved-zb",
    "zbvzerobubble": "zbv",
    "dualpipev": "dualpipev",
}
"""pipeplan's strategies by PyTorch's names; those that it does not have are estimated as the nearest one."""


@dataclass(frozen=True, eq=False)
class Configured:
    """Configuration in the planner's terms.

    Attributes
    ----------
    model, cluster, configuration
        Inputs of an estimate.
    assumed
        Sentences about what the configuration does not say.
    guessed
        Whether the layers of the stages are assumed.
    recomputed
        Share of each stage's layers that are recomputed as the configuration says; the others keep all.
    host_states
        Share of the optimizer's states that are on the host.
    shared
        Stage of ZeRO of the states that more replicas would share, if the GPUs are unknown and the fewest are assumed.
    """

    model: ModelShape
    cluster: Cluster
    configuration: Configuration
    assumed: tuple[str, ...]
    guessed: bool
    recomputed: float = 1.0
    host_states: float = 0.0
    shared: int | None = None


def configured(c: ReviewFacts) -> Configured:
    """Return a configuration in the planner's terms. Raises NotSet if it does not say enough, or cannot be."""
    if c.own is not None:
        return Configured(*c.own, assumed=(), guessed=False)
    phase = c.get("phase", "train")
    if not c.trains:
        raise NotSet("phase")
    if c.cluster is None:
        usual_node(str(c.device))  # before the model, which is slow to read
    assumed: list[str] = []
    model = model_of(c, assumed)
    tp, pp, cp = (int(c.get(name, 1) or 1) for name in ("tp", "pp", "cp"))
    if unsaid := [name for name in ("tp", "pp") if not c.has(name)]:
        assumed.append(f"{' and '.join(unsaid)} of 1")
    machines, data = _machines(c, tp * pp * cp, assumed)
    micro, batch = _batch(c, data, pp, assumed)
    # A single rank shares gradients and parameters with no other.
    zero = _zero(c, assumed) if data * cp > 1 else min(_zero(c, []), 1)
    sequence = c.get("seq_length", None)
    if sequence is None:
        sequence = _USUAL_SEQUENCE
        assumed.append(f"sequences of {_USUAL_SEQUENCE:,} tokens")
    ep = int(c.get("ep", 1) or 1)
    core = "megatron-core" in c.trainer.scopes
    # Megatron's expert tensor degree is the tensor degree, unless set; a file that leaves it out mostly inherits 1.
    etp = int(c.get("etp", None) or (tp if (core and c.has("etp")) or ep == 1 else 1))
    sequence_parallel = tp > 1 and c.get("sequence_parallel", True)
    if tp > 1 and not c.has("sequence_parallel") and core:
        assumed.append("sequence parallelism")
    modules = c.get("offload_modules", None) if c.get("fine_grained_offloading", False) else None
    offloaded = offloaded_share(model, modules, c.get("recompute_modules", None) or ()) if modules else 0.0
    if c.get("cpu_offloading", False) and c.get("cpu_offloading_layers", 0):
        offloaded = min(1.0, c.cpu_offloading_layers / (model.layers / pp))
    try:
        layers, guessed = _split(c, model, assumed) if pp > 1 else (None, False)
        chunks = len(layers) // pp if layers else 1
        group = c.get("group_size", None) if chunks > 1 else None
        configuration = Configuration(
            sequence=int(sequence),
            global_batch=batch,
            microbatch_size=micro,
            tensor=tp,
            pipeline=pp,
            context=cp,
            data=data,
            expert=ep if model.experts else 1,
            expert_tensor=etp if model.experts else 1,
            chunks=chunks,
            schedule=_with_pairs(c, _schedule(c, pp, chunks), (pp, batch // (data * micro), chunks, group), ep),
            group_size=group,
            layers=layers,
            sequence_parallel=sequence_parallel,
            zero=zero,
            replicate=_copies(c) if zero else 1,
            precision=_precision(c, assumed),
            recompute=_recompute(c),
            software=software_of(c, machines.gpu),
            offload=offloaded,
            lora_rank=_lora_rank(c, phase, assumed),
        )
    except PipeplanError as error:
        raise NotSet(str(error)) from None
    if configuration.microbatches < 1:
        raise NotSet("global_batch")
    recomputed = _recomputed_share(c, model, layers)
    host = 1.0 if c.get("optimizer_cpu_offload", False) else 0.0
    if host:
        assumed.append("an update of the weights on the host that takes no time")
    shared = _zero(c, []) if any(sentence.endswith(_FEWEST) for sentence in assumed) else None
    return Configured(model, machines, configuration, tuple(assumed), guessed, recomputed, host, shared)


_SPLIT = {"layout": None, "first_stage_layers": None, "last_stage_layers": None, "vpp": None, "schedule": "1f1b"}
"""Assumption of an estimate about a split that a configuration leaves out."""


def _split(facts: ReviewFacts, model: ModelShape, assumed: list[str]) -> tuple[tuple[int, ...], bool]:
    """Return the layers of each stage, and whether they are assumed. Raises NotSet if the trainer refuses the split."""
    pattern = str(facts.get("hybrid_pattern", None) or "")
    if "|" in pattern:
        return layers_of_pattern(model, pattern), False
    c = facts if facts.has("layers") else facts.changed({"layers": model.layers})
    stated = or_none(lambda: layers_of_stages(c))
    if stated is not None:
        return stated, False
    try:
        layers = layers_of_stages(c.changed({name: value for name, value in _SPLIT.items() if not c.has(name)}))
        assumed.append("the trainer's own split of the layers")
    except NotSet:
        # A layout that the file leaves to code balances the layers, or it would not be set.
        if c.has("layout") or c.pp < 2 or "megatron-core" not in c.trainer.scopes:
            raise
        layers = balanced_counts(model.layers, c.pp * chunks_of(c), LOSS_LAYERS + MTP_LAYERS * model.mtp_layers)
        assumed.append("a balanced split of the layers")
    return layers, True


_NAMED_SIZE = re.compile(r"\d[bt](?![a-z])", re.IGNORECASE)
"""Matches the number of parameters in a model's name: ``-30B``, ``_1T``."""


def model_of(c: ReviewFacts, assumed: list[str]) -> ModelShape:
    """Return the model's shape, with the layers and MTP layers that the configuration sets."""
    name = str(c.get("model_name", ""))
    model = c.shape or named_model(name)
    if model is None and (model := shape_of_sizes(_sizes(c))) is not None and not c.has("vocab"):
        assumed.append(f"a vocabulary of {model.vocabulary:,}")
    # A successor may be of another size, which its name or the number of layers tells.
    if model is None and (c.has("layers") or _NAMED_SIZE.search(name)) and (model := similar_model(name)) is not None:
        assumed.append(f"sizes of {model.name}")
    if model is None:
        raise NotSet("model_name")
    spec = c.get("spec", None)
    if spec and c.shape is None and not c.get("hybrid_pattern", None):
        assumed.append(f"the layers that the other flags describe, not those of --spec {' '.join(spec)}: add --model")
    changes: dict[str, Any] = {}
    layers = c.get("layers", None)
    if layers and layers != model.layers:
        if model.pattern:
            raise NotSet("layers")
        changes["layers"] = int(layers)
    if c.has("mtp_layers") and c.mtp != model.mtp_layers:
        changes["mtp_layers"] = c.mtp
    try:
        if c.get("experts", None) and model.experts and c.experts != model.experts.count:
            changes["experts"] = replace(model.experts, count=int(c.experts))
        return replace(model, **changes) if changes else model
    except (PipeplanError, TypeError, ValueError) as error:
        raise NotSet(str(error)) from None


def _sizes(c: ReviewFacts) -> dict[str, Any]:
    """Return the settings that the file itself says, and Megatron's defaults of its model."""
    return {name: c.get(name, None) for name in c.settings}


def _machines(c: ReviewFacts, replica: int, assumed: list[str]) -> tuple[Cluster, int]:
    """Return the cluster and the number of replicas on it."""
    cluster = c.cluster
    node: Cluster | Node
    if cluster is None:
        usual = usual_node(str(c.device))
        gpu, node = usual.gpu, usual.node
    else:
        gpu, node = cluster.gpu, cluster
    gpus = or_none(lambda: c.world)
    if gpus is None:
        experts = int((c.get("ep", 1) or 1) * (c.get("etp", 1) or 1) * c.get("pp", 1))
        gpus = _fewest_gpus(max(replica, experts), replica, node.per_node)
        if (told := int(c.get("nodes", 0)) * node.per_node) >= gpus:
            gpus = told
            assumed.append(f"{node.per_node} GPUs in each node")
        else:
            assumed.append(f"{gpus} GPUs, {_FEWEST}")
    if cluster is None or cluster.gpus != gpus:
        if cluster is not None:
            assumed.append(f"the {counted(gpus, 'GPU')} of the configuration, not the {cluster.gpus} of the options")
        per_node = min(int(c.get("gpus_per_node", node.per_node)), gpus)
        if gpus % per_node:
            per_node = next(size for size in range(per_node, 0, -1) if gpus % size == 0)
        cluster = Cluster(
            gpu=gpu,
            per_node=per_node,
            nodes=gpus // per_node,
            inside=node.inside,
            between=node.between,
            domain=max(per_node, min(node.domain or per_node, gpus)),
        )
    if cluster.gpus % replica:
        raise NotSet("gpus")
    return cluster, cluster.gpus // replica


_GPU_MEMORY = re.compile(r"\b(\d+) ?g(?:i?b)?\b", re.IGNORECASE)
"""Memory in the name of a GPU."""


def usual_node(device: str) -> Preset:
    """Return the machines of a GPU's name; of a name with its memory, those of that memory."""
    shortened = _GPU_MEMORY.sub("", device).strip(" -_,")
    usual = next((found for name in (device, shortened) if (found := _preset(name)) is not None), None)
    memory = _GPU_MEMORY.search(device)
    if usual is None or (memory and int(memory[1]) < 0.9 * usual.gpu.memory_bytes / GIBIBYTE):
        raise NotSet("device")
    return usual


def _preset(name: str) -> Preset | None:
    try:
        return preset(name.replace(" ", "-"))
    except PipeplanError:
        return None


def _fewest_gpus(least: int, replica: int, node: int) -> int:
    """Return the fewest GPUs, at least ``least``, that whole replicas fill; on whole nodes if these hold whole replicas."""
    gpus = -(-least // replica) * replica
    on_nodes = -(-gpus // node) * node
    return on_nodes if gpus > node and on_nodes % replica == 0 else gpus


def _batch(c: ReviewFacts, data: int, pp: int, assumed: list[str]) -> tuple[int, int]:
    """Return the microbatch size and the global batch that the schedule runs at once."""
    micro = int(c.get("micro_batch", 1) or 1)
    if "megatron-core" in c.trainer.scopes and not c.has("micro_batch"):
        assumed.append("a micro batch of 1")
    if "pytorch" in c.trainer.scopes and c.has("local_batch"):
        if pp > 1:
            return micro, int(c.local_batch) * data
        # Without a pipeline, a replica's batch is one microbatch, and gradients of several are accumulated.
        return int(c.local_batch), int(c.get("global_batch", int(c.local_batch) * data))
    if c.has("global_batch"):
        return micro, int(c.global_batch)
    if c.has("microbatches"):
        return micro, int(c.microbatches) * micro * data
    count = 4 * pp if pp > 1 else 1
    assumed.append(f"{count} microbatches")
    return micro, count * micro * data


_WHOLE = frozenset({"full", "none", "sft", "false", ""})
"""Ways to fine-tune in which all weights are trained."""


def _lora_rank(c: ReviewFacts, phase: str, assumed: list[str]) -> int:
    """Return the rank of low-rank adapters; 0 where all weights are trained, whatever rank a trainer defaults to."""
    way, rank = c.get("peft", None), int(c.get("lora_rank", 0) or 0)
    if way is not None and str(way).lower() in _WHOLE:
        return 0
    if not rank and (way or phase in ("peft", "lora")):
        assumed.append(f"adapters of rank {_USUAL_RANK}")
        return _USUAL_RANK
    return rank


def _schedule(c: ReviewFacts, pp: int, chunks: int) -> str:
    usual = "interleaved-1f1b" if chunks > 1 and pp > 1 else "1f1b"
    if pp == 1 or "pytorch" not in c.trainer.scopes:
        return usual
    # A file with the order of ops counts, and the name of the schedule only sets the placement: llama3-70b.zbv.csv.
    ordered = PurePath(str(c.get("schedule_csv", None) or "")).stem.rpartition(".")[2]
    if is_strategy(ordered):
        return strategy(ordered).name
    return _SCHEDULES.get(str(c.get("schedule", "1f1b")).lower(), usual)


def _with_pairs(c: ReviewFacts, schedule: str, shape: tuple[int, int, int, int | None], ep: int) -> str:
    """Return the schedule with pairs if exchanges with experts overlap, and Megatron-core runs it in this shape."""
    pp, _, chunks, _ = shape
    hides = schedule in OVERLAPPED and ep > 1 and c.get("ep_a2a_overlap", False) and (pp == 1 or chunks > 1)
    return OVERLAPPED[schedule] if hides and takes_shape(OVERLAPPED[schedule], *shape) else schedule


def _zero(c: ReviewFacts, assumed: list[str]) -> Any:
    if c.trainer.name == "deepspeed":
        return int(c.get("zero_stage", 0))
    if "pytorch" in c.trainer.scopes:
        return _zero_of_torch(c)
    if c.get("torch_fsdp2", False):
        return 3
    if c.get("megatron_fsdp", False):
        return {"optim": 1, "optim_grads": 2, "no_shard": 0}.get(str(c.get("sharding_strategy", "")), 3)
    if not c.has("distributed_optimizer"):
        assumed.append("the distributed optimizer")
    return 1 if c.get("distributed_optimizer", True) else 0


def _zero_of_torch(c: ReviewFacts) -> int:
    if c.get("dp_shard", None) == 1 and _copies(c) > 1:
        return 0
    kept = str(c.get("fsdp_reshard", "")).lower() == "never" and int(c.get("pp", 1) or 1) == 1
    return 2 if kept else 3


def _copies(c: ReviewFacts) -> int:
    """Return the copies of a state that is sharded within groups of ranks."""
    return int(c.get("dp_replicate", 1) or 1)


def _precision(c: ReviewFacts, assumed: list[str]) -> Precision:
    recipe = str(c.get("fp8_recipe", "") or "") if c.get("fp8", None) else ""
    words = [recipe, c.get("fp4", None), c.get("fp8", None), c.get("precision", None)]
    words += [name for name in ("bf16", "fp16") if c.get(name, False)]
    for word in filter(None, words):
        precision = next((kind for pattern, kind in _PRECISIONS if re.search(pattern, str(word), re.IGNORECASE)), None)
        if precision is not None:
            return precision
    assumed.append("bf16")
    return "bf16"


def _recompute(c: ReviewFacts) -> tuple[str, ...]:
    """Return the modules that every stage recomputes, the nearest that the planner has."""
    mode = str(c.get("ac_mode", "") or "").lower()
    if c.get("activation_checkpointing", False) or mode == "full":
        return ("full",)
    if mode in ("selective", "memory_budget"):
        return ("selective-op",)
    granularity = c.get("recompute_granularity", None)
    if granularity == "full" or (not c.has("recompute_granularity") and c.get("recompute_num_layers", None)):
        return ("full",)
    modules = c.get("recompute_modules", None)
    selective = granularity == "selective" or c.get("recompute_activations", False)
    if selective or (modules and not c.has("recompute_granularity")):
        return tuple(module for module in modules or ("core_attn",) if module in RECOMPUTE)
    return ()


def _recomputed_share(c: ReviewFacts, model: ModelShape, layers: tuple[int, ...] | None) -> float:
    """Return the share of a stage's layers that are recomputed: Megatron's ``block`` counts those of each stage."""
    some = c.get("recompute_num_layers", None)
    if not some or _recompute(c) != ("full",) or c.get("recompute_method", "block") != "block":
        return 1.0
    return float(min(1.0, some / max(layers or (model.layers,))))
