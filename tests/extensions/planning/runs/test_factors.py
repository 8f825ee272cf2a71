"""Ledgers of runs: the factors that made the measurements are found, and no more than the runs tell."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import pipeplan
from pipeplan.extensions.planning import Calibration, Correction
from pipeplan.extensions.planning.answers.ledgers import read_ledger
from pipeplan.extensions.planning.flags import read_configuration
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.runs.factors import TriedRun, fitted
from pipeplan.extensions.planning.runs.proposing import FromRuns
from pipeplan.foundation.errors import FormatError, InputError, UnknownNameError
from tests.extensions.planning.runs.test_logs import megatron, written
from tests.plans import fitting_plan

SHARED = {"model": "llama3-8b", "cluster": "h100-sxm:8x2", "global_batch": 64, "sequence": 8192}
TRUE = {"gemm": 1.2, "attention": 1.5, "network": 2.0}
SETTINGS = [
    {"tp": 2, "pp": 4},
    {"tp": 8, "dp": 2},
    {"zero": 3},
    {"cp": 4, "zero": 3, "sequence": 65536, "global_batch": 16, "recompute": "full"},
    {"tp": 4, "pp": 2, "sequence": 1024, "global_batch": 512},
    {"tp": 16, "dp": 1},
]


def tried(settings, factors) -> list[TriedRun]:
    calibration = Calibration(
        gpu="h100-sxm",
        corrections=tuple(Correction(kind=kind, measured=by, analytic=1.0) for kind, by in factors.items()),
    )
    runs = []
    for place, own in enumerate(settings):
        model, machines, configuration = read_configuration(SHARED | own)
        run = TriedRun(id=str(place), model=model, cluster=machines, configuration=configuration, seconds=None)
        runs.append(replace(run, seconds=run.estimate(calibration).step_time))
    return runs


def test_the_factors_that_made_the_measurements_are_found():
    fit = fitted(tried(SETTINGS, TRUE))
    found = {correction.kind: correction for correction in fit.calibration.corrections}
    for kind, factor in TRUE.items():
        assert kind not in fit.undetermined
        assert found[kind].factor == pytest.approx(factor, rel=0.03)
        assert abs(found[kind].factor / factor - 1) < 3 * found[kind].uncertainty < 0.2
    assert fit.before > 0.1
    assert fit.after < 0.01


def test_runs_as_predicted_change_nothing():
    fit = fitted(tried(SETTINGS, {}))
    assert [correction.factor for correction in fit.calibration.corrections] == pytest.approx(
        [1.0] * len(fit.kinds), abs=1e-6
    )
    assert fit.after < 1e-6


def test_one_run_tells_the_machine_slower_but_not_which_kind_of_work():
    (run,) = tried(SETTINGS[:1], {})
    fit = fitted([replace(run, seconds=1.2 * run.estimate().step_time)])
    assert {"attention", "memory", "collective"} <= set(fit.undetermined)
    factors = {correction.kind: correction.factor for correction in fit.calibration.corrections}
    assert factors["attention"] == factors["collective"]
    assert 1.0 < factors["attention"] < factors["gemm"] < 1.25
    assert fit.after < fit.before / 2
    # The run itself is known better than one that rests on kinds of work that it hardly has.
    other = tried(SETTINGS[3:4], {})[0]
    assert fit.spread(run) < fit.spread(other)


def test_a_ledger_becomes_a_calibration_file(tmp_path):
    log = written(tmp_path, *(megatron(step, 7e3, batch=64) for step in range(1, 4)))
    runs = [
        {"id": "a", "tp": 2, "pp": 4, "measured": log.name},
        {"tp": 8, "measured": "8.5s", "peak_memory": "50GiB"},
        {"configuration": "best.json", "out_of_memory": True},
    ]
    (tmp_path / "best.json").write_text(json.dumps(SHARED | {"id": "best", "tp": 1, "pp": 2}))
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(SHARED | {"runs": runs}))
    first, second, third = read_ledger(path)
    assert (first.id, first.seconds, second.seconds, second.peak_gib) == ("a", 7.0, 8.5, 50.0)
    assert (third.seconds, third.configuration.pipeline) == (None, 2)
    profile = pipeplan.profile(calibrate=path)
    profile.save(tmp_path / "calibration.yaml")
    (row,) = pipeplan.estimate(SHARED | {"tp": 8}, calibration=tmp_path / "calibration.yaml")
    corrected = second.estimate(fitted([first, second, third]).calibration)
    assert row.step_time_s == pytest.approx(corrected.step_time, rel=1e-4)
    one = tmp_path / "one.json"
    one.write_text(json.dumps(SHARED | {"tp": 2, "pp": 4}))
    assert "1 run" in pipeplan.profile(calibrate=one, source=log).calibration.measured_on


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "has no 'runs'"),
        ([3], "run 0: expected a mapping of settings"),
        ([{"tp": 3, "measured": 9}], "run 0: tp 3 x pp 1"),
        ([{"id": "x", "tp": 2}], "x: expected either 'measured', a duration or a log, or 'out_of_memory"),
        ([{"tp": 2, "measure": 9}], "run 0: unknown key of a run 'measure'; did you mean 'measured'"),
        ([{"tp": 2, "measured": [9]}], "run 0: cannot read the measured step"),
        ([{"tp": 2, "measured": 9, "peak_memory": "lots"}], "run 0: invalid peak_memory 'lots'"),
        ([{"tp": 2, "measured": "none.log"}], "run 0: cannot read the measured step .none.log.: no such file"),
    ],
)
def test_a_ledger_that_cannot_be_read_names_the_run(tmp_path, runs, message):
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(SHARED | {"runs": runs}))
    with pytest.raises((FormatError, InputError, UnknownNameError), match=message):
        read_ledger(path)


def test_runs_without_a_step_or_of_two_gpus_fit_nothing():
    one, two = tried(SETTINGS[:2], {})
    with pytest.raises(InputError, match="no run has a measured step"):
        fitted([replace(one, seconds=None)])
    with pytest.raises(InputError, match="1 has the GPU a100-sxm-80gb, others h100-sxm: keep a ledger per GPU"):
        fitted([one, replace(two, cluster=cluster("a100-sxm-80gb:8x2"))])


def test_steps_of_another_unit_and_runs_that_contradict_each_other_fit_nothing():
    (one,) = tried(SETTINGS[:1], {})
    seconds = one.estimate().step_time
    with pytest.raises(InputError, match="check its unit, model and batch"):
        fitted([replace(one, seconds=1000 * seconds)])
    with pytest.raises(InputError, match="again have the same configuration, but took"):
        fitted([one, replace(one, id="again", seconds=2 * seconds)])


def test_the_next_run_is_one_of_the_plan_that_was_not_tried_with_its_gain_and_risk():
    plan = fitting_plan()
    best = plan.best
    assert best is not None
    (slow,) = tried([{"tp": 8, "dp": 2}], {})
    told = FromRuns.of(plan, [slow], fitted([slow])).next_run
    assert told is not None
    assert told.best_run == "0"
    assert told.gain == pytest.approx(1 - told.step_time_s / slow.estimate().step_time)
    assert told.gain is not None
    assert told.slower is not None
    assert (told.slower < 0.5) == (told.gain > 0)
    assert 0 <= told.too_large < 0.5
    low, high = told.interval_s
    assert low < told.step_time_s < high
    (row,) = pipeplan.estimate(told.document)
    assert row.estimate is not None
    # All configurations of the plan were tried.
    every = [
        replace(slow, configuration=found.configuration, id=found.words)
        for found in (best, *plan.runners_up, *plan.front)
    ]
    after = FromRuns.of(plan, every, fitted(every))
    assert after.next_run is None
    assert after.sentences[0].startswith("factors from the runs: ")
    assert after.sentences[1] == "no next run: every configuration of this plan was tried"
    # A run of another batch is no run to beat.
    other = replace(slow, configuration=replace(slow.configuration, global_batch=128))
    told = FromRuns.of(plan, [other], fitted([other])).next_run
    assert told is not None
    assert told.gain is None
    assert "no run of this model, cluster and batch was tried" in told.sentence
