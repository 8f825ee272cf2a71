"""Rules that valid configurations satisfy: of arithmetic, of nodes, and of trainers; and rules of practice.

A rule reads some fields of a configuration, and is checked as soon as these are chosen (enumerated in
``candidates``). Sources: Megatron-LM's transformer_config.py and arguments.py (core 0.16),
torchtitan's parallel_dims.py, and the strategies' own rules.

A rule of practice excludes a choice that works but that hardly any published run makes, such as offloading activations. It
holds unless the user allows the choice (``--allow``), or fixes the field in question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, get_args

from pipeplan.extensions.planning.choice.request import PlanRequest
from pipeplan.extensions.planning.estimates.running import OVERLAPPED
from pipeplan.extensions.planning.hardware import FORMATS, Gpu
from pipeplan.extensions.planning.workload import RECOMPUTE, Precision, mixer_splits
from pipeplan.foundation.errors import ShapeError
from pipeplan.strategies import strategy

Draft = Mapping[str, Any]
"""Fields of a configuration chosen so far, by name."""

Holds = Callable[[PlanRequest, Draft], object]
"""Predicate of a rule; false values mean that the draft breaks it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Condition on valid configurations.

    Attributes
    ----------
    name
        Name of one or two words.
    needs
        Fields that the rule reads.
    holds
        Predicate.
    sentence
        The rule in words, with the numbers of the request.
    choice
        Field that a rule of practice restricts; a user who fixes it has chosen. Empty: the rule always holds.
    """

    name: str
    needs: frozenset[str]
    holds: Holds
    sentence: Callable[[PlanRequest], str]
    choice: str = ""

    def admits(self, request: PlanRequest, draft: Draft) -> bool:
        """Return True if a draft satisfies the rule, or if the user waived it."""
        waived = self.choice and (self.name in request.allowed or self.choice in request.fixed)
        return bool(waived or self.holds(request, draft))


def _rule(
    name: str, needs: str, sentence: str | Callable[[PlanRequest], str], holds: Holds, *, choice: str = ""
) -> Rule:
    text = sentence if callable(sentence) else lambda _: str(sentence)
    return Rule(name, frozenset(needs.split()), holds, text, choice)


def is_torchtitan(draft: Draft) -> bool:
    """Return True if a draft is for torchtitan, in any release and setting."""
    return bool(draft["software"].startswith("torchtitan"))


def precisions_of(gpu: Gpu) -> tuple[Precision, ...]:
    """Return the precisions that a GPU supports.

    Block scales, as in mxfp8, came together with 4-bit products (Blackwell, CDNA 4).
    """
    blocks = "fp4" in gpu.peak
    supported = (name for name in get_args(Precision) if FORMATS[name] in gpu.peak)
    return tuple(name for name in supported if blocks or name != "mxfp8")


def usual_precision(request: PlanRequest) -> Precision:
    """Return the number format that the model was trained in, or bf16 if the GPU does not support it."""
    precision = request.model.precision
    return precision if precision in precisions_of(request.cluster.gpu) else "bf16"


def most_stages(request: PlanRequest) -> int:
    """Return the maximum number of stages: one per layer, and one each for the embedding and for head and loss."""
    return request.model.layers + request.model.mtp_layers + 2


@lru_cache(maxsize=65536)
def takes_shape(name: str, ranks: int, microbatches: int, chunks: int, group: int | None) -> bool:
    """Return True if a strategy can generate a schedule of a shape."""
    rule = strategy(name)
    try:
        return rule.accepts(rule.shape(ranks, microbatches, chunks, group_size=group))
    except ShapeError:
        return False


def _divides_kv_heads(request: PlanRequest, draft: Draft) -> bool:
    kv_heads, tensor = request.model.kv_heads, draft["tensor"]
    if request.model.latent is not None or kv_heads is None:
        return True
    return bool(kv_heads % tensor == 0 or tensor % kv_heads == 0)


def _divides_mixers(request: PlanRequest, draft: Draft) -> bool:
    """Return True if tp divides the heads of every mixer in the place of attention."""
    model = request.model
    sizes = [size for _, size in mixer_splits(model)]
    if model.windowed_heads is not None:
        sizes.append(model.windowed_heads.heads or model.heads)
    return all(size % draft["tensor"] == 0 for size in sizes)


def _divides_ffn(request: PlanRequest, draft: Draft) -> bool:
    widths = [request.model.ffn or 0]
    if request.model.experts is not None:
        widths.append(request.model.experts.shared_width)
    return all(width % draft["tensor"] == 0 for width in widths)


def _splits_experts_as_torchtitan(request: PlanRequest, draft: Draft) -> bool:
    if request.model.experts is None or not is_torchtitan(draft):
        return True
    return bool(draft["expert_tensor"] == (draft["tensor"] if draft["expert"] == 1 else 1))


def _multiplies_in_fp8(request: PlanRequest, draft: Draft) -> bool:
    if draft["precision"] not in ("fp8", "mxfp8") or is_torchtitan(draft):
        return True
    return all(size % (16 * draft["tensor"]) == 0 for size in (request.model.hidden, request.model.ffn or 0))


def _microbatches(request: PlanRequest, draft: Draft) -> int:
    return int(request.global_batch // (draft["data"] * draft["microbatch_size"]))


def _whole_groups(request: PlanRequest, draft: Draft) -> bool:
    if draft["schedule"] not in ("interleaved-1f1b", "interleaved-1f1b-overlap") or is_torchtitan(draft):
        return True
    ranks, group = draft["pipeline"], draft.get("group_size") or draft["pipeline"]
    left = _microbatches(request, draft) % group
    return bool(group >= ranks and (left == 0 or left >= ranks) and _microbatches(request, draft) >= ranks)


def _trainer_runs(request: PlanRequest, draft: Draft) -> bool:
    runs = [request.trainers[name].schedules for name in request.fixed.get("trainer", ())]
    return not runs or any(schedules is None or draft["schedule"] in schedules for schedules in runs)


def _pairs_as_megatron(request: PlanRequest, draft: Draft) -> bool:
    """Return True if Megatron-LM runs the pairs of a schedule, which other runtimes do with any pipeline."""
    ranks, model = draft["pipeline"], request.model
    if draft["schedule"] not in OVERLAPPED.values() or (ranks > 1 and not request.fixed.get("trainer")):
        return True
    if (draft["schedule"] == "1f1b-overlap") != (ranks == 1) or model.mixers or model.residual_streams > 1:
        return False
    recomputes = all(excludes(draft["schedule"], modules) for modules in request.fixed.get("recompute", ((),)))
    return bool(draft["expert"] > 1 and model.mtp_layers <= (ranks > 1) and not recomputes)


def excludes(schedule: str, recompute: Collection[str]) -> bool:
    """Return True if a schedule's pairs exclude a recomputation, which would exchange tokens again (Megatron-core)."""
    return schedule in OVERLAPPED.values() and not {"full", "moe"}.isdisjoint(recompute)


USUAL_CHUNKS = 4
"""Maximum chunks per rank in practice: of the public runs, one in ten has more."""

USUAL_LAYERS = 2
"""Minimum layers per chunk in practice."""


def _few_chunks(request: PlanRequest, draft: Draft) -> bool:
    ranks, chunks = draft["pipeline"], draft["chunks"]
    return bool(ranks == 1 or (chunks <= USUAL_CHUNKS and request.model.layers >= USUAL_LAYERS * ranks * chunks))


def _some_trainer_runs(request: PlanRequest, draft: Draft) -> bool:
    """Return True if a trainer of the draft's family (Megatron-LM and its forks, or torchtitan) has the schedule."""
    family = [
        trainer.schedules
        for trainer in request.trainers.values()
        if trainer.schedules is not None and trainer.software.startswith("torchtitan") == is_torchtitan(draft)
    ]
    return not family or any(draft["schedule"] in schedules for schedules in family)


def _recomputes_what_is_there(request: PlanRequest, draft: Draft) -> bool:
    modules = set(draft["recompute"])
    if request.model.latent is None and "mla_up_proj" in modules:
        return False
    return request.model.experts is not None or not modules & {"moe", "moe_act", "shared_experts"}


_OF_TORCHTITAN = frozenset({"full", "selective-op"})
_OF_OTHERS = frozenset(RECOMPUTE) - {"selective-op"}
"""Modules that trainers other than torchtitan recompute."""

# Rules of arithmetic come first, then those of nodes, trainers and schedules; the first broken rule is reported.
RULES: tuple[Rule, ...] = (
    _rule(
        "GPUs",
        "tensor context pipeline data",
        lambda q: f"tp x cp x pp x dp must equal the {q.gpus} GPUs",
        lambda q, d: d["tensor"] * d["context"] * d["pipeline"] * d["data"] == q.gpus,
    ),
    _rule(
        "heads",
        "tensor",
        lambda q: f"tp must divide the {q.model.heads} attention heads",
        lambda q, d: q.model.heads % d["tensor"] == 0,
    ),
    _rule(
        "KV heads",
        "tensor",
        lambda q: f"tp must divide the {q.model.kv_heads} KV heads or be a multiple of them",
        _divides_kv_heads,
    ),
    _rule(
        "torchtitan's KV heads",
        "tensor software",
        lambda q: f"torchtitan does not copy KV heads: tp must divide the {q.model.key_heads}",
        lambda q, d: not is_torchtitan(d) or q.model.key_heads % d["tensor"] == 0,
    ),
    _rule(
        "heads of other mixers",
        "tensor",
        "tp must divide the heads of state-space layers, linear attention and windowed layers",
        _divides_mixers,
    ),
    _rule("FFN width", "tensor", "tp must divide the FFN width and the width of shared experts", _divides_ffn),
    _rule(
        "node",
        "tensor",
        lambda q: f"tp must divide the {q.cluster.joined} GPUs of a fast-link domain",
        lambda q, d: q.cluster.joined % d["tensor"] == 0,
    ),
    _rule(
        "context",
        "context",
        lambda q: f"2 x cp must divide the sequence length {q.sequence}",
        lambda q, d: d["context"] == 1 or q.sequence % (2 * d["context"]) == 0,
    ),
    _rule(
        "stages",
        "pipeline",
        lambda q: (
            f"pp must be at most {most_stages(q)}: one layer per stage; embedding and head may have their own stages"
        ),
        lambda q, d: d["pipeline"] <= most_stages(q),
    ),
    _rule(
        "sequence parallel",
        "tensor context sequence_parallel",
        "with sequence parallelism, tp must divide the tokens of a context rank",
        lambda q, d: not d["sequence_parallel"] or q.sequence // d["context"] % d["tensor"] == 0,
    ),
    _rule(
        "batch",
        "data microbatch_size",
        lambda q: f"dp x microbatch size must divide the global batch {q.global_batch}",
        lambda q, d: q.global_batch % (d["data"] * d["microbatch_size"]) == 0,
    ),
    _rule(
        "dense",
        "expert expert_tensor",
        "a dense model has no experts: ep and etp must be 1",
        lambda q, d: q.model.experts or d["expert"] == d["expert_tensor"] == 1,
    ),
    _rule(
        "experts",
        "expert",
        lambda q: f"ep must divide the {q.model.experts.count if q.model.experts else 0} experts",
        lambda q, d: q.model.experts is None or q.model.experts.count % d["expert"] == 0,
    ),
    _rule(
        "expert width",
        "expert_tensor",
        "etp must divide the width of an expert",
        lambda q, d: q.model.experts is None or q.model.experts.width % d["expert_tensor"] == 0,
    ),
    _rule(
        "experts' biases",
        "expert_tensor",
        "trainers do not split experts that have biases: etp must be 1",
        lambda q, d: q.model.experts is None or not q.model.experts.expert_bias or d["expert_tensor"] == 1,
    ),
    _rule(
        "expert tensor",
        "expert_tensor",
        lambda q: f"etp must divide the {q.cluster.joined} GPUs of a fast-link domain",
        lambda q, d: q.cluster.joined % d["expert_tensor"] == 0,
    ),
    _rule(
        "expert ranks",
        "tensor context data expert expert_tensor",
        "ep x etp must divide the ranks of a stage, tp x cp x dp",
        lambda q, d: d["tensor"] * d["context"] * d["data"] % (d["expert"] * d["expert_tensor"]) == 0,
    ),
    _rule(
        "torchtitan's experts",
        "tensor expert expert_tensor software",
        "torchtitan splits experts over the tensor ranks without expert parallelism, and over no others: etp must be tp if "
        "ep is 1, otherwise 1",
        _splits_experts_as_torchtitan,
    ),
    _rule(
        "format",
        "precision",
        lambda q: f"{q.cluster.gpu.name} supports only {', '.join(precisions_of(q.cluster.gpu))}",
        lambda q, d: d["precision"] in precisions_of(q.cluster.gpu),
    ),
    _rule(
        "fp8 sizes",
        "tensor precision software",
        "Transformer Engine's fp8 products need hidden and FFN sizes per tensor rank that are multiples of 16",
        _multiplies_in_fp8,
    ),
    _rule(
        "experts' sequence",
        "tensor sequence_parallel",
        "experts with tensor parallelism also need sequence parallelism",
        lambda q, d: d["sequence_parallel"] or d["tensor"] == 1 or q.model.experts is None,
    ),
    _rule(
        "sharding and pipelines",
        "zero pipeline software",
        "ZeRO-2 and ZeRO-3 need pp=1, because every microbatch of a pipeline needs whole gradients and parameters; only "
        "torchtitan keeps them for a step",
        lambda q, d: d["zero"] < 2 or d["pipeline"] == 1 or is_torchtitan(d),
    ),
    _rule(
        "copies",
        "replicate data zero software",
        "several copies of the sharded state (HSDP) need torchtitan, ZeRO-3 and a data degree that they divide",
        lambda q, d: (
            d["replicate"] == 1
            or (is_torchtitan(d) and d["zero"] == 3 and d["data"] % d["replicate"] == 0 and d["data"] > d["replicate"])
        ),
    ),
    _rule(
        "sharding",
        "zero data context",
        "ZeRO-2 and ZeRO-3 need data-parallel or context-parallel ranks to shard over",
        lambda q, d: d["zero"] < 2 or d["data"] * d["context"] > 1,
    ),
    _rule(
        "modules",
        "recompute",
        "the model must have the modules to recompute",
        _recomputes_what_is_there,
    ),
    _rule(
        "recomputation",
        "recompute software",
        "torchtitan recomputes whole layers or per op (selective-op), other trainers recompute modules",
        lambda q, d: set(d["recompute"]) <= (_OF_TORCHTITAN if is_torchtitan(d) else _OF_OTHERS),
    ),
    _rule(
        "torchtitan's tied embeddings",
        "pipeline software",
        "torchtitan does not support tied embeddings with a pipeline",
        lambda q, d: d["pipeline"] == 1 or not q.model.tied_embeddings or not is_torchtitan(d),
    ),
    _rule(
        "torchtitan's offload",
        "offload software",
        "torchtitan does not offload activations",
        lambda q, d: not is_torchtitan(d) or not d["offload"],
    ),
    _rule(
        "one rank",
        "pipeline chunks schedule",
        "pp=1 has no pipeline to schedule: only one chunk and 1f1b, or with experts 1f1b-overlap",
        lambda q, d: d["pipeline"] > 1 or (d["chunks"] == 1 and d["schedule"] in ("1f1b", "1f1b-overlap")),
    ),
    _rule(
        "pairs",
        "schedule pipeline expert",
        "Megatron-LM pairs forwards and backwards only with ep > 1, in an interleaved schedule or with pp=1, with at most "
        "one MTP layer (with pp=1, none), without recomputing full or moe, and without hyper-connections or mixers other "
        "than attention",
        _pairs_as_megatron,
    ),
    _rule(
        "chunks",
        "pipeline chunks",
        lambda q: (
            f"pp x vp must be at most {most_stages(q)}: one layer per stage; embedding and head may have their own stages"
        ),
        lambda q, d: d["pipeline"] * d["chunks"] <= most_stages(q),
    ),
    _rule(
        "layout",
        "pipeline chunks layers",
        lambda q: f"a layout must have pp x vp stages and {q.model.layers} layers, joined by +, such as 9+10+9",
        lambda q, d: (
            d["layers"] is None
            or (len(d["layers"]) == d["pipeline"] * d["chunks"] and sum(d["layers"]) == q.model.layers)
        ),
    ),
    _rule(
        "interleaving",
        "schedule chunks",
        "an interleaved schedule needs at least two chunks per rank",
        lambda q, d: d["chunks"] > 1 or not strategy(d["schedule"]).grouped or strategy(d["schedule"]).fixed_chunks,
    ),
    _rule(
        "recomputing schedule",
        "schedule",
        "a plan decides what is recomputed, so its schedule must not (mario does)",
        lambda q, d: not strategy(d["schedule"]).recomputes,
    ),
    _rule(
        "made for a limit",
        "schedule in_flight",
        "only zb-auto and zbv-heuristic take a number of activations: fix the schedule, too",
        lambda q, d: d["in_flight"] is None or strategy(d["schedule"]).looks_at_costs,
    ),
    _rule(
        "groups",
        "schedule group_size",
        "only interleaved schedules and kfkb have a group size",
        lambda q, d: d["group_size"] is None or strategy(d["schedule"]).grouped,
    ),
    _rule("trainer", "schedule", "the trainer must support the schedule", _trainer_runs),
    _rule(
        "whole groups",
        "schedule pipeline data microbatch_size group_size software",
        "Megatron-LM's interleaved schedule needs a last group of at least pp microbatches",
        _whole_groups,
    ),
    _rule(
        "torchtitan's microbatches",
        "schedule pipeline data microbatch_size software",
        "PyTorch's 1F1B needs at least pp microbatches",
        lambda q, d: not is_torchtitan(d) or d["schedule"] != "1f1b" or _microbatches(q, d) >= d["pipeline"],
    ),
    _rule(
        "schedule's shape",
        "schedule pipeline data microbatch_size chunks group_size",
        "the schedule does not support this shape (see pipeplan list schedules NAME)",
        lambda q, d: takes_shape(d["schedule"], d["pipeline"], _microbatches(q, d), d["chunks"], d.get("group_size")),
    ),
    # The order of these is the order in which they give way if nothing else fits.
    _rule(
        "zero3-pipeline",
        "zero pipeline",
        "ZeRO-3 next to a pipeline",
        lambda q, d: d["zero"] < 3 or d["pipeline"] == 1,
        choice="zero",
    ),
    _rule(
        "small-chunks",
        "pipeline chunks",
        f"more than {USUAL_CHUNKS} chunks per rank or fewer than {USUAL_LAYERS} layers per chunk",
        _few_chunks,
        choice="chunks",
    ),
    _rule("any-schedule", "schedule software", "schedules that no trainer runs", _some_trainer_runs, choice="schedule"),
    _rule("offload", "offload", "offloaded activations", lambda q, d: not d["offload"], choice="offload"),
    _rule(
        "any-precision",
        "precision",
        lambda q: f"number formats other than {usual_precision(q)}",
        lambda q, d: d["precision"] == usual_precision(q),
        choice="precision",
    ),
)
"""Every rule in the order of checking, those of practice last; ``q`` is the request and ``d`` the draft."""

UNUSUAL: Mapping[str, Rule] = MappingProxyType({rule.name: rule for rule in RULES if rule.choice})
"""Rules of practice by the name with which a user waives them."""
