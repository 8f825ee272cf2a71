"""Recomputation as a setting: which stages, what it takes, what it saves."""

from typing import Any

import pytest

import pipeplan
from pipeplan.answers.simulating.result import view_of_result

SHAPE: dict[str, Any] = {"ranks": 4, "microbatches": 8}


def test_every_stage():
    plain, recomputed = (pipeplan.simulate("1f1b", recompute=which, **SHAPE) for which in ("none", "all"))
    assert (plain.makespan, recomputed.makespan) == (33.0, 41.0)
    assert plain.memory.peak_activation.tolist() == [4.0, 3.0, 2.0, 1.0]
    assert recomputed.memory.peak_activation.tolist() == [1.0] * 4


@pytest.mark.parametrize("which", ["1-2", "1,2", "2 1", [1, 2], (2, 1, 1)])
def test_some_stages(which):
    result = pipeplan.simulate("1f1b", recompute=which, **SHAPE)
    assert result.memory.peak_activation.tolist() == [4.0, 1.0, 1.0, 1.0]


def test_its_own_time():
    result = pipeplan.simulate("1f1b", recompute="all", recompute_times=0.5, **SHAPE)
    assert result.makespan == 37.0
    assert not any("recomputation" in note for note in (*result.notes, *result.warnings))


def test_a_bound_of_what_recomputes_is_of_its_like():
    asked: dict[str, Any] = {"ranks": 2, "microbatches": 4}
    kept, recomputed = pipeplan.simulate("1f1b", **asked), pipeplan.simulate("1f1b", **asked, recompute=[1])
    assert view_of_result(kept, reasons=True).bound.startswith("no schedule on this placement, without slices, takes")
    assert view_of_result(recomputed, reasons=True).bound.startswith(
        "no schedule on this placement, without slices, recomputing the same stages, takes less than"
    )
    told = pipeplan.compare("1f1b", **asked, recompute=[1])
    assert told.to_dict()["least_bound"]["recomputing"]


def test_mario_decides_itself_what_all_is():
    """Its last rank recomputes nothing, unless the setting names its stage."""
    own = pipeplan.simulate("mario", ranks=4, microbatches=8).makespan
    assert own == pipeplan.simulate("mario", ranks=4, microbatches=8, recompute="all").makespan
    assert own == pipeplan.compare("1f1b", "mario", ranks=4, microbatches=8, recompute="all")["mario"].makespan
    assert own + 3 == pipeplan.simulate("mario", ranks=4, microbatches=8, recompute=[3]).makespan
