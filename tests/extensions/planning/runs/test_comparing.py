"""A prediction beside the measurement of its run: the part that is off, and what a log cannot tell."""

from __future__ import annotations

import pytest

import pipeplan
from pipeplan.extensions.planning.runs.comparing import MeasuredStep
from pipeplan.foundation.errors import InputError
from tests.extensions.planning.runs.test_logs import megatron, timers, titan, written

ONE = {"model": "llama3-8b", "cluster": "h100-sxm:8x2", "global_batch": 64, "sequence": 8192, "tp": 2, "pp": 4}


def predicted():
    return pipeplan.estimate(ONE)[0].estimate


def compared(measured) -> MeasuredStep:
    (row,) = pipeplan.estimate(ONE, measured=measured)
    assert isinstance(row.measured, MeasuredStep)
    assert row.to_dict()["measured"]["ratio"] == row.measured.ratio
    return row.measured


def test_a_measured_step_is_compared_with_the_prediction_and_its_error_bar():
    estimate = predicted()
    near, far = compared(estimate.step_time * 1.02), compared(f"{estimate.step_time * 2}s")
    assert near.ratio == pytest.approx(1.02)
    assert near.within_error_bar is True
    assert near.findings[0].startswith("no part stands out")
    assert far.within_error_bar is False
    assert "check first that the configuration is the one that ran" in far.findings[0]


def test_whole_steps_name_only_the_parts_that_could_explain_the_difference():
    estimate = predicted()
    slower = compared(estimate.step_time * 1.2)
    assert next(iter(slower.suspects)) == "compute"
    # The part with this factor, and everything else as predicted, takes as long as was measured.
    rest = estimate.step_time - estimate.time.compute
    assert rest + slower.suspects["compute"] * estimate.time.compute == pytest.approx(1.2 * estimate.step_time)
    assert "optimizer" not in slower.suspects
    assert slower.findings[-2].startswith("whole steps do not tell which part is off")
    assert slower.findings[-1].startswith("measure next: a profiler trace")


def test_timers_tell_the_part_that_is_off(tmp_path):
    plain = compared(written(tmp_path, *(megatron(step, 7e3, batch=64) for step in range(1, 4))))
    assert not plain.parts
    assert "--timing-log-level 2" in plain.findings[-1]
    step = 1e3 * predicted().step_time
    slow = timers(
        forward_backward=(step, step),
        all_grads_sync=(1.0, 2.0),
        forward_compute=(step / 3, step / 3.1),
        backward_compute=(1.2 * step, 1.3 * step),
        forward_recv=(1.0, 50.0),
        optimizer=(20.0, 30.0),
    )
    found = compared(written(tmp_path, *(line for number in (1, 2, 3) for line in (megatron(number, step, 64), *slow))))
    assert [part.part for part in found.parts][:3] == ["forward", "backward", "waiting for other stages"]
    assert any(finding.startswith("off the most: backward") for finding in found.findings)
    coarse = timers(forward_backward=(step, step), all_grads_sync=(400.0, 500.0), optimizer=(900.0, 1000.0))
    found = compared(
        written(tmp_path, *(line for number in (1, 2, 3) for line in (megatron(number, step, 64), *coarse)))
    )
    assert found.parts[0].part == "forward, backward and waiting"
    assert found.parts[0].measured_s[1] == pytest.approx(step / 1e3 - 0.5)
    assert any("params-all-gather and optimizer-inner-step" in finding for finding in found.findings)


def test_memory_is_compared_by_pipeline_rank(tmp_path):
    peaks = predicted().peak_memory_by_rank_gib
    memory = [
        f"[Rank {4 * rank}] (after 2 iterations) memory (MB) | allocated: 1.00 | max allocated: {1024 * peak * scale:.2f} | "
        f"reserved: 1.00 | max reserved: {1024 * peak * 1.3:.2f}"
        for rank, (peak, scale) in enumerate(zip(peaks, (1.0, 1.2, 1.0, 1.0), strict=True))
    ]
    found = compared(written(tmp_path, *(megatron(step, 7e3, batch=64) for step in range(1, 4)), *memory))
    assert [held.rank for held in found.memory] == [0, 1, 2, 3]
    assert found.findings[-1].startswith("allocated memory is off the most on rank 1: ")
    assert "(+20.0%)" in found.findings[-1]
    reserved = compared(written(tmp_path, *(titan(0, step, 7000, 20.0) for step in (1, 10, 20))))
    assert "is at least what is allocated" in reserved.findings[-1]
    assert reserved.findings[-1].endswith("are too high")


def test_flops_of_another_model_are_noticed(tmp_path):
    path = written(tmp_path, *(megatron(step, 1e3, batch=64) for step in range(1, 4)))
    assert compared(path).findings[0].startswith("another job? the log counts 0.")


def test_several_configurations_have_no_single_measurement():
    with pytest.raises(InputError, match="list several runs in a ledger"):
        pipeplan.estimate({"rows": [ONE, ONE]}, measured=9.0)
