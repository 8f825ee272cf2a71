"""Calibrations in Python: what ``profile(calibrate=...)`` takes and gives."""

from __future__ import annotations

import pytest

import pipeplan
from pipeplan.extensions.planning.answers.calibrations import CalibrationProfile
from pipeplan.extensions.planning.hardware import Gpu
from pipeplan.foundation.errors import InputError

pytest.importorskip("torch", reason="PyTorch is not installed")

CPU = Gpu(name="cpu", peak={"bf16": 5e10}, memory_bytes=16e9, memory_bandwidth=2e10, multiprocessors=1)
TINY = {"name": "tiny", "layers": 2, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 256, "gated": True}


@pytest.fixture(scope="module")
def result() -> CalibrationProfile:
    calibration: CalibrationProfile = pipeplan.profile(calibrate=TINY, gpu=CPU, sequence=32, device="cpu", repeats=1)
    return calibration


def test_it_has_a_row_a_kind(result):
    frame = result.to_frame()
    assert list(frame["kind"]) == ["gemm", "attention", "memory", "head", "loss", "optimizer"]
    assert (frame["factor"] == frame["measured"] / frame["analytic"]).all()
    assert repr(result).startswith("<CalibrationProfile of cpu: gemm ")
    assert "gemm" in result._repr_html_()


def test_it_is_saved_for_estimates(result, tmp_path):
    path = tmp_path / "calibration.yaml"
    result.save(path)
    text = path.read_text()
    assert text.startswith('gpu: "cpu"\nmodel: "tiny"\nsequence: 32\n')
    with pytest.raises(InputError, match="invalid calibration file calibration\\.png"):
        result.save(tmp_path / "calibration.png")


def test_the_gpu_is_asked_for():
    with pytest.raises(InputError, match="gpu is required") as caught:
        pipeplan.profile(calibrate=TINY, sequence=32)
    assert caught.value.field == "gpu"
