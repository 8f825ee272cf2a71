"""What a search may decide beside the order."""

import pytest

from pipeplan.extensions.search import CHOICES, Choices
from pipeplan.foundation.errors import InputError, UnknownNameError


def test_each_name_is_a_choice_that_can_be_added_and_left():
    for name in CHOICES:
        assert name in Choices.of([name])
        assert name not in Choices.of(leave=[name])
    assert Choices().names == ("split", "overlap", "weight-order")
    assert Choices.of(["offload", "recompute"], ["split"]).names == ("overlap", "weight-order", "recompute", "offload")
    assert "makespan" not in Choices()


def test_a_name_cannot_be_decided_and_left():
    with pytest.raises(InputError, match="recompute is in both decide and leave: keep only one") as raised:
        Choices.of(["recompute"], ["split", "recompute"])
    assert raised.value.field == "leave"


def test_a_name_that_is_no_choice():
    for field in ("decide", "leave"):
        with pytest.raises(UnknownNameError, match=r"'ofload'.*offload") as raised:
            Choices.of(**{field: ["ofload"]})
        assert raised.value.field == field
