"""Enumeration of all valid configurations, field by field; each rule is checked as early as possible.

First come the fields that decide what a rank computes and holds (a *frame*), then those that decide the order of its work
(its *variants*): all variants of a frame have the same layer times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isqrt
from typing import Any

from pipeplan.extensions.planning.choice.legality import (
    RULES,
    UNUSUAL,
    Draft,
    Rule,
    excludes,
    is_torchtitan,
    most_stages,
    usual_precision,
)
from pipeplan.extensions.planning.choice.request import PlanRequest, software_of_plans
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.properties import Software
from pipeplan.extensions.planning.estimates.running import OVERLAPPED
from pipeplan.extensions.planning.estimates.software import software
from pipeplan.strategies import strategy

Values = Callable[[PlanRequest, Draft], Sequence[Any]]

SCHEDULES = (
    "1f1b",
    "interleaved-1f1b",
    "interleaved-zb",
    "zb-h1",
    "zb-h2",
    "zbv",
    "v-half",
    "v-min",
    "dualpipev",
)
"""Schedules that are tried if none is fixed. Not tried are schedules that one of these always equals or beats in time and
memory (gpipe, looped-bfs, eager-1f1b), that hold more to hide slow transfers (kfkb), that keep two copies of the model
(dualpipe, chimera, bitpipe), that need hooks no trainer has (slices of seq1f1b, slimpipe, svpp and mepipe, hanayo's waves,
mario's recomputation), and those that search for an order: the order search of the finalists does that. With expert
parallelism, those of :data:`OVERLAPPED` are tried, too, if the software hides exchanges in their pairs."""

LEAST_TOKENS = 2048
"""Minimum tokens of a sequence per context-parallel rank unless the degree is fixed: with fewer, kernels are hardly longer
than their launches."""

MOST_TOKENS = 131_072
"""Maximum tokens of a microbatch with several sequences unless its size is fixed: the most of any published run."""

RECOMPUTED: tuple[tuple[str, ...], ...] = (
    (),
    ("layernorm",),
    ("layernorm", "moe_act"),
    ("core_attn",),
    ("mlp",),
    ("layernorm", "mla_up_proj"),
    ("moe",),
    ("selective-op",),
    ("full",),
)
"""Sets of modules that are tried if none is fixed; sets with modules that a model lacks, or that a trainer cannot recompute,
are not valid."""

OFFLOADED = (0.0, 0.5)
"""Fractions of the kept bytes that are tried."""


@lru_cache(maxsize=1024)
def divisors(number: int) -> tuple[int, ...]:
    """Return all divisors of a number in increasing order."""
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return tuple(sorted({*small, *(number // divisor for divisor in small)}))


def _rest(request: PlanRequest, draft: Draft, *fields: str) -> int:
    taken = 1
    for field in fields:
        taken *= draft[field]
    return max(1, request.gpus // taken)


def _tensor(request: PlanRequest, draft: Draft) -> Sequence[int]:
    return divisors(request.gpus)


def _context(request: PlanRequest, draft: Draft) -> Sequence[int]:
    return [
        degree
        for degree in divisors(_rest(request, draft, "tensor"))
        if degree == 1 or request.sequence >= degree * LEAST_TOKENS
    ]


def _pipeline(request: PlanRequest, draft: Draft) -> Sequence[int]:
    return divisors(_rest(request, draft, "tensor", "context"))


def _data(request: PlanRequest, draft: Draft) -> Sequence[int]:
    return (_rest(request, draft, "tensor", "context", "pipeline"),)


def _expert(request: PlanRequest, draft: Draft) -> Sequence[int]:
    return (1,) if request.model.experts is None else divisors(request.model.experts.count)


def _expert_tensor(request: PlanRequest, draft: Draft) -> Sequence[int]:
    return (1,) if request.model.experts is None else tuple(dict.fromkeys((1, draft["tensor"])))


def _zero(request: PlanRequest, draft: Draft) -> Sequence[int]:
    return (3,) if is_torchtitan(draft) and draft["data"] * draft["context"] > 1 else (1, 3)


def _replicate(request: PlanRequest, draft: Draft) -> Sequence[int]:
    """Return one copy of the sharded state, and one per node where torchtitan can shard within nodes (HSDP)."""
    ranks = draft["tensor"] * draft["context"] * draft["data"]
    copies, rest = divmod(ranks, request.cluster.per_node)
    within = is_torchtitan(draft) and draft["zero"] == 3 and not rest and draft["data"] % copies == 0
    return (1, copies) if within and copies > 1 and request.model.experts is None else (1,)


def _microbatch_size(request: PlanRequest, draft: Draft) -> Sequence[int]:
    if request.global_batch % draft["data"]:
        return (1,)
    sizes = divisors(request.global_batch // draft["data"])
    return [size for size in sizes if size == 1 or size * request.sequence <= MOST_TOKENS]


def _chunks(request: PlanRequest, draft: Draft) -> Sequence[int]:
    """Return the fewest chunks for each possible number of layers on the fullest stage."""
    ranks, layers = draft["pipeline"], request.model.layers
    if ranks == 1:
        return (1,)
    # More chunks help only if the fullest stage then has fewer layers: keep the first number for each maximum.
    fullest: dict[int, int] = {}
    for chunks in range(1, most_stages(request) // ranks + 1):
        fullest.setdefault(-(-layers // (ranks * chunks)), chunks)
    return tuple(fullest.values())


def _schedule(request: PlanRequest, draft: Draft) -> Sequence[str]:
    alone = draft["pipeline"] == 1
    usual = ("1f1b",) if alone else SCHEDULES
    if draft["expert"] == 1 or "expert" not in software(draft["software"]).hides:
        return usual
    return (*usual, OVERLAPPED["1f1b" if alone else "interleaved-1f1b"])


def _in_flight(request: PlanRequest, draft: Draft) -> Sequence[float | None]:
    """Return activation limits for a schedule that is built for one: 1F1B's p, 2p, and two values between."""
    if not strategy(draft["schedule"]).looks_at_costs:
        return (None,)
    return tuple(share * draft["pipeline"] for share in (1.0, 1.25, 1.5, 2.0))


def _recompute(request: PlanRequest, draft: Draft) -> Sequence[tuple[str, ...]]:
    """Return sets of modules; recomputing only the attention core pays only if its scores reach memory."""
    unfused = software(draft["software"]).attention == "unfused"
    return [modules for modules in RECOMPUTED if unfused or modules != ("core_attn",)]


def _software(request: PlanRequest, draft: Draft) -> Sequence[str]:
    """Return the software of every trainer with schedules of its own, without those that another covers."""
    names = request.fixed.get("trainer", request.trainers)
    own = [request.trainers[name] for name in names if request.trainers[name].schedules is not None]
    rows = [software(software_of_plans(trainer, request.cluster.gpu)) for trainer in own]
    rows = list(dict.fromkeys(rows))
    # Of rows that cover each other, the first stays.
    kept = (
        row.name
        for place, row in enumerate(rows)
        if not any(covers(other, row) for other in rows[:place])
        and not any(covers(other, row) and not covers(row, other) for other in rows[place + 1 :])
    )
    return tuple(kept) or ("megatron-core",)


def covers(better: Software, other: Software) -> bool:
    """Return True if a software differs from another only by more overlap and gradients in 16 bits: it is never slower.

    Which products have adapters is not compared: plans train none.
    """
    plain = replace(
        better,
        name=other.name,
        title=other.title,
        source=other.source,
        hides=other.hides,
        fp32_gradients=other.fp32_gradients,
        adapts=other.adapts,
    )
    return plain == other and better.hides >= other.hides and better.fp32_gradients <= other.fp32_gradients


def _precision(request: PlanRequest, draft: Draft) -> Sequence[str]:
    return tuple(dict.fromkeys((usual_precision(request), "bf16", "fp8")))


def _always(*values: Any) -> Values:
    return lambda _request, _draft: values


FRAME_FIELDS: Mapping[str, Values] = {
    "software": _software,
    "precision": _precision,
    "tensor": _tensor,
    "sequence_parallel": lambda _, draft: (draft["tensor"] > 1,),
    "context": _context,
    "pipeline": _pipeline,
    "data": _data,
    "expert": _expert,
    "expert_tensor": _expert_tensor,
    "zero": _zero,
    "replicate": _replicate,
    "microbatch_size": _microbatch_size,
}
"""Fields of a frame in the order of choice, with the values that are tried if none is fixed."""

VARIANT_FIELDS: Mapping[str, Values] = {
    "chunks": _chunks,
    "schedule": _schedule,
    "in_flight": _in_flight,
    "group_size": _always(None),
    "layers": _always(None),
}
"""Fields of a variant of a frame."""

SAVING_FIELDS: Mapping[str, Values] = {
    "recompute": _recompute,
    "offload": _always(*OFFLOADED),
}
"""Fields that save memory and cost time."""


LEFT_OUT: Mapping[str, str] = {
    "context": f"context parallelism with fewer than {LEAST_TOKENS:,} tokens of a sequence per rank",
    "expert_tensor": "expert tensor degrees other than 1 and tp",
    "zero": "ZeRO stages other than 1 and 3 (of torchtitan: other than 3)",
    "replicate": "copies of the sharded state other than one and one per node",
    "sequence_parallel": "tensor parallelism without sequence parallelism",
    "microbatch_size": f"microbatches of more than {MOST_TOKENS:,} tokens, and larger ones that hardly compute faster",
    "chunks": "more chunks per rank without fewer layers on the fullest stage",
    "schedule": f"schedules other than {', '.join(SCHEDULES)}",
    "group_size": "group sizes other than pp",
    "layers": "stages of different lengths, except for the best configurations",
    "recompute": "other sets of recomputed modules",
    "offload": f"offloaded fractions other than {' and '.join(f'{share:.0%}' for share in OFFLOADED)}",
}
"""Valid values of a field that are tried only if the user fixes them; ``PlanResult.complete`` does not cover them."""

_SPLIT = {
    "chunks": "pipeline",
    "schedule": "pipeline",
    "group_size": "pipeline",
    "layers": "pipeline",
    "sequence_parallel": "tensor",
}
"""Fields without alternatives if the degree of another field is fixed to 1."""


def left_out(request: PlanRequest) -> tuple[str, ...]:
    """Return in words the values that the enumeration of a request leaves out: they must be fixed to be tried."""
    moot = {field for field, degree in _SPLIT.items() if request.gpus == 1 or request.fixed.get(degree) == (1,)}
    if request.gpus == 1:
        moot |= {"context", "expert_tensor", "zero", "replicate"}
    if request.model.experts is None:
        moot.add("expert_tensor")
    tried = "" if request.model.experts is None else f", {', '.join(OVERLAPPED.values())}"
    fixable = (
        words + (tried if field == "schedule" else "")
        for field, words in LEFT_OUT.items()
        if field not in request.fixed and field not in moot
    )
    allowable = (
        f"{rule.sentence(request)} (allow {rule.name})"
        for rule in UNUSUAL.values()
        if rule.choice not in {*request.fixed, *moot} and rule.name not in request.allowed
    )
    return *fixable, *allowable


def unusual(request: PlanRequest, configuration: Configuration) -> tuple[Rule, ...]:
    """Return the rules of practice that a configuration breaks, without those of fields that the user fixed."""
    draft = {field: getattr(configuration, field) for field in _ORDER}
    free = (rule for rule in UNUSUAL.values() if rule.choice not in request.fixed)
    return tuple(rule for rule in free if not rule.holds(request, draft))


_ORDER = (*FRAME_FIELDS, *SAVING_FIELDS, *VARIANT_FIELDS)
_RULES_OF = {field: [rule for rule in RULES if max(rule.needs, key=_ORDER.index) == field] for field in _ORDER}
"""Rules by the last field that they need: each is checked as soon as it has a value."""


def frames(
    request: PlanRequest, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Yield every valid frame.

    Parameters
    ----------
    refusals
        Counter of refused drafts by rule.
    without
        Names of rules that are not checked.
    """
    yield from _extended(request, {}, list(FRAME_FIELDS.items()), refusals, without)


def savings(
    request: PlanRequest, frame: Draft, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Yield a frame with every valid saving of memory."""
    yield from _extended(request, dict(frame), list(SAVING_FIELDS.items()), refusals, without)


def variants(
    request: PlanRequest, frame: Draft, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Yield a frame with every valid order of its work."""
    yield from _extended(request, dict(frame), list(VARIANT_FIELDS.items()), refusals, without)


def drafts(
    request: PlanRequest, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Yield all fields of every valid configuration: hundreds of thousands on a large cluster."""
    for frame in frames(request, refusals, without=without):
        orders = list(variants(request, frame, refusals, without=without))
        for saving in savings(request, frame, refusals, without=without) if orders else ():
            yield from ({**order, **saving} for order in orders if not excludes(order["schedule"], saving["recompute"]))


def configurations(request: PlanRequest) -> Iterator[Configuration]:
    """Yield every valid configuration, lazily."""
    return (as_configuration(request, draft) for draft in drafts(request))


def as_configuration(request: PlanRequest, draft: Draft) -> Configuration:
    """Return the configuration of a complete draft."""
    return Configuration(sequence=request.sequence, global_batch=request.global_batch, **draft)


def _extended(
    request: PlanRequest,
    draft: dict[str, Any],
    steps: list[tuple[str, Values]],
    refusals: Counter[str] | None,
    without: frozenset[str],
) -> Iterator[dict[str, Any]]:
    if not steps:
        yield dict(draft)
        return
    # Depth-first over the fields: a rule is checked as soon as its last field has a value.
    (field, values), *left = steps
    for value in request.fixed.get(field) or values(request, draft):
        draft[field] = value
        broken = next(
            (rule for rule in _RULES_OF[field] if rule.name not in without and not rule.admits(request, draft)),
            None,
        )
        if broken is None:
            yield from _extended(request, draft, left, refusals, without)
        elif refusals is not None:
            refusals[broken.name] += 1
    draft.pop(field, None)
