import json
import os
from pathlib import Path

import pytest

import pipeplan
from pipeplan import answers
from pipeplan.answers.outputs import require_outputs
from pipeplan.costs import SettingsKeywords
from pipeplan.foundation.errors import InputError, UnknownNameError

SHAPE: SettingsKeywords = {"ranks": 2, "microbatches": 2}


@pytest.fixture
def result():
    return pipeplan.simulate("1f1b", **SHAPE)


def test_a_trainers_settings_are_saved_with_their_csv(tmp_path, result):
    training = pipeplan.Training(microbatch_size=2, layers=(1, 2))
    flags, plan = tmp_path / "a.torchtitan.sh", tmp_path / "a.torchtitan.csv"
    result.save(flags, training=training)
    assert "pipeline_parallel_microbatch_size 2" in flags.read_text()
    assert plan.read_text() == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
    export = pipeplan.export(
        "1f1b", to="torchtitan", microbatch_size=2, layers_per_stage=(1, 2), ranks=2, microbatches=2
    )
    assert list(export.files) == ["1f1b.csv"]
    export.save(tmp_path / "b.torchtitan.sh")
    assert (tmp_path / "b.torchtitan.sh").read_text() == flags.read_text().replace(
        str(plan), str(tmp_path / "b.torchtitan.csv")
    )
    assert (tmp_path / "b.torchtitan.csv").read_text() == plan.read_text()
    result.save(tmp_path / "c.torchtitan.sh", training=pipeplan.Training(csv=str(tmp_path / "d.csv")))
    assert (tmp_path / "d.csv").read_text() == plan.read_text()


def test_an_export_holds_the_warnings_of_a_trainer():
    assert "norm.weight" in pipeplan.export("zbv", to="torchtitan", **SHAPE).warnings[0]
    assert pipeplan.export("zbv", to="torch-csv", **SHAPE).warnings == ()
    with pytest.raises(InputError, match="csv is for the settings of a trainer") as caught:
        pipeplan.export("zbv", to="torch-csv", csv="a.csv", **SHAPE)
    assert caught.value.field == "csv"


def test_a_comparison_is_no_single_schedule(tmp_path):
    comparison = pipeplan.compare("1f1b", "zbv", **SHAPE)
    pipeplan.save(comparison, tmp_path / "all.json")
    assert [one["schedule"] for one in json.loads((tmp_path / "all.json").read_text())["results"]] == ["zbv", "1f1b"]
    for name in ("all.csv", "all.trace.json"):
        with pytest.raises(InputError, match="this is a comparison"):
            pipeplan.save(comparison, tmp_path / name)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("a.jpeg", UnknownNameError, "suffix of an output '.jpeg'"),
        ("a", UnknownNameError, "suffix of an output 'a'"),
        ("missing/a.png", InputError, "there is no folder"),
    ],
)
def test_outputs_that_cannot_be(tmp_path, result, name, error, message):
    with pytest.raises(error, match=message):
        require_outputs([tmp_path / name])
    with pytest.raises(error, match=message):
        pipeplan.save(result, tmp_path / name)


def test_a_failing_picture_leaves_nothing(tmp_path, result, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pipeplan.drawing.static.save_picture", fail)
    with pytest.raises(InputError, match="no space left"):
        pipeplan.save(result, tmp_path / "a.png")
    assert os.listdir(tmp_path) == []


def converted(source: Path, name: str) -> Path:
    target = source.with_name(name)
    answers.converted(str(source), target, pipeplan.Settings(), answers.ExportOptions(), {})
    return target


def test_converting_a_plan(tmp_path):
    source = tmp_path / "plan.csv"
    source.write_text(pipeplan.export("zbv", to="torch-csv", **SHAPE).text)
    there = converted(source, "plan.json")
    assert converted(there, "back.csv").read_text() == source.read_text()
    assert converted(source, "plan.svg").read_bytes().startswith(b"<?xml")
    with pytest.raises(InputError, match="this is a schedule, which has no times"):
        converted(source, "plan.trace.json")


def test_converting_a_timeline(tmp_path, result):
    source = tmp_path / "run.json"
    pipeplan.save(result, source)
    assert len(json.loads(converted(source, "run.trace.json").read_text())["traceEvents"]) > 8
    assert pipeplan.read_schedule(converted(source, "run.csv")) == result.schedule
    assert "start" in json.loads(converted(source, "again.json").read_text())
    assert converted(source, "run.png").read_bytes().startswith(b"\x89PNG")


def test_converting_never_overwrites_its_source(tmp_path, result):
    source = tmp_path / "run.json"
    pipeplan.save(result, source)
    before = source.read_bytes()
    with pytest.raises(InputError, match="never overwritten"):
        converted(source, source.name)
    assert source.read_bytes() == before


def test_converting_costs(tmp_path, result):
    source = tmp_path / "a.costs.json"
    pipeplan.save(result, source)
    assert converted(source, "b.costs.json").read_text() == source.read_text()
    with pytest.raises(InputError, match=r"would hold a picture, but this is costs: choose one of \.costs\.json"):
        converted(source, "a.png")
