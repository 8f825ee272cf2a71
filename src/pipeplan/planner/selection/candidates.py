"""All legal configurations: fields are chosen one after the other, and every rule is asked as soon as it can be.

First come the fields that decide what a rank computes and holds (a *frame*), then those that decide the order in which
it does so (its *variants*): times of a frame's layers are the same for all of its variants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import isqrt
from typing import Any

from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.software import software
from pipeplan.planner.selection.legality import RULES, Draft, Rule, is_torchtitan, most_stages
from pipeplan.planner.selection.request import PlanRequest
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
"""Tried where none is fixed. Left out are those that one of these always equals or beats in time and in memory (gpipe,
looped-bfs, eager-1f1b), that keep two copies of the model (dualpipe, chimera), that need hooks no trainer has
(seq1f1b's slices, hanayo's waves), and those that look for an order themselves: the search of the finalists does
that."""

LEAST_TOKENS = 1024
"""Of a sequence on a rank of the context group; fewer only where it is fixed: kernels are then too short for their
launches."""

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
"""Sets of modules that are tried where none is fixed; those of parts that a model lacks, or that a trainer cannot
compute again, are not legal."""

OFFLOADED = (0.0, 0.5)
"""Shares of the kept bytes that are tried."""


@lru_cache(maxsize=1024)
def divisors(number: int) -> tuple[int, ...]:
    """Return all divisors of a number, the smallest first."""
    small = [each for each in range(1, isqrt(number) + 1) if number % each == 0]
    return tuple(sorted({*small, *(number // each for each in small)}))


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
    return (1,) if request.model.experts is None else divisors(draft["tensor"])


def _zero(request: PlanRequest, draft: Draft) -> Sequence[int]:
    return (3,) if is_torchtitan(draft) and draft["data"] * draft["context"] > 1 else (1, 3)


def _microbatch_size(request: PlanRequest, draft: Draft) -> Sequence[int]:
    if request.global_batch % draft["data"]:
        return (1,)
    return divisors(request.global_batch // draft["data"])


def _chunks(request: PlanRequest, draft: Draft) -> Sequence[int]:
    """Return the fewest chunks for each number of layers that the fullest stage can have."""
    ranks, layers = draft["pipeline"], request.model.layers
    if ranks == 1:
        return (1,)
    fullest: dict[int, int] = {}
    for chunks in range(1, most_stages(request) // ranks + 1):
        fullest.setdefault(-(-layers // (ranks * chunks)), chunks)
    return tuple(fullest.values())


def _schedule(request: PlanRequest, draft: Draft) -> Sequence[str]:
    if draft["pipeline"] == 1:
        return ("1f1b",)
    return SCHEDULES


def _in_flight(request: PlanRequest, draft: Draft) -> Sequence[float | None]:
    """Return limits of a schedule that is made for one: that of 1F1B, twice as much, and two between."""
    if not strategy(draft["schedule"]).looks_at_costs:
        return (None,)
    return tuple(share * draft["pipeline"] for share in (1.0, 1.25, 1.5, 2.0))


def _recompute(request: PlanRequest, draft: Draft) -> Sequence[tuple[str, ...]]:
    """Return sets of modules; the attention core alone pays only where its scores reach memory."""
    unfused = software(draft["software"]).attention == "unfused"
    return [modules for modules in RECOMPUTED if unfused or modules != ("core_attn",)]


def _always(*values: Any) -> Values:
    return lambda _request, _draft: values


FRAME_FIELDS: Mapping[str, Values] = {
    "software": _always("megatron-core"),
    "precision": _always("bf16"),
    "tensor": _tensor,
    "sequence_parallel": lambda _, draft: (draft["tensor"] > 1,),
    "context": _context,
    "pipeline": _pipeline,
    "data": _data,
    "expert": _expert,
    "expert_tensor": _expert_tensor,
    "zero": _zero,
    "microbatch_size": _microbatch_size,
}
"""Fields of a frame in the order of choice, with the values that are tried where none is fixed."""

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
    "expert_tensor": "expert tensor degrees that do not divide tp",
    "zero": "ZeRO stages other than 1 and 3 (of torchtitan: other than 3)",
    "sequence_parallel": "tensor parallelism without sequence parallelism",
    "chunks": "more chunks per rank with the same number of layers on the fullest stage",
    "schedule": f"schedules other than {', '.join(SCHEDULES)}",
    "group_size": "group sizes other than pp",
    "recompute": "other sets of recomputed modules",
    "offload": f"offloaded shares other than {' and '.join(f'{share:.0%}' for share in OFFLOADED)}",
}
"""Legal values of a field that are tried only where the field is fixed to them: a plan is complete without them."""

_SPLIT = {"chunks": "pipeline", "schedule": "pipeline", "group_size": "pipeline", "sequence_parallel": "tensor"}
"""Fields with nothing to choose where the degree of another is fixed to 1."""


def left_out(request: PlanRequest) -> tuple[str, ...]:
    """Return what the enumeration of a request leaves out, in words: values that must be fixed to be tried."""
    moot = {field for field, degree in _SPLIT.items() if request.gpus == 1 or request.fixed.get(degree) == (1,)}
    if request.gpus == 1:
        moot |= {"context", "expert_tensor", "zero"}
    if request.model.experts is None:
        moot.add("expert_tensor")
    return tuple(words for field, words in LEFT_OUT.items() if field not in request.fixed and field not in moot)


_RULES_OF: dict[str, list[Rule]] = {}


def _plan_rules() -> None:
    """Assign each rule to the last field that it needs."""
    order = [*FRAME_FIELDS, *SAVING_FIELDS, *VARIANT_FIELDS]
    for rule in RULES:
        _RULES_OF.setdefault(max(rule.needs, key=order.index), []).append(rule)


_plan_rules()


def frames(
    request: PlanRequest, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Every legal frame.

    Parameters
    ----------
    refusals
        Counts by rule how many drafts each refused.
    without
        Names of rules that are not asked.
    """
    yield from _extended(request, {}, list(FRAME_FIELDS.items()), refusals, without)


def savings(
    request: PlanRequest, frame: Draft, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """A frame with every legal set of what saves memory."""
    yield from _extended(request, dict(frame), list(SAVING_FIELDS.items()), refusals, without)


def variants(
    request: PlanRequest, frame: Draft, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """A frame with every legal order of its work."""
    yield from _extended(request, dict(frame), list(VARIANT_FIELDS.items()), refusals, without)


def drafts(
    request: PlanRequest, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Yield all fields of every legal configuration: hundreds of thousands on a large cluster."""
    for frame in frames(request, refusals, without=without):
        orders = list(variants(request, frame, refusals, without=without))
        for saving in savings(request, frame, refusals, without=without) if orders else ():
            yield from ({**order, **saving} for order in orders)


def configurations(request: PlanRequest) -> Iterator[Configuration]:
    """Every legal configuration, lazily."""
    return (as_configuration(request, draft) for draft in drafts(request))


def as_configuration(request: PlanRequest, draft: Draft) -> Configuration:
    """The configuration of a complete draft."""
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
    (field, values), *left = steps
    for value in request.fixed.get(field) or values(request, draft):
        draft[field] = value
        broken = next(
            (rule for rule in _RULES_OF.get(field, ()) if rule.name not in without and not rule.holds(request, draft)),
            None,
        )
        if broken is None:
            yield from _extended(request, draft, left, refusals, without)
        elif refusals is not None:
            refusals[broken.name] += 1
    draft.pop(field, None)
