"""The estimate of a reviewed configuration: its settings in the planner's terms, and what the planner predicts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from pipeplan.errors import PipeplanError
from pipeplan.files import GIBIBYTE
from pipeplan.hardware import Cluster, preset
from pipeplan.planner import (
    Configuration,
    Estimate,
    Fit,
    WorkClock,
    best_layout_of,
    costs_of,
    default_limit,
    estimate,
    fit_of,
    placed,
    schedule_of,
    stage_costs,
    widest_limit,
)
from pipeplan.reviewing.facts import NotSet, ReviewFacts
from pipeplan.reviewing.models import named_model, shape_of_sizes, similar_model
from pipeplan.reviewing.stages import layers_of_stages
from pipeplan.workload import RECOMPUTE, ModelShape, Precision

_SOFTWARE = {
    "megatron-bridge": "megatron-bridge-26.04",
    "nemo": "nemo",
    "nemo-rl": "megatron-core",
    "primus": "primus",
    "megatron-lm": "megatron-core",
    "ms-swift": "megatron-core",
    "verl": "megatron-core",
    "torchtitan": "torchtitan",
    "nemo-automodel": "automodel",
    "deepspeed": "megatron-deepspeed",
}
"""Row of the planner's software table for each trainer."""

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

_SCHEDULES = {
    "1f1b": "1f1b",
    "gpipe": "gpipe",
    "interleaved1f1b": "interleaved-1f1b",
    "loopedbfs": "looped-bfs",
    "interleavedzerobubble": "interleaved-1f1b",
    "zbvzerobubble": "zbv",
    "dualpipev": "dualpipev",
}
"""pipeplan's strategies by PyTorch's names; those that it does not have are estimated as the nearest one."""


@dataclass(frozen=True, eq=False)
class Estimated:
    """Estimate of a configuration.

    Attributes
    ----------
    model, cluster, configuration
        Inputs of the estimate.
    assumed
        Sentences about what the configuration does not say.
    guessed
        Whether the layers of the stages are assumed.
    """

    model: ModelShape
    cluster: Cluster
    configuration: Configuration
    assumed: tuple[str, ...]
    guessed: bool

    @cached_property
    def estimate(self) -> Estimate:
        """The prediction. Raises NotSet if the configuration cannot be estimated."""
        try:
            return estimate(self.model, self.cluster, self.configuration, with_error_bar=False)
        except PipeplanError as error:
            raise NotSet(str(error)) from None

    @property
    def gpu(self) -> str:
        """Name of the GPU."""
        return self.cluster.gpu.name

    @property
    def peak_gib(self) -> float:
        """Predicted peak memory of the fullest rank in GiB."""
        return self.estimate.peak_memory_gib

    @property
    def limit_gib(self) -> float:
        """Memory that a framework can use in comfort, in GiB."""
        return default_limit(self.cluster) / GIBIBYTE

    @property
    def fit(self) -> Fit:
        """Comparison of the predicted peak with the memory of a GPU."""
        return fit_of(self.estimate.peak_bytes, default_limit(self.cluster), widest_limit(self.cluster))

    @cached_property
    def stage_times(self) -> tuple[float, ...]:
        """Seconds of each stage for one microbatch, forward and backward."""
        try:
            stages = stage_costs(self.model, self.cluster, self.configuration)
        except PipeplanError as error:
            raise NotSet(str(error)) from None
        return tuple((stages.forward + stages.backward_input + stages.backward_weight).tolist())

    @cached_property
    def rank_times(self) -> tuple[float, ...]:
        """Seconds of work of each rank for one microbatch, forward and backward."""
        try:
            placement = placed(self.configuration)
        except PipeplanError as error:
            raise NotSet(str(error)) from None
        ranks = [0.0] * self.configuration.pipeline
        for copy in placement.table:
            for rank, time in zip(copy.tolist(), self.stage_times, strict=True):
                ranks[rank] += time
        return tuple(ranks)

    @property
    def heaviest(self) -> int:
        """Rank with the most work."""
        return max(range(len(self.rank_times)), key=self.rank_times.__getitem__)

    @property
    def imbalance(self) -> float:
        """Work of the heaviest rank over the mean of all ranks, less 1."""
        return max(self.rank_times) * len(self.rank_times) / sum(self.rank_times) - 1

    @property
    def best(self) -> BestSplit | None:
        """Best layout that the planner finds with the other settings; None if there is none."""
        return best_split(self.model, self.cluster, replace(self.configuration, layers=None))

    @property
    def gain(self) -> float:
        """Share of the step time that the best layout saves; 0 if this layout is as good, or there is none."""
        best = self.best
        return 0.0 if best is None else max(0.0, 1 - best.step_time / self.estimate.step_time)

    @property
    def stage_imbalance(self) -> float:
        """Time of the slowest stage over the mean of all stages, less 1."""
        return max(self.stage_times) * len(self.stage_times) / sum(self.stage_times) - 1

    @property
    def bubble(self) -> float:
        """Idle time of all ranks over their number and the step."""
        return self.estimate.time.bubble / self.estimate.step_time


@dataclass(frozen=True, slots=True)
class BestSplit:
    """Best layout that the planner finds, and the step time with it in seconds."""

    layout: tuple[int, ...]
    step_time: float


_FEW = 2
"""Microbatches per rank on which layouts are compared; more hardly change which is best."""

_SECONDS = 0.1
"""Nominal seconds of a search for a layout; a clock of work makes it independent of the machine."""


@lru_cache(maxsize=64)
def best_split(model: ModelShape, cluster: Cluster, configuration: Configuration) -> BestSplit | None:
    """Return the best layout of a configuration, whatever its own; None if the planner finds none."""
    count = min(configuration.microbatches, _FEW * configuration.pipeline)
    few = replace(configuration, global_batch=count * configuration.data * configuration.microbatch_size)
    try:
        schedule = schedule_of(few, costs_of(stage_costs(model, cluster, few), few))
        best = best_layout_of(model, cluster, configuration, schedule, seconds=_SECONDS, clock=WorkClock())
        bare = model.mtp_layers or configuration.chunks > 1
        layout = tuple(best.layout) if bare else with_last_layer(tuple(best.layout))
        filled = replace(configuration, layers=layout)
        return BestSplit(layout, estimate(model, cluster, filled, with_error_bar=False).step_time)
    except PipeplanError:
        return None


def with_last_layer(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return a layout with a layer on the last stage: a rank with the loss alone is a fault of its own."""
    if counts[-1]:
        return counts
    fullest = max(range(len(counts) - 1), key=lambda stage: (counts[stage], stage))
    return tuple(count - (stage == fullest) + (stage == len(counts) - 1) for stage, count in enumerate(counts))


@lru_cache(maxsize=128)
def estimated(c: ReviewFacts) -> Estimated:
    """Return the estimate of a configuration. Raises NotSet if it does not say enough, or cannot be."""
    phase = c.get("phase", "train")
    if not c.trains:
        raise NotSet("phase")
    assumed: list[str] = []
    model = _model(c, assumed)
    tp, pp, cp = (int(c.get(name, 1) or 1) for name in ("tp", "pp", "cp"))
    machines, data = _machines(c, tp * pp * cp, assumed)
    micro, batch = _batch(c, data, pp, assumed)
    sequence = c.get("seq_length", None)
    if sequence is None:
        sequence = _USUAL_SEQUENCE
        assumed.append(f"sequences of {_USUAL_SEQUENCE:,} tokens")
    ep = int(c.get("ep", 1) or 1)
    etp = int(c.get("etp", None) or (1 if ep > 1 else tp))
    try:
        layers, guessed = _split(_with_model(c, model), assumed) if pp > 1 else (None, False)
        chunks = len(layers) // pp if layers else 1
        configuration = Configuration(
            sequence=int(sequence), global_batch=batch, microbatch_size=micro, tensor=tp, pipeline=pp, context=cp,
            data=data, expert=ep if model.experts else 1, expert_tensor=etp if model.experts else 1, chunks=chunks,
            schedule=_schedule(c, pp, chunks), layers=layers, sequence_parallel=tp > 1 and c.get("sequence_parallel", True),
            zero=_zero(c), precision=_precision(c, assumed), recompute=_recompute(c, model, layers, assumed),
            software=_software(c), lora_rank=_lora_rank(c, phase, assumed),
        )  # fmt: skip
    except PipeplanError as error:
        raise NotSet(str(error)) from None
    if configuration.microbatches < 1:
        raise NotSet("global_batch")
    return Estimated(model, machines, configuration, tuple(assumed), guessed)


_SPLIT = {"layout": None, "first_stage_layers": None, "last_stage_layers": None, "vpp": None, "schedule": "1f1b"}
"""Assumption of an estimate about a split that a configuration leaves out."""


def _split(c: ReviewFacts, assumed: list[str]) -> tuple[tuple[int, ...], bool]:
    """Return the layers of each stage, and whether they are assumed. Raises NotSet if the trainer refuses the split."""
    try:
        return layers_of_stages(c), False
    except NotSet:
        missing = {name: value for name, value in _SPLIT.items() if not c.has(name)}
        layers = layers_of_stages(c.changed(missing))
        assumed.append("the trainer's own split of the layers")
        return layers, True


def _with_model(c: ReviewFacts, model: ModelShape) -> ReviewFacts:
    return c if c.has("layers") else c.changed({"layers": model.layers})


def _model(c: ReviewFacts, assumed: list[str]) -> ModelShape:
    """Return the model's shape, with the layers and MTP layers that the configuration sets."""
    name = str(c.get("model_name", ""))
    model = c.shape or named_model(name) or shape_of_sizes(_sizes(c))
    if model is None and (model := similar_model(name)) is not None:
        assumed.append(f"sizes of {model.name}")
    if model is None:
        raise NotSet("model_name")
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
    if cluster is None:
        device = re.sub(r"\b\d+ ?g(i?b)?\b", "", str(c.device), flags=re.IGNORECASE).strip(" -_,")
        try:
            usual = preset(device.replace(" ", "-"))
        except PipeplanError:
            raise NotSet("device") from None
        try:
            gpus = c.world
        except NotSet:
            experts = int((c.get("ep", 1) or 1) * (c.get("etp", 1) or 1) * c.get("pp", 1))
            gpus = _multiple(max(replica, experts), replica, usual.node.per_node)
            assumed.append(f"{gpus} GPUs, the fewest that the degrees need")
        per_node = min(usual.node.per_node, gpus)
        if gpus % per_node:
            per_node = next(size for size in range(per_node, 0, -1) if gpus % size == 0)
        cluster = Cluster(
            gpu=usual.gpu, per_node=per_node, nodes=gpus // per_node, inside=usual.node.inside, between=usual.node.between,
            domain=max(per_node, min(usual.node.domain or per_node, gpus)),
        )  # fmt: skip
    if cluster.gpus % replica:
        raise NotSet("gpus")
    return cluster, cluster.gpus // replica


def _multiple(least: int, *steps: int) -> int:
    """Return the smallest multiple of the first step that is at least ``least``, and of the second if it is larger."""
    replica, node = steps
    gpus = -(-least // replica) * replica
    return gpus if gpus <= node else -(-gpus // node) * node if (-(-gpus // node) * node) % replica == 0 else gpus


def _batch(c: ReviewFacts, data: int, pp: int, assumed: list[str]) -> tuple[int, int]:
    """Return the microbatch size and the global batch that the schedule runs at once."""
    micro = int(c.get("micro_batch", 1) or 1)
    if "pytorch" in c.trainer.scopes and c.has("local_batch"):
        # Without a pipeline, a replica's batch is one microbatch.
        return (micro if pp > 1 else int(c.local_batch)), int(c.local_batch) * data
    if c.has("global_batch"):
        return micro, int(c.global_batch)
    if c.has("microbatches"):
        return micro, int(c.microbatches) * micro * data
    count = 4 * pp if pp > 1 else 1
    assumed.append(f"{count} microbatches")
    return micro, count * micro * data


def _lora_rank(c: ReviewFacts, phase: str, assumed: list[str]) -> int:
    """Return the rank of low-rank adapters; 0 where all weights are trained."""
    if not c.get("lora_rank", None) and phase in ("peft", "lora"):
        assumed.append(f"adapters of rank {_USUAL_RANK}")
        return _USUAL_RANK
    return int(c.get("lora_rank", 0) or 0)


def _schedule(c: ReviewFacts, pp: int, chunks: int) -> str:
    if pp == 1:
        return "1f1b"
    if "pytorch" in c.trainer.scopes:
        return _SCHEDULES.get(str(c.get("schedule", "1f1b")).lower(), "interleaved-1f1b" if chunks > 1 else "1f1b")
    return "interleaved-1f1b" if chunks > 1 else "1f1b"


def _zero(c: ReviewFacts) -> Any:
    if c.trainer.name == "deepspeed":
        return int(c.get("zero_stage", 0))
    if "pytorch" in c.trainer.scopes:
        return 3
    if c.get("megatron_fsdp", False) or c.get("torch_fsdp2", False):
        return {"optim": 1, "optim_grads": 2, "no_shard": 0}.get(str(c.get("sharding_strategy", "")), 3)
    return 1 if c.get("distributed_optimizer", True) else 0


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


def _recompute(
    c: ReviewFacts, model: ModelShape, layers: tuple[int, ...] | None, assumed: list[str]
) -> tuple[str, ...]:
    """Return the modules that every stage recomputes, the nearest that the planner has."""
    mode = str(c.get("ac_mode", "") or "").lower()
    if c.get("activation_checkpointing", False) or mode == "full":
        return ("full",)
    if mode == "selective":
        return ("selective-op",)
    granularity = c.get("recompute_granularity", None)
    some = c.get("recompute_num_layers", None)
    if granularity == "full" or (granularity is None and some):
        held = max(layers or (model.layers,))
        if c.get("recompute_method", "block" if some else "uniform") == "block" and some and 2 * some < held:
            assumed.append(f"no recomputation, because only {some} of {held} layers per stage are recomputed")
            return ()
        return ("full",)
    modules = c.get("recompute_modules", None)
    if granularity == "selective" or c.get("recompute_activations", False) or modules:
        return tuple(module for module in modules or ("core_attn",) if module in RECOMPUTE)
    return ()


def _software(c: ReviewFacts) -> str:
    name = c.trainer.name
    if name == "megatron-lm" and c.get("overlap_grad_reduce", False):
        return "megatron-core-overlapped"
    if name == "megatron-bridge" and c.get("ep_a2a_overlap", False):
        return "megatron-bridge"
    return _SOFTWARE.get(name, "megatron-core")
