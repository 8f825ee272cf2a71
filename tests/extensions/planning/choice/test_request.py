"""What ``--fix`` takes."""

import re

import pytest

from pipeplan.extensions.planning import CHOICES, Configuration, read_fixed
from pipeplan.extensions.planning.choice.request import short_name, written
from pipeplan.extensions.planning.trainers import plan_trainers
from pipeplan.foundation.errors import InputError


@pytest.mark.parametrize(
    ("fix", "fixed"),
    [
        ({"tp": 8}, {"tensor": (8,)}),
        ({"tp": "4, 8"}, {"tensor": (4, 8)}),
        ({"pp": [2, "4"]}, {"pipeline": (2, 4)}),
        ({"recompute": "layernorm+core_attn,none"}, {"recompute": (("core_attn", "layernorm"), ())}),
        ({"layers": "Et*9|t*10|t*10|t*9L"}, {"layers": ((9, 10, 10, 9),)}),
        ({"trainer": "torchtitan"}, {"trainer": ("torchtitan",)}),
        ({"trainer": "megatron", "software": "nemo"}, {"trainer": ("megatron",), "software": ("nemo",)}),
    ],
)
def test_values_may_be_numbers_texts_or_lists_of_either(fix, fixed):
    assert read_fixed(fix, plan_trainers()) == fixed


def test_every_name_of_a_choice_is_known_in_any_letter_case():
    for choice in CHOICES:
        for name in choice.names:
            with pytest.raises(InputError):
                read_fixed({name.upper(): "no such value!"})


def test_a_layout_is_read_from_its_stages():
    torchtitan = "tok_embeddings,layers.0 layers.1,layers.2,norm,lm_head"
    assert read_fixed({"layers": [torchtitan]}, plan_trainers()) == {"layers": ((1, 2),)}


def test_what_is_written_is_read_back():
    example = Configuration(
        sequence=1, global_batch=1, recompute=("mlp",), pipeline=2, layers=(1, 2), offload=0.5, schedule="zbv"
    )
    for choice in CHOICES:
        value = getattr(example, choice.field, None)
        if value is not None:
            assert read_fixed({short_name(choice.field): written(choice.field, value)})[choice.field] == (value,)


@pytest.mark.parametrize(
    ("fix", "rule"),
    [
        ({"tp": 0}, "invalid tp 0: expected an integer >= 1"),
        ({"offload": 2}, "invalid offload 2: expected a fraction from 0 to 1"),
        ({"layers": "a+b"}, "invalid layers 'a+b': expected the layers of each stage joined by +"),
        ({"sp": "maybe"}, "invalid sp 'maybe': expected on or off"),
        ({"tp": 8, "tensor": 4}, "tp is fixed twice"),
        ({"ttp": 8}, "did you mean 'tp'"),
        ({"recompute": "layer_norm"}, "did you mean 'layernorm'"),
    ],
)
def test_values_that_cannot_be(fix, rule):
    with pytest.raises(InputError, match=re.escape(rule)) as error:
        read_fixed(fix)
    assert error.value.field == "fix"
