"""Attack plans: the free answer is as good as each trainer's own, and that as good as any recipe that fits."""

from __future__ import annotations

import random
from math import inf
from typing import Any

import pytest

from pipeplan.extensions.planning import PlanResult, plan
from pipeplan.extensions.planning.choice.candidates import unusual
from pipeplan.extensions.planning.choice.choice import INDISTINGUISHABLE
from pipeplan.extensions.planning.choice.recipes import of_practice
from pipeplan.extensions.planning.choice.request import PlanRequest, read_fixed
from pipeplan.extensions.planning.fitting import default_limit
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.workload import model
from pipeplan.foundation.errors import PipeplanError
from pipeplan.trainers import TRAINERS
from tests.torture import Found

MODELS = (
    "llama3-8b",
    "llama3-70b",
    "llama2-7b",
    "gpt3-175b",
    "mixtral-8x7b",
    "mixtral-8x22b",
    "qwen3-30b-a3b",
    "gpt-oss-120b",
)
CLUSTERS = ("h100-sxm:8x1", "h100-sxm:8x8", "a100-80gb:8x4", "a100-40gb:8x2", "h200:8x8", "b200:8x4", "h100-sxm:8x32")
OWN = ("megatron", "bridge", "torchtitan")
"""Trainers whose subsets together are all usual configurations."""

BUDGETS = (1e-6, 1.0, 10.0)
"""Seconds of budgets; with the first, only the work that every plan does is done."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 4, 7])
def test_no_plan_is_worse_than_a_subset_or_a_recipe(seed: int) -> None:
    """Compare one question's free answer with its subsets, and these with the recipes."""
    choose = random.Random(seed)
    shape, machines = model(choose.choice(MODELS)), cluster(choose.choice(CLUSTERS))
    question: dict[str, Any] = {
        "global_batch": machines.gpus * choose.choice((1, 2, 4)),
        "sequence": choose.choice((2048, 4096, 8192, 32768)),
    }
    seconds = choose.choice(BUDGETS)

    def planned(**fix: str) -> PlanResult:
        return plan(shape, machines, **question, fix=fix, seconds=seconds, order_seconds=0.0, trainers=TRAINERS)

    answers = {}
    for trainer in OWN:
        try:
            answers[trainer] = planned(trainer=trainer)
        except PipeplanError:
            continue
    if not answers:
        return
    free = planned()
    for trainer, answer in answers.items():
        limit = default_limit(machines)
        request = PlanRequest(
            model=shape, cluster=machines, **question, memory_limit=limit, fixed=read_fixed({"trainer": trainer}, TRAINERS),
            trainers=TRAINERS,
        )  # fmt: skip
        recipe = min(
            (
                estimated.step_time
                for each, _ in of_practice(request)
                if (estimated := request.estimate(each)).peak_bytes <= limit
            ),
            default=inf,
        )
        if answer.best is not None and answer.best.peak_bytes <= limit:
            require_usual(request, answer)
        require(answer, recipe, f"{trainer}'s own is worse than a recipe")
        if answer.best is not None and answer.best.peak_memory_gib <= free.memory_limit_gib:
            require(free, answer.best.step_time, f"the free answer is worse than {trainer}'s own")


def require_usual(request: PlanRequest, answer: PlanResult) -> None:
    """Raise Found if an answer that fits has an unusual choice without a recipe that has it, too."""
    assert answer.best is not None
    for rule, words in zip(unusual(request, answer.best.configuration), answer.unusual, strict=True):
        if rule.name in ("offload", "any-schedule", "any-precision") or ", as in " not in words:
            raise Found(f"the answer has {words}, which was not allowed")


def require(answer: PlanResult, step_time: float, otherwise: str) -> None:
    """Raise Found unless an answer is as good as a step time, within what simplicity may give up."""
    own = inf if answer.best is None else answer.best.step_time
    if own > step_time * (1 + INDISTINGUISHABLE):
        raise Found(f"{otherwise}: {own:.4g} s instead of {step_time:.4g} s")
