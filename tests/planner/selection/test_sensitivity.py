"""What is said of a choice that another input would change."""

import pytest

from pipeplan.planner.configuration import Configuration
from pipeplan.planner.selection.sensitivity import differences

CHOSEN = Configuration(sequence=1, global_batch=16, tensor=2, data=4, offload=0.5, zero=3)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"tensor": 4, "data": 2}, "tp4 dp2"),
        ({"data": 2, "pipeline": 2, "schedule": "zbv", "chunks": 2}, "pp2 dp2, zbv v2"),
        ({"microbatch_size": 2, "recompute": ("mlp", "layernorm")}, "microbatch 2, recompute mlp+layernorm"),
        ({"offload": 0.25}, "25% offloaded"),
        ({"offload": 0.0, "zero": 1}, "nothing offloaded, ZeRO-1"),
        ({}, "another layout"),
    ],
)
def test_only_what_differs_is_said(other, words):
    given = {name: getattr(CHOSEN, name) for name in ("sequence", "global_batch", "tensor", "data", "offload", "zero")}
    assert differences(Configuration(**(given | other)), CHOSEN) == words


def test_what_is_no_longer_computed_again_is_said():
    again = Configuration(sequence=1, global_batch=16, recompute=("full",))
    assert differences(Configuration(sequence=1, global_batch=16), again) == "no recomputation"
