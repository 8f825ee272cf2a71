"""What ``--fix`` takes."""

import pytest

from pipeplan.extensions.planning import CHOICES, Configuration, read_fixed
from pipeplan.extensions.planning.choice.request import short_name, written
from pipeplan.extensions.planning.trainers import plan_trainers
from pipeplan.foundation.errors import InputError, UnknownNameError


def test_values_may_be_numbers_texts_or_lists_of_either():
    assert read_fixed({"tp": 8}) == {"tensor": (8,)}
    assert read_fixed({"tp": "4, 8"}) == {"tensor": (4, 8)}
    assert read_fixed({"pp": [2, "4"]}) == {"pipeline": (2, 4)}


def test_every_name_of_a_choice_is_known_in_any_letter_case():
    for choice in CHOICES:
        for name in choice.names:
            with pytest.raises(InputError):
                read_fixed({name.upper(): "no such value!"})


def test_modules_are_joined_by_plus_and_kept_in_the_order_of_the_table():
    assert read_fixed({"recompute": "layernorm+core_attn,none"}) == {"recompute": (("core_attn", "layernorm"), ())}


def test_a_layout_is_read_from_its_stages():
    assert read_fixed({"layers": "9+10+10+9"}) == {"layers": ((9, 10, 10, 9),)}
    assert read_fixed({"layers": "Et*9|t*10|t*10|t*9L"}, plan_trainers()) == {"layers": ((9, 10, 10, 9),)}
    torchtitan = "tok_embeddings,layers.0 layers.1,layers.2,norm,lm_head"
    assert read_fixed({"layers": [torchtitan]}, plan_trainers()) == {"layers": ((1, 2),)}


def test_a_trainer_stands_for_its_software_unless_another_is_named():
    assert read_fixed({"trainer": "torchtitan"}, plan_trainers())["software"] == ("torchtitan",)
    assert read_fixed({"trainer": "megatron", "software": "nemo"}, plan_trainers())["software"] == ("nemo",)


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
    ],
)
def test_values_that_cannot_be(fix, rule):
    with pytest.raises(InputError, match=rule.replace("+", r"\+")) as error:
        read_fixed(fix)
    assert error.value.field == "fix"


@pytest.mark.parametrize(
    ("fix", "nearest"),
    [
        ({"ttp": 8}, "tp"),
        ({"recompute": "layer_norm"}, "layernorm"),
        ({"software": "megatron-cor"}, "megatron-core"),
    ],
)
def test_unknown_names_come_with_the_nearest(fix, nearest):
    with pytest.raises(UnknownNameError, match=f"did you mean '{nearest}'"):
        read_fixed(fix, plan_trainers())
