"""Calibrations: factors from kernels and runs, what they do to an estimate, and what is wrong with files of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeplan.extensions.planning import (
    Calibration,
    Configuration,
    Correction,
    calibrated,
    estimate,
    read_calibration,
    updated_by_run,
    write_calibration,
)
from pipeplan.extensions.planning.estimates.calibrating import MOST_EXPERTS, _alone, _analytic
from pipeplan.extensions.planning.estimates.stages import stage_costs
from pipeplan.extensions.planning.hardware import cluster, gpu
from pipeplan.extensions.planning.workload import AttentionCore, Execution, Gemm, GroupedGemm, MemoryPass, Work, model
from pipeplan.foundation.errors import CostError, InputError

LLAMA = model("llama3-8b")
H100 = gpu("h100-sxm")
NODE = cluster("h100-sxm:8x1")
RUN = Configuration(sequence=4096, global_batch=16, pipeline=4, data=2)
ALONE = _alone(H100, Execution(sequence=4096, fused_loss=False))
KERNELS = {"gemm": 1.25, "attention": 0.9, "memory": 1.5, "head": 1.1, "loss": 3.0, "optimizer": 2.0}


def factors(**overrides: float) -> Calibration:
    return Calibration(
        gpu="h100-sxm",
        corrections=tuple(Correction(kind=kind, measured=factor, analytic=1.0) for kind, factor in overrides.items()),
    )


def slower(by: float):
    """A GPU whose kernels all take so much longer than they should."""
    return lambda work: by * _analytic(ALONE, work)


def test_each_kind_has_the_factor_of_its_own_kernels():
    def timer(work: Work) -> float:
        by = {Gemm: 1.25, AttentionCore: 0.9, MemoryPass: 1.5}[type(work)]
        if isinstance(work, Gemm) and LLAMA.vocabulary in (work.rows, work.columns, work.inner):
            by = 1.75
        return by * _analytic(ALONE, work)

    actual = calibrated(
        LLAMA,
        H100,
        timer,
        sequence=4096,
        loss=lambda tokens, vocabulary: tokens * vocabulary * 1e-12,
        optimizer=lambda parameters: parameters * 1e-11,
    )
    assert actual.factor("gemm") == pytest.approx(1.25)
    assert actual.factor("attention") == pytest.approx(0.9)
    assert actual.factor("memory") == pytest.approx(1.5)
    assert 1.7 < actual.factor("head") < 1.75  # its norm is a memory pass
    measured = {item.kind: item.measured for item in actual.corrections}
    assert measured["loss"] == pytest.approx(4096 * LLAMA.vocabulary * 1e-12)
    assert measured["optimizer"] == pytest.approx(1e8 * 1e-11)
    assert actual.factor("grouped_gemm") == 1.0


def test_of_experts_a_gpus_share_is_measured():
    requested: list[GroupedGemm] = []

    def timer(work: Work) -> float:
        assert not isinstance(work, AttentionCore) or work.keys == 4096 / 2, "windows are passed over"
        if isinstance(work, GroupedGemm):
            requested.append(work)
        return 1e-3

    shape = model("qwen3-30b-a3b")
    actual = calibrated(shape, H100, timer, sequence=4096)
    assert shape.experts is not None
    assert {work.groups for work in requested} == {MOST_EXPERTS}
    tokens = 4096 * shape.experts.top_k * MOST_EXPERTS / shape.experts.count
    assert {work.rows for work in requested} == {tokens}
    assert actual.factor("grouped_gemm") != 1.0
    assert calibrated(model("gpt-oss-20b"), H100, timer, sequence=4096).factor("attention") != 1.0


def test_a_gpu_that_is_as_it_should_be_has_factors_of_one():
    shares: list[float] = []
    result = calibrated(LLAMA, H100, slower(1.0), sequence=4096, progress=shares.append)
    assert {correction.kind for correction in result.corrections} == {"gemm", "attention", "memory", "head"}
    assert all(correction.factor == pytest.approx(1.0) for correction in result.corrections)
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


def test_the_factor_of_whole_stages_multiplies_those_of_kernels_and_of_the_head():
    both = factors(compute=1.5, gemm=2, head=3, collective=4)
    kinds = ("gemm", "memory", "head", "loss", "collective")
    assert [both.factor(kind) for kind in kinds] == [3.0, 1.5, 4.5, 1.0, 4.0]


def test_an_estimate_takes_longer_by_the_factors():
    plain = estimate(LLAMA, NODE, RUN, with_error_bar=False)
    doubled = factors(gemm=2, attention=2, memory=2, optimizer=2)
    twice = estimate(LLAMA, NODE, RUN, calibration=doubled, with_error_bar=False)
    assert twice.time.optimizer == pytest.approx(2 * plain.time.optimizer)
    before, after, head = (
        stage_costs(LLAMA, NODE, RUN, calibration=calibration).forward
        for calibration in (None, doubled, factors(head=2))
    )
    assert after == pytest.approx(2 * before, rel=0.02)
    assert head[:-1].tolist() == before[:-1].tolist()
    assert head[-1] > before[-1]
    assert plain.costs_from["gemm"] == "analytic"
    assert (twice.costs_from["gemm"], twice.costs_from["collective"]) == ("calibrated", "analytic")


def test_costs_are_measured_where_the_very_layer_was():
    actual = calibrated(LLAMA, H100, slower(1.5), sequence=4096)
    assert actual.costs_from("gemm", LLAMA, RUN) == "measured"
    assert actual.costs_from("gemm", LLAMA, replace(RUN, tensor=2, data=1)) == "calibrated"
    assert actual.costs_from("gemm", LLAMA, replace(RUN, sequence=8192)) == "calibrated"
    assert actual.costs_from("gemm", model("llama3-70b"), RUN) == "calibrated"
    assert actual.costs_from("collective", LLAMA, RUN) == "analytic"
    assert factors(compute=1.1).costs_from("attention", LLAMA, RUN) == "calibrated"
    assert factors(compute=1.1).costs_from("optimizer", LLAMA, RUN) == "analytic"


def test_a_run_corrects_what_its_stages_should_take():
    known = factors(gemm=1.25, optimizer=2.0)
    costs = stage_costs(LLAMA, NODE, RUN, calibration=known)
    predicted = costs.forward + costs.backward_input + costs.backward_weight
    actual = updated_by_run(known, LLAMA, NODE, RUN, (1.1 * predicted).tolist())
    assert actual.factor("gemm") == pytest.approx(1.25 * 1.1)
    assert actual.factor("memory") == pytest.approx(1.1)
    assert actual.factor("optimizer") == 2.0
    assert actual.factor("head") == 1.0  # its kernels have it
    after = stage_costs(LLAMA, NODE, RUN, calibration=actual)
    # What waits for the host's launches (the embedding's) is no kernel's.
    found_sum = np.sum(after.forward + after.backward_input + after.backward_weight)
    assert found_sum == pytest.approx(1.1 * predicted.sum(), rel=1e-4)
    again = updated_by_run(actual, LLAMA, NODE, RUN, (1.3 * predicted).tolist())
    assert again.factor("memory") == pytest.approx(1.3)
    assert len(again.corrections) == len(actual.corrections)


def test_a_run_of_another_job_is_refused():
    with pytest.raises(InputError, match="the run has 3 stages but the configuration has 4"):
        updated_by_run(None, LLAMA, NODE, RUN, [1.0, 1.0, 1.0])
    with pytest.raises(CostError, match=r"invalid measured seconds 0\.0 of compute"):
        updated_by_run(None, LLAMA, NODE, RUN, [0.0] * 4)
    with pytest.raises(InputError, match="for h100-sxm, but the cluster has a100-sxm-80gb"):
        updated_by_run(factors(gemm=2), LLAMA, cluster("a100:8x1"), RUN, [1.0] * 4)
    with pytest.raises(InputError, match="for h100-sxm, but the cluster has h200-sxm") as caught:
        estimate(LLAMA, cluster("h200:8x1"), RUN, calibration=factors(gemm=2))
    assert caught.value.field == "calibration"


@pytest.mark.parametrize("ending", [".yaml", ".json"])
def test_a_file_holds_all_of_it(tmp_path, ending):
    known = replace(
        factors(**KERNELS), model="llama3-8b", sequence=4096, microbatch_size=2, measured_on="H100: 'a' GPU, PyTorch 2"
    )
    path = tmp_path / f"calibration{ending}"
    write_calibration(path, known)
    assert read_calibration(path) == known
    with pytest.raises(InputError, match=r"invalid calibration file x\.txt: expected"):
        write_calibration(Path("x.txt"), known)
    with pytest.raises(CostError, match="two factors for gemm"):
        replace(known, corrections=(*known.corrections, *factors(gemm=2).corrections))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "has no 'gpu'"),
        ("gpu: h100-sxm\nfactors: 2", "has no 'factors'"),
        ("gpu: h100-sxm\nfactors: {gem: 2}", "did you mean 'gemm'"),
        ("gpu: h100-sxm\nfactors: {gemm: {source: here}}", "gemm needs 'factor', or both 'measured' and 'analytic'"),
        ("gpu: h100-sxm\nfactors: {gemm: fast}", "'fast': expected a number"),
        ("gpu: h100-sxm\nsequence: long\nfactors: {}", "invalid sequence 'long'"),
    ],
)
def test_a_file_that_is_no_calibration(tmp_path, text, message):
    path = tmp_path / "calibration.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_calibration(path)
