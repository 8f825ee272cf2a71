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
from pipeplan.planner.selection.question import Question
from pipeplan.strategies import strategy

Values = Callable[[Question, Draft], Sequence[Any]]

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


def _rest(question: Question, draft: Draft, *fields: str) -> int:
    taken = 1
    for field in fields:
        taken *= draft[field]
    return max(1, question.gpus // taken)


def _tensor(question: Question, draft: Draft) -> Sequence[int]:
    return divisors(question.gpus)


def _context(question: Question, draft: Draft) -> Sequence[int]:
    return [
        degree
        for degree in divisors(_rest(question, draft, "tensor"))
        if degree == 1 or question.sequence >= degree * LEAST_TOKENS
    ]


def _pipeline(question: Question, draft: Draft) -> Sequence[int]:
    return divisors(_rest(question, draft, "tensor", "context"))


def _data(question: Question, draft: Draft) -> Sequence[int]:
    return (_rest(question, draft, "tensor", "context", "pipeline"),)


def _expert(question: Question, draft: Draft) -> Sequence[int]:
    return (1,) if question.model.experts is None else divisors(question.model.experts.count)


def _expert_tensor(question: Question, draft: Draft) -> Sequence[int]:
    return (1,) if question.model.experts is None else divisors(draft["tensor"])


def _zero(question: Question, draft: Draft) -> Sequence[int]:
    return (3,) if is_torchtitan(draft) and draft["data"] * draft["context"] > 1 else (1, 3)


def _microbatch_size(question: Question, draft: Draft) -> Sequence[int]:
    if question.global_batch % draft["data"]:
        return (1,)
    return divisors(question.global_batch // draft["data"])


def _chunks(question: Question, draft: Draft) -> Sequence[int]:
    """The fewest chunks for each number of layers that the fullest stage can have."""
    ranks, layers = draft["pipeline"], question.model.layers
    if ranks == 1:
        return (1,)
    fullest: dict[int, int] = {}
    for chunks in range(1, most_stages(question) // ranks + 1):
        fullest.setdefault(-(-layers // (ranks * chunks)), chunks)
    return tuple(fullest.values())


def _schedule(question: Question, draft: Draft) -> Sequence[str]:
    if draft["pipeline"] == 1:
        return ("1f1b",)
    return SCHEDULES


def _in_flight(question: Question, draft: Draft) -> Sequence[float | None]:
    """Of a schedule that is made for a memory limit: that of 1F1B, and twice as much, with what lies between."""
    if not strategy(draft["schedule"]).looks_at_costs:
        return (None,)
    return tuple(share * draft["pipeline"] for share in (1.0, 1.25, 1.5, 2.0))


def _recompute(question: Question, draft: Draft) -> Sequence[tuple[str, ...]]:
    """The attention core alone is worth it only where its scores reach memory."""
    unfused = software(draft["software"]).attention == "unfused"
    return [modules for modules in RECOMPUTED if unfused or modules != ("core_attn",)]


def _always(*values: Any) -> Values:
    return lambda _question, _draft: values


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
"""What a frame chooses, in this order, and which values are tried where none is fixed."""

VARIANT_FIELDS: Mapping[str, Values] = {
    "chunks": _chunks,
    "schedule": _schedule,
    "in_flight": _in_flight,
    "group_size": _always(None),
    "layers": _always(None),
}
"""What a variant of a frame chooses."""

SAVING_FIELDS: Mapping[str, Values] = {
    "recompute": _recompute,
    "offload": _always(*OFFLOADED),
}
"""What saves memory and costs time."""

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


def left_out(question: Question) -> tuple[str, ...]:
    """Return what the enumeration of a question leaves out, in words: values that must be fixed to be tried."""
    moot = {field for field, degree in _SPLIT.items() if question.gpus == 1 or question.fixed.get(degree) == (1,)}
    if question.gpus == 1:
        moot |= {"context", "expert_tensor", "zero"}
    if question.model.experts is None:
        moot.add("expert_tensor")
    return tuple(words for field, words in LEFT_OUT.items() if field not in question.fixed and field not in moot)


_RULES_OF: dict[str, list[Rule]] = {}


def _plan_rules() -> None:
    """Each rule is asked once: when the last field that it needs is chosen."""
    order = [*FRAME_FIELDS, *SAVING_FIELDS, *VARIANT_FIELDS]
    for rule in RULES:
        _RULES_OF.setdefault(max(rule.needs, key=order.index), []).append(rule)


_plan_rules()


def frames(
    question: Question, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Every legal frame.

    Parameters
    ----------
    refusals
        Counts by rule how many drafts each refused.
    without
        Names of rules that are not asked.
    """
    yield from _extended(question, {}, list(FRAME_FIELDS.items()), refusals, without)


def savings(
    question: Question, frame: Draft, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """A frame with every legal set of what saves memory."""
    yield from _extended(question, dict(frame), list(SAVING_FIELDS.items()), refusals, without)


def variants(
    question: Question, frame: Draft, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """A frame with every legal order of its work."""
    yield from _extended(question, dict(frame), list(VARIANT_FIELDS.items()), refusals, without)


def drafts(
    question: Question, refusals: Counter[str] | None = None, *, without: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """All fields of every legal configuration, lazily: hundreds of thousands on a large cluster."""
    for frame in frames(question, refusals, without=without):
        orders = list(variants(question, frame, refusals, without=without))
        for saving in savings(question, frame, refusals, without=without) if orders else ():
            yield from ({**order, **saving} for order in orders)


def configurations(question: Question) -> Iterator[Configuration]:
    """Every legal configuration, lazily."""
    return (as_configuration(question, draft) for draft in drafts(question))


def as_configuration(question: Question, draft: Draft) -> Configuration:
    """The configuration of a complete draft."""
    return Configuration(sequence=question.sequence, global_batch=question.global_batch, **draft)


def _extended(
    question: Question,
    draft: dict[str, Any],
    steps: list[tuple[str, Values]],
    refusals: Counter[str] | None,
    without: frozenset[str],
) -> Iterator[dict[str, Any]]:
    if not steps:
        yield dict(draft)
        return
    (field, values), *left = steps
    for value in question.fixed.get(field) or values(question, draft):
        draft[field] = value
        broken = next(
            (rule for rule in _RULES_OF.get(field, ()) if rule.name not in without and not rule.holds(question, draft)),
            None,
        )
        if broken is None:
            yield from _extended(question, draft, left, refusals, without)
        elif refusals is not None:
            refusals[broken.name] += 1
    draft.pop(field, None)
