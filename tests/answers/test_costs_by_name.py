"""Costs that come with pipeplan: all can be read, and planned ones give the step that their plan predicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pipeplan
from pipeplan.answers import load_config, shipped
from pipeplan.answers.config_files import shipped_costs
from pipeplan.cli import main
from pipeplan.extensions.planning import estimate
from pipeplan.extensions.planning.flags import read_configuration
from pipeplan.foundation.documents import read_document

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("answer", shipped(), ids=lambda answer: answer.name)
def test_every_preset_is_told_of_and_simulates(answer):
    assert answer.about.endswith((".", "measured."))
    result = pipeplan.simulate("1f1b", config=answer.name)
    assert result.memory.peak_bytes is not None
    assert result.timeline.unit in ("us", "ms")


@pytest.mark.parametrize("name", [entry.name for entry in shipped() if entry.origin == "planned"])
def test_planned_costs_give_the_step_that_is_planned(name):
    """The embedding and the head are spread over the ranks, and the step's end is left out: a few per cent."""
    path = ROOT / "src" / "pipeplan" / "extensions" / "planning" / "answers" / "bundled_configurations" / f"{name}.yaml"
    model, cluster, configuration = read_configuration(read_document(path, "configuration"))
    planned = estimate(model, cluster, configuration)
    answer = pipeplan.simulate(configuration.schedule, config=name, chunks=configuration.chunks)
    assert answer.makespan / 1e3 == pytest.approx(planned.step_time, rel=0.06)
    assert answer.memory.peak_bytes is not None
    assert answer.memory.peak_bytes.max() == pytest.approx(planned.peak_bytes, rel=0.1)
    assert answer.fits


def test_a_name_is_as_good_as_its_file():
    by_name = load_config(Path("gpt-6.2b-24"))
    assert by_name == load_config(ROOT / "examples" / "profiles" / "gpt-6.2b-24.yaml")
    assert by_name.settings["forward_times"] == 29718


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("llama3-70b-64").mkdir()
    with pytest.raises(pipeplan.PipeplanError):
        load_config(Path("llama3-70b-64"))


def test_the_bundled_costs_are_listed_and_each_is_read_by_its_name(capsys):
    assert main(["list", "costs", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["costs"]
    assert [entry["name"] for entry in listed] == [entry.name for entry in shipped()]
    assert main(["list", "costs"]) == 0
    printed = capsys.readouterr().out
    for entry in listed:
        assert entry["name"] in printed
        assert shipped_costs(entry["name"]).settings
