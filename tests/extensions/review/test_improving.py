# ruff: noqa: E501
"""Changes that a review proposes: as good as the best layout, and clean when they are judged again."""

import random
from dataclasses import replace

import pytest

from pipeplan.extensions.planning import best_layout_of, costs_of, estimate, schedule_of, stage_costs
from pipeplan.extensions.review import RULES, ReviewFacts, combined, improvements, judged
from pipeplan.extensions.review.estimating import estimated
from pipeplan.extensions.review.facts import Entry
from pipeplan.extensions.review.layouts import written_layout
from pipeplan.extensions.search.layouts import WorkClock
from pipeplan.trainers import trainer_kind

MODELS = (
    ("llama3-70b", 80, 8, 1, 0),
    ("llama3-8b", 32, 1, 1, 0),
    ("qwen3-30b-a3b", 48, 1, 8, 0),
    ("glm-4.5-air", 46, 1, 8, 1),
)
"""Names, layers, tensor and expert degrees, and MTP layers."""


def unbalanced(seed: int) -> ReviewFacts:
    """Configuration whose layers were moved between stages at random."""
    draw = random.Random(seed)
    name, layers, tensor, experts, mtp = draw.choice(MODELS)
    pipeline, chunks = draw.choice([(2, 1), (4, 1), (8, 1), (4, 2)])
    stages = pipeline * chunks
    counts = [layers // stages + (stage < layers % stages) for stage in range(stages)]
    for _ in range(draw.randint(1, 3)):
        moved = draw.randint(1, max(1, layers // stages // 2))
        giver, taker = draw.sample(range(stages), 2)
        if counts[giver] > moved:
            counts[giver] -= moved
            counts[taker] += moved
    letters = ["t" * count for count in counts]
    letters[0] = "E" + letters[0]
    letters[-1] += "m" * mtp + "L"
    settings = {
        "model_name": name, "layers": layers, "mtp_layers": mtp, "tp": tensor, "pp": pipeline, "cp": 1, "ep": experts, "etp": 1,
        "vpp": None if chunks == 1 else chunks, "gpus": 8 * tensor * pipeline, "device": "b200", "micro_batch": 1,
        "global_batch": 32 * pipeline, "seq_length": 4096, "layout": written_layout(letters), "sequence_parallel": tensor > 1,
        "recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1,
    }  # fmt: skip
    return ReviewFacts(trainer_kind("megatron-bridge"), {key: Entry(value) for key, value in settings.items()})


def best_time(facts: ReviewFacts) -> float:
    """Step time with the best layout that the planner finds in a whole second."""
    made = estimated(facts)
    free = replace(made.configuration, layers=None)
    few = replace(free, global_batch=3 * free.pipeline * free.data * free.microbatch_size)
    schedule = schedule_of(few, costs_of(stage_costs(made.model, made.cluster, few), few))
    best = best_layout_of(made.model, made.cluster, free, schedule, seconds=1.0, clock=WorkClock())
    return estimate(made.model, made.cluster, replace(free, layers=tuple(best.layout)), with_error_bar=False).step_time


def patched_loss(seed: int) -> float:
    """Step time of the patched configuration over that of the best layout, less 1; the patched one must be clean."""
    facts = unbalanced(seed)
    after = facts.changed(combined(list(improvements(facts, RULES))))
    left = [fault.rule.id for fault in judged(after, RULES) if fault.rule.severity != "advice"]
    assert left == [], (seed, left)
    return estimated(after).estimate.step_time / best_time(facts) - 1


@pytest.mark.parametrize("seed", range(4))
def test_a_patch_comes_near_the_best_layout(seed):
    assert patched_loss(seed) < 0.03


@pytest.mark.slow
def test_patches_of_fifty_unbalanced_configurations_come_near_the_best_layout():
    assert [seed for seed in range(50) if patched_loss(seed) > 0.03] == []


def test_changes_are_the_smallest_first():
    settings = {
        "layers": 46,
        "pp": 4,
        "vpp": None,
        "layout": None,
        "first_stage_layers": None,
        "last_stage_layers": None,
    }
    facts = ReviewFacts(trainer_kind("megatron-lm"), {key: Entry(value) for key, value in settings.items()})
    (step,) = improvements(facts, RULES)
    assert step.changes == {"last_stage_layers": 10}  # 12 on the first stage follow
    assert step.removes == ("layers-per-rank",)
    assert step.after is None


@pytest.mark.parametrize(("batch", "nearest"), [(35, 32), (46, 48)])
def test_a_batch_is_rounded_to_the_nearest_that_divides(batch, nearest):
    settings = {"tp": 2, "pp": 6, "cp": 1, "gpus": 48, "micro_batch": 4, "global_batch": batch}
    facts = ReviewFacts(trainer_kind("megatron-bridge"), {key: Entry(value) for key, value in settings.items()})
    proposed = [step.changes for step in improvements(facts, RULES)]
    assert proposed == [{"global_batch": nearest}]


def test_nothing_is_proposed_that_does_not_help():
    settings = {"tp": 8, "pp": 8, "cp": 1, "gpus": 8, "device": "h100"}
    facts = ReviewFacts(trainer_kind("megatron-lm"), {key: Entry(value) for key, value in settings.items()})
    (step,) = improvements(facts, RULES)
    assert facts.changed(step.changes).world % facts.changed(step.changes).model_parallel == 0
