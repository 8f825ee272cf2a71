"""Every rule flags its example, and no longer does after the change that removes the fault."""

from __future__ import annotations

import pytest

from pipeplan.extensions.review import RULES, SETTINGS, SEVERITIES, ReviewFacts, judged
from pipeplan.extensions.review.facts import Entry
from pipeplan.extensions.review.repairs import REPAIRS
from pipeplan.extensions.review.rule import judgement
from pipeplan.extensions.review.settings import UNKNOWN
from pipeplan.extensions.review.values import value_of
from pipeplan.trainers import in_releases, trainer_kind
from tests.extensions.review.examples import EXAMPLES

LINES = dict(line.split(": ", 1) for line in EXAMPLES.strip().splitlines())


def entries(words: str) -> dict[str, Entry]:
    """Settings from ``name=value`` words."""
    pairs = [word.split("=", 1) for word in words.split()]
    values = {name: value_of(SETTINGS[name], value) for name, value in pairs}
    assert UNKNOWN not in values.values(), words
    return {name: Entry(value) for name, value in values.items()}


def example(rule: str) -> tuple[ReviewFacts, ReviewFacts]:
    """Configuration with the fault of a rule, and without it."""
    trainer, words, changes = (part.strip() for part in LINES[rule].split(" | "))
    name, _, release = trainer.partition("@")
    settings = entries(words)
    kind = trainer_kind(name)
    return ReviewFacts(kind, settings, release), ReviewFacts(kind, {**settings, **entries(changes)}, release)


def flagged(facts: ReviewFacts) -> set[str]:
    return {fault.rule.id for fault in judged(facts, RULES)}


def test_a_rule_flags_its_fault_alone():
    for rule in [rule.id for rule in RULES]:
        faulty, clean = example(rule)
        assert rule in flagged(faulty), rule
        assert rule not in flagged(clean), rule


def test_there_are_enough_rules_and_each_has_an_example():
    assert len(RULES) >= 120
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert LINES.keys() == {rule.id for rule in RULES}


def test_a_setting_that_is_left_out_is_not_judged():
    assert not flagged(ReviewFacts(trainer_kind("megatron-lm"), {}))
    for rule in RULES:
        faulty, _ = example(rule.id)
        for name in faulty.settings:
            without = {other: value for other, value in faulty.settings.items() if other != name}
            judged(ReviewFacts(faulty.trainer, without, faulty.release), RULES)


def test_a_rule_is_a_complete_row():
    for rule in RULES:
        assert rule.severity in SEVERITIES, rule
        assert rule.settings, rule
        assert set(rule.settings) <= SETTINGS.keys(), rule
        assert set(rule.repairs) <= REPAIRS.keys(), rule
        assert rule.source, rule
        assert not rule.message.endswith("."), rule
        fault = next(fault for fault in judged(example(rule.id)[0], RULES) if fault.rule is rule)
        assert "{" not in fault.message.replace("{}", ""), rule
        assert "None" not in fault.message, rule


@pytest.mark.parametrize(
    ("release", "releases", "inside"),
    [
        ("0.16.1", ">=0.14", True),
        ("0.9", ">=0.10", False),
        ("core_r0.16.0", "<0.16", False),
        ("main", "<0.3", False),
        ("origin/main", "<0.3", False),
        ("e5b3f2a", "<0.3", True),
        ("", "<0.2", True),
    ],
)
def test_releases(release, releases, inside):
    assert in_releases(release, releases) is inside


def unjudged(trainer: str, words: str) -> dict[str, str]:
    """Missing setting of each rule that cannot be judged."""
    return {
        rule.rule.id: rule.missing
        for rule in judgement(ReviewFacts(trainer_kind(trainer), entries(words)), RULES).unjudged
    }


def test_a_switch_that_is_left_out_hides_no_condition_that_excludes_the_fault():
    assert "gather-overlap-optimizer" not in unjudged("megatron-lm", "distributed_optimizer=true")
    assert unjudged("megatron-lm", "distributed_optimizer=false")["gather-overlap-optimizer"] == "overlap_param_gather"


def test_rules_of_experts_are_judged_for_a_dense_model():
    experts = {"expert-grid", "experts-over-ranks", "experts-without-sequence", "experts-over-tensor-ranks"}
    assert not experts & unjudged("megatron-lm", "experts=").keys()
    assert experts <= unjudged("megatron-lm", "layers=8").keys()


def test_layers_are_judged_without_a_number_of_gpus():
    facts = ReviewFacts(trainer_kind("megatron-bridge"), entries("layers=78 pp=8 layout="))
    assert "layers-per-rank" in flagged(facts)
    # 80 layers divide, whatever the layout is.
    assert "layers-per-rank" not in unjudged("megatron-bridge", "layers=80 pp=8")
    assert unjudged("megatron-bridge", "layers=78 pp=8")["layers-per-rank"] == "layout"


def test_degrees_that_are_left_out_are_no_sign_of_enough_gpus():
    assert unjudged("megatron-lm", "gpus=8 pp=2")["too-few-gpus"] == "tp"
    assert "too-few-gpus" not in unjudged("megatron-lm", "gpus=8 pp=2 tp=2 cp=1")
    assert "too-few-gpus" in flagged(ReviewFacts(trainer_kind("megatron-lm"), entries("gpus=8 pp=16")))


@pytest.mark.parametrize(
    ("trainer", "words", "refused"),
    [
        ("megatron-lm", "global_batch=0", True),
        ("verl", "global_batch=0", False),
        ("torchtitan", "pp=0", True),
        ("nemo-automodel", "pp=0", False),
        ("deepspeed", "pp=0", False),
    ],
)
def test_a_zero_is_an_error_only_where_the_trainer_refuses_it(trainer, words, refused):
    assert ("degree-below-one" in flagged(ReviewFacts(trainer_kind(trainer), entries(words)))) is refused
