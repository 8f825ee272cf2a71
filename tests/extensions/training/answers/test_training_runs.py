"""A run and the profile that predicts it are of one device."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import pipeplan
from pipeplan.costs import Settings
from pipeplan.extensions.training.answers.training_runs import _relative
from pipeplan.foundation.errors import CostError, InputError
from pipeplan.model import Placement


class Measured(Exception):
    """Stands for a measurement; its argument is the device."""


@pytest.fixture
def gpus(monkeypatch):
    """A host of so many GPUs, on which nothing is measured: the first who would says on which device."""

    def stop(_: object, options: Any, **__: object) -> None:
        raise Measured(options.device)

    def pretend(count: int) -> None:
        monkeypatch.setattr("torch.cuda.is_available", lambda: count > 0)
        monkeypatch.setattr("torch.cuda.device_count", lambda: count)
        monkeypatch.setattr("pipeplan.extensions.training.runtime.profiling.profile_with", stop)
        monkeypatch.setattr("pipeplan.extensions.training.runtime.running.run_with", stop)

    return pretend


@pytest.mark.parametrize(("count", "device"), [(0, "cpu"), (1, "cpu"), (2, "cuda"), (8, "cuda")])
@pytest.mark.parametrize("costs", [{}, {"forward_times": 1.0, "time_unit": "ms"}])
def test_what_predicts_a_run_is_measured_where_the_run_is(gpus, count, device, costs):
    gpus(count)
    with pytest.raises(Measured, match=f"^{device}$"):
        pipeplan.run("1f1b", ranks=2, microbatches=4, **costs)


def test_a_pytorch_that_cannot_run_it_is_told_before_anything_is_measured(gpus, monkeypatch):
    gpus(0)
    monkeypatch.setattr("pipeplan.extensions.training.runtime.requirements.version", lambda name: "2.11.0")
    with pytest.raises(InputError, match=r"unsupported PyTorch 2\.11\.0: .* supports 2\.13, 2\.14, 2\.15;"):
        pipeplan.run("1f1b", ranks=2, microbatches=4)


@pytest.mark.parametrize(
    ("costs", "shares"),
    [
        ({"lengths": [512, [128, 256], 1024, 256]}, (0.5, 0.375, 1.0, 0.25)),
        ({"microbatch_factors": [1.0, 4.0, 2.0, 3.0]}, (0.25, 1.0, 0.5, 0.75)),
        ({}, None),
    ],
)
def test_microbatches_get_shares_of_the_sequence(monkeypatch, costs, shares):
    def stop(*_: object, lengths: object, **__: object) -> None:
        raise Measured(lengths)

    monkeypatch.setattr("pipeplan.extensions.training.runtime.running.run_with", stop)
    with pytest.raises(Measured) as request:
        pipeplan.run("1f1b", ranks=2, microbatches=4, forward_times=1.0, time_unit="ms", **costs)
    assert request.value.args == (shares,)


def test_a_run_cannot_make_stages_longer(gpus):
    gpus(0)
    with pytest.raises(CostError, match="a run needs one factor per microbatch"):
        pipeplan.run("1f1b", ranks=2, microbatches=2, microbatch_factors=[[1.0, 2.0], [2.0, 1.0]])


def test_measured_costs_are_those_of_the_longest_microbatch():
    """Attention is a share of the forward at the reference length; of twice the tokens, it is a larger share."""
    settings = Settings(lengths=(512.0, 2048.0), reference_length=1024.0, attention_share=0.25)
    placement = Placement.linear(3)
    relative = _relative(settings, placement, lambda factors: factors[:, [1]]).factors(placement)
    assert relative is not None
    short, long = 0.75 * 0.5 + 0.25 * 0.25, 0.75 * 2 + 0.25 * 4
    assert relative.forward == pytest.approx(np.array([[short / long, 1.0]] * 3))
    assert relative.size == pytest.approx(np.array([[0.25, 1.0]] * 3))
    assert _relative(Settings(), placement, lambda factors: factors) == Settings()


def test_too_few_gpus_are_told_before_anything_is_measured(gpus):
    gpus(1)
    with pytest.raises(InputError, match="2 ranks on this host need a GPU each, but it has 1"):
        pipeplan.run("1f1b", ranks=2, microbatches=4, device="cuda")
