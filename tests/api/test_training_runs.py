"""A run and the profile that predicts it are of one device."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import pipeplan
from pipeplan.errors import InputError


class AskedFor(Exception):
    """Stands for a measurement; its argument is the device."""


@pytest.fixture
def gpus(monkeypatch):
    """A host of so many GPUs, on which nothing is measured: the first who would says on which device."""

    def stop(_: object, options: Any, **__: object) -> None:
        raise AskedFor(options.device)

    def pretend(count: int) -> None:
        monkeypatch.setattr("torch.cuda.is_available", lambda: count > 0)
        monkeypatch.setattr("torch.cuda.device_count", lambda: count)
        monkeypatch.setattr("pipeplan.runtime.profile_with", stop)
        monkeypatch.setattr("pipeplan.runtime.run_with", stop)

    return pretend


@pytest.mark.parametrize(("count", "device"), [(0, "cpu"), (1, "cpu"), (2, "cuda"), (8, "cuda")])
@pytest.mark.parametrize("costs", [{}, {"forward_times": 1.0, "time_unit": "ms"}])
def test_what_predicts_a_run_is_measured_where_the_run_is(gpus, count, device, costs):
    gpus(count)
    with pytest.raises(AskedFor, match=f"^{device}$"):
        pipeplan.run("1f1b", ranks=2, microbatches=4, **costs)


def test_a_pytorch_that_cannot_run_it_is_told_before_anything_is_measured(gpus, monkeypatch):
    gpus(0)
    monkeypatch.setattr("pipeplan.runtime.requirements.version", lambda name: "2.11.0")
    with pytest.raises(InputError, match=r"unsupported PyTorch 2\.11\.0: .* supports 2\.13, 2\.14, 2\.15;"):
        pipeplan.run("1f1b", ranks=2, microbatches=4)


def test_too_few_gpus_are_told_before_anything_is_measured(gpus):
    gpus(1)
    with pytest.raises(InputError, match="2 ranks on this host need a GPU each, but it has 1"):
        pipeplan.run("1f1b", ranks=2, microbatches=4, device="cuda")
