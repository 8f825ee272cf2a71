"""Which configurations are legal: rules of arithmetic, of nodes, and of trainers, each in one row.

A rule looks at some fields of a configuration; it can be asked as soon as these are known, before the others are
chosen, which is how :mod:`pipeplan.planner.selection.candidates` enumerates. Sources: Megatron-LM's transformer_config.py
and arguments.py (core 0.16), torchtitan's parallel_dims.py, and the strategies' own rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from pipeplan.errors import ShapeError
from pipeplan.hardware import FORMATS
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.selection.choices import TRAINERS
from pipeplan.planner.selection.question import Question
from pipeplan.strategies import strategy
from pipeplan.workload import RECOMPUTE

Draft = Mapping[str, Any]
"""Fields of a configuration that are chosen so far, by name."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a legal configuration keeps.

    Attributes
    ----------
    name
        In a word or two.
    needs
        The fields that it looks at.
    holds
        Whether it is kept.
    sentence
        The rule, with the question's numbers.
    """

    name: str
    needs: frozenset[str]
    holds: Callable[[Question, Draft], bool]
    sentence: Callable[[Question], str]


def _rule(
    name: str, needs: str, sentence: str | Callable[[Question], str], holds: Callable[[Question, Draft], bool]
) -> Rule:
    text = sentence if callable(sentence) else lambda _: str(sentence)
    return Rule(name, frozenset(needs.split()), holds, text)


def is_torchtitan(draft: Draft) -> bool:
    """Whether torchtitan runs it, in any of its releases and settings."""
    return bool(draft["software"].startswith("torchtitan"))


def _divides_heads(question: Question, draft: Draft) -> bool:
    return bool(question.model.heads % draft["tensor"] == 0)


def _divides_kv_heads(question: Question, draft: Draft) -> bool:
    kv_heads = question.model.kv_heads
    if question.model.latent is not None or kv_heads is None:
        return True
    return bool(kv_heads % draft["tensor"] == 0 or draft["tensor"] % kv_heads == 0)


def _divides_ffn(question: Question, draft: Draft) -> bool:
    widths = [question.model.ffn or 0]
    if question.model.experts is not None:
        widths.append(question.model.experts.shared_width)
    return all(width % draft["tensor"] == 0 for width in widths)


def _has_experts(question: Question, draft: Draft) -> bool:
    return question.model.experts is not None or (draft["expert"] == 1 and draft["expert_tensor"] == 1)


def _divides_experts(question: Question, draft: Draft) -> bool:
    return question.model.experts is None or question.model.experts.count % draft["expert"] == 0


def _divides_expert_width(question: Question, draft: Draft) -> bool:
    return question.model.experts is None or question.model.experts.width % draft["expert_tensor"] == 0


def _stage_holds_experts(question: Question, draft: Draft) -> bool:
    ranks = draft["tensor"] * draft["context"] * draft["data"]
    return bool(ranks % (draft["expert"] * draft["expert_tensor"]) == 0)


def _layers_for_stages(question: Question, draft: Draft) -> bool:
    return int(draft["pipeline"] * draft["chunks"]) <= most_stages(question)


def most_stages(question: Question) -> int:
    """As many as there are layers, with one for the embedding and one for head and loss."""
    return question.model.layers + question.model.mtp_layers + 2


def _layout_fits(question: Question, draft: Draft) -> bool:
    layers = draft["layers"]
    if layers is None:
        return True
    return len(layers) == draft["pipeline"] * draft["chunks"] and sum(layers) == question.model.layers


def _needs_sequence_parallel(question: Question, draft: Draft) -> bool:
    return draft["sequence_parallel"] or draft["tensor"] == 1 or question.model.experts is None


def _microbatches(question: Question, draft: Draft) -> int:
    return int(question.global_batch // (draft["data"] * draft["microbatch_size"]))


def _takes_shape(question: Question, draft: Draft) -> bool:
    name, chunks, group = draft["schedule"], draft["chunks"], draft.get("group_size")
    return takes_shape(name, draft["pipeline"], _microbatches(question, draft), chunks, group)


SHAPES: Mapping[str, Callable[[int, int, int], bool]] = {
    "dualpipe": lambda p, m, v: p % 2 == 0 and m % 2 == 0 and m >= max(2, 2 * p - 2),
    "dualpipev": lambda p, m, v: m >= 2 * p - 1,
    "chimera": lambda p, m, v: p % 2 == 0 and m % 2 == 0,
    "hanayo": lambda p, m, v: v % 2 == 0,
}
"""Which p, m and v these strategies take; asking the strategies themselves would build a schedule for every shape.
Others take any, or say so by their chunks and groups."""


@lru_cache(maxsize=65536)
def takes_shape(name: str, ranks: int, microbatches: int, chunks: int, group: int | None) -> bool:
    """Whether a strategy makes a schedule of this shape."""
    found = strategy(name)
    try:
        shape = found.shape(ranks, microbatches, chunks, group_size=group)
        if found.grouped:
            found.memory.value(shape)
    except ShapeError:
        return False
    return name not in SHAPES or SHAPES[name](ranks, microbatches, chunks)


def _chunks_of_one_rank(question: Question, draft: Draft) -> bool:
    return bool(draft["pipeline"] > 1 or (draft["chunks"] == 1 and draft["schedule"] == "1f1b"))


def _whole_groups(question: Question, draft: Draft) -> bool:
    if draft["schedule"] != "interleaved-1f1b" or is_torchtitan(draft):
        return True
    ranks, group = draft["pipeline"], draft.get("group_size") or draft["pipeline"]
    left = _microbatches(question, draft) % group
    return bool(group >= ranks and (left == 0 or left >= ranks) and _microbatches(question, draft) >= ranks)


def _trainer_runs(question: Question, draft: Draft) -> bool:
    runs = [TRAINERS[name][0] for name in question.fixed.get("trainer", ())]
    return not runs or any(schedules is None or draft["schedule"] in schedules for schedules in runs)


def _shards_whole_model(question: Question, draft: Draft) -> bool:
    return bool(draft["zero"] < 2 or draft["pipeline"] == 1 or is_torchtitan(draft))


def _has_someone_to_shard_with(question: Question, draft: Draft) -> bool:
    return bool(draft["zero"] < 2 or draft["data"] * draft["context"] > 1)


def _recomputes_as_trainers_do(question: Question, draft: Draft) -> bool:
    whole = {"full", "selective-op"} if is_torchtitan(draft) else set(RECOMPUTE) - {"selective-op"}
    return set(draft["recompute"]) <= whole


def _recomputes_what_is_there(question: Question, draft: Draft) -> bool:
    modules = set(draft["recompute"])
    if question.model.latent is None and "mla_up_proj" in modules:
        return False
    return question.model.experts is not None or not modules & {"moe", "moe_act", "shared_experts"}


def _no_expert_tensor(question: Question, draft: Draft) -> bool:
    return bool(not is_torchtitan(draft) or draft["expert_tensor"] == 1)


def _context_cuts(question: Question, draft: Draft) -> bool:
    return bool(draft["context"] == 1 or question.sequence % (2 * draft["context"]) == 0)


def _sequence_cuts(question: Question, draft: Draft) -> bool:
    return not draft["sequence_parallel"] or question.sequence // draft["context"] % draft["tensor"] == 0


RULES: tuple[Rule, ...] = (
    _rule(
        "GPUs",
        "tensor context pipeline data",
        lambda q: f"tp, cp, pp and dp multiply to the {q.gpus} GPUs",
        lambda q, d: d["tensor"] * d["context"] * d["pipeline"] * d["data"] == q.gpus,
    ),
    _rule("heads", "tensor", lambda q: f"tp divides the {q.model.heads} attention heads", _divides_heads),
    _rule(
        "KV heads",
        "tensor",
        lambda q: f"tp divides the {q.model.kv_heads} KV heads, or is a multiple of them",
        _divides_kv_heads,
    ),
    _rule("FFN width", "tensor", "tp divides the width of the FFN and of shared experts", _divides_ffn),
    _rule(
        "node",
        "tensor",
        lambda q: f"tp divides the {q.cluster.joined} GPUs that fast links join",
        lambda q, d: q.cluster.joined % d["tensor"] == 0,
    ),
    _rule(
        "context",
        "context",
        lambda q: f"twice cp divides the sequence of {q.sequence} tokens",
        _context_cuts,
    ),
    _rule(
        "stages",
        "pipeline",
        lambda q: f"pp is at most {most_stages(q)}: a layer for each stage, embedding and head may stand alone",
        lambda q, d: d["pipeline"] <= most_stages(q),
    ),
    _rule(
        "sequence parallel",
        "tensor context sequence_parallel",
        "sequence parallelism splits a rank's tokens by tp",
        _sequence_cuts,
    ),
    _rule(
        "batch",
        "data microbatch_size",
        lambda q: f"dp times the microbatch size divides the global batch of {q.global_batch}",
        lambda q, d: q.global_batch % (d["data"] * d["microbatch_size"]) == 0,
    ),
    _rule("dense", "expert expert_tensor", "a dense model has no experts: ep and etp are 1", _has_experts),
    _rule(
        "experts",
        "expert",
        lambda q: f"ep divides the {q.model.experts.count if q.model.experts else 0} experts",
        _divides_experts,
    ),
    _rule("expert width", "expert_tensor", "etp divides the width of an expert", _divides_expert_width),
    _rule(
        "expert tensor",
        "expert_tensor",
        lambda q: f"etp divides the {q.cluster.joined} GPUs that fast links join",
        lambda q, d: q.cluster.joined % d["expert_tensor"] == 0,
    ),
    _rule(
        "expert ranks",
        "tensor context data expert expert_tensor",
        "ep times etp divides the ranks of a stage, tp times cp times dp",
        _stage_holds_experts,
    ),
    _rule(
        "torchtitan's experts", "expert_tensor software", "torchtitan has no expert tensor degree", _no_expert_tensor
    ),
    _rule(
        "format",
        "precision",
        lambda q: f"{q.cluster.gpu.name} multiplies in {' and '.join(q.cluster.gpu.peak)} only",
        lambda q, d: FORMATS[d["precision"]] in q.cluster.gpu.peak,
    ),
    _rule(
        "experts' sequence",
        "tensor sequence_parallel",
        "experts with tensor parallelism need sequence parallelism, too",
        _needs_sequence_parallel,
    ),
    _rule(
        "sharding and pipelines",
        "zero pipeline software",
        "sharded gradients or parameters (zero 2 and 3) are needed again by every microbatch of a pipeline: pp is 1, or "
        "torchtitan, which keeps them for a step",
        _shards_whole_model,
    ),
    _rule(
        "sharding",
        "zero data context",
        "zero 2 and 3 need data or context ranks to shard over",
        _has_someone_to_shard_with,
    ),
    _rule(
        "modules",
        "recompute",
        "only modules that the model has are computed again",
        _recomputes_what_is_there,
    ),
    _rule(
        "recomputation",
        "recompute software",
        "torchtitan computes layers again whole or per op (selective-op), the others by modules",
        _recomputes_as_trainers_do,
    ),
    _rule(
        "torchtitan's offload",
        "offload software",
        "torchtitan moves no activations to the host",
        lambda q, d: not is_torchtitan(d) or not d["offload"],
    ),
    _rule(
        "one rank",
        "pipeline chunks schedule",
        "where pp is 1 there is nothing to schedule: one chunk, 1f1b",
        _chunks_of_one_rank,
    ),
    _rule(
        "chunks",
        "pipeline chunks",
        lambda q: (
            f"pp times vp is at most {most_stages(q)}: a layer for each stage, embedding and head may stand alone"
        ),
        _layers_for_stages,
    ),
    _rule(
        "layout",
        "pipeline chunks layers",
        lambda q: (
            f"a layout has pp times vp stages and {q.model.layers} layers; its stages are joined by +, such as 9+10+9"
        ),
        _layout_fits,
    ),
    _rule(
        "interleaving",
        "schedule chunks",
        "a schedule in groups has two chunks a rank or more; with one it is another schedule",
        lambda q, d: d["chunks"] > 1 or not strategy(d["schedule"]).grouped,
    ),
    _rule(
        "made for a limit",
        "schedule in_flight",
        "only zb-auto and zbv-heuristic are made for a number of activations: fix the schedule, too",
        lambda q, d: d["in_flight"] is None or strategy(d["schedule"]).looks_at_costs,
    ),
    _rule(
        "groups",
        "schedule group_size",
        "only schedules in groups of microbatches have a group",
        lambda q, d: d["group_size"] is None or strategy(d["schedule"]).grouped,
    ),
    _rule("trainer", "schedule", "the trainer runs the schedule", _trainer_runs),
    _rule(
        "whole groups",
        "schedule pipeline data microbatch_size group_size software",
        "an interleaved schedule needs a last group of at least pp microbatches, as Megatron-LM has it",
        _whole_groups,
    ),
    _rule(
        "schedule's shape",
        "schedule pipeline data microbatch_size chunks group_size",
        "a schedule takes its own numbers of ranks, chunks and microbatches (pipeplan schedules NAME says which)",
        _takes_shape,
    ),
)
"""Every rule, in the order in which they are asked."""


def as_draft(configuration: Configuration) -> dict[str, Any]:
    """The fields of a configuration."""
    return {field.name: getattr(configuration, field.name) for field in fields(configuration)}


def broken_rule(question: Question, draft: Draft) -> Rule | None:
    """The first rule that a draft breaks, of those whose fields are all chosen; None: none."""
    for rule in RULES:
        if rule.needs <= draft.keys() and not rule.holds(question, draft):
            return rule
    return None


def require_legal(question: Question, configuration: Configuration) -> None:
    """Refuse what no trainer could run.

    Raises
    ------
    ShapeError
        With the first rule that is broken.
    """
    rule = broken_rule(question, as_draft(configuration))
    if rule is not None:
        raise ShapeError(f"no legal configuration: {rule.sentence(question)}", field="fix")
