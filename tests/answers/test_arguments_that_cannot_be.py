"""What no argument of the public functions can be is told in a sentence, before any work, with the argument's name."""

from typing import Any

import numpy as np
import pytest

import pipeplan as checked
from pipeplan.foundation.errors import PipeplanError

pipeplan: Any = checked
"""Without its types, which say the same."""
SHAPE: dict[str, Any] = {"ranks": 2, "microbatches": 2}
BUDGET: dict[str, Any] = {**SHAPE, "evaluations": 20, "workers": 1}


def test_is_told():
    for call, message in [
        (lambda: pipeplan.simulate(1.5), "a schedule is a name, a file, a strategy, a schedule or a timeline, not 1.5"),
        (
            lambda: pipeplan.compare(None),
            "a schedule is a name, a file, a strategy, a schedule or a timeline, not None",
        ),
        (lambda: pipeplan.simulate(["1f1b", "zbv"]), r"not \['1f1b', 'zbv'\]; compare takes several"),
        (lambda: pipeplan.compare([]), "the list of schedules is empty: leave it out for all"),
        (
            lambda: pipeplan.simulate(settings=3),
            "settings must be a pipeplan.Settings, a mapping or a config file, not 3",
        ),
        (
            lambda: pipeplan.simulate(settings={}, config="x.yaml"),
            "settings and config both name settings to start from",
        ),
        (lambda: pipeplan.simulate(settings={"rank": 2}), "unknown key in settings: 'rank'; did you mean 'ranks'"),
        (lambda: pipeplan.register("1f1b"), "cannot register '1f1b': expected one of Strategy, Format, Trainer"),
        (lambda: pipeplan.estimate(3), "the file of configurations must be a path, not 3"),
        (lambda: pipeplan.read_schedule(3), "the file must be a path, not 3"),
        (lambda: pipeplan.simulate(config=3), "the config file must be a path, not 3"),
        (lambda: pipeplan.read_timeline(b"x.csv"), "the file must be a path, not b'x.csv'"),
        (lambda: pipeplan.diff("1f1b", object), "the run must be a path, not <class 'object'>"),
        (lambda: pipeplan.export("1f1b", retime="yes"), "retime must be True or False, not 'yes'"),
        (
            lambda: pipeplan.read_schedule("a.csv", keep_duplicates=[1]),
            r"keep duplicates must be True or False, not \[1\]",
        ),
        (lambda: pipeplan.schedules(int), "the name of a schedule must be text, not <class 'int'>"),
        (lambda: pipeplan.search(**BUDGET, full_backward=2), "full backward must be True or False, not 2"),
        (lambda: pipeplan.search(**BUDGET, objective=np.array([1])), "unknown objective"),
        (lambda: pipeplan.search(**BUDGET, placement={}), "placement must be text, not {}"),
        (lambda: pipeplan.search(**BUDGET, layout=1), "unknown layout"),
        (lambda: pipeplan.pareto(**BUDGET, points=1), "points must be at least 2, not 1"),
        (lambda: pipeplan.sweep(store=2.5), "store must be a file path, not 2.5"),
        (lambda: pipeplan.search(**SHAPE, evaluations=[1, 2]), r"evaluations must be a whole number, not \(1, 2\)"),
        (lambda: pipeplan.simulate(**SHAPE, p2p_time="\ud800"), "p2p time"),
        (lambda: pipeplan.simulate(**SHAPE, offload_bytes=[[1]]), "offload_bytes"),
        (lambda: pipeplan.Settings(offload=-1), "offload: expected text or a list, got a whole number"),
        (lambda: pipeplan.Settings(backward_times=np.float32("inf")), "backward time must be more than 0 and finite"),
        (lambda: pipeplan.Training(layers="2"), "layers per stage must be whole numbers, not '2'"),
        (lambda: pipeplan.save(pipeplan.simulate(**SHAPE), "x.csv", ending=b""), "the ending must be text, not b''"),
        (lambda: pipeplan.profile(source="traces", calibrate=0.5), "configuration must be a path, not 0.5"),
        (lambda: pipeplan.profile(source="traces", model=np.array([])), "model must be text"),
        (
            lambda: pipeplan.profile(source="traces", layout=1),
            "layers per stage must be whole numbers of at least 0, not 1",
        ),
        (lambda: pipeplan.profile(device=3), "unknown device '3'"),
        (
            lambda: pipeplan.plan("llama3-8b", "h100-sxm:1x1", global_batch=1, sequence=1, fix=2.0),
            "invalid fixed setting, expected NAME=VALUE such as tp=8, not 2.0",
        ),
    ]:
        with pytest.raises(PipeplanError, match=message):
            call()


def test_a_list_in_itself_is_told():
    around: list[Any] = []
    around.append(around)
    with pytest.raises(PipeplanError, match="recompute_bytes"):
        pipeplan.simulate(**SHAPE, recompute_bytes=around)


def test_numbers_of_numpy_are_as_good_as_others():
    found = pipeplan.search(**SHAPE, evaluations=np.int64(20), seconds=np.float32(5), seed=np.int32(1), workers=1)
    assert found.search.evaluations >= 1


def test_seeds_of_many_digits_are_seeds():
    found = pipeplan.search(**SHAPE, evaluations=20, workers=1, seed=2**40)
    assert found.to_dict()


def test_what_is_long_is_not_told_in_full():
    with pytest.raises(PipeplanError) as error:
        pipeplan.simulate(**SHAPE, activation_bytes="x" * 5000)
    assert len(str(error.value)) < 500
