"""Costs that were exported are a config file."""

import pytest

import pipeplan
from pipeplan.answers.config_files import load_config
from pipeplan.cli import main
from pipeplan.costs import Settings
from pipeplan.costs.costs_file import settings_of
from pipeplan.formats import costs_json
from pipeplan.foundation.errors import InputError, UnknownNameError
from pipeplan.model import Placement

SETTINGS = Settings(
    forward_times=(1.0, 1.5, 2.0, 2.5),
    backward_times=4.0,
    backward_input_times=1.5,
    overlap_times=9.0,
    recompute_times=0.5,
    p2p_time=0.25,
    p2p_bytes=10.0,
    p2p_bandwidth=40.0,
    activation_bytes=3e9,
    weight_activation_bytes=1e9,
    static_bytes=(1.0, 2.0, 3.0, 4.0),
    time_unit="ms",
)


@pytest.mark.parametrize("settings", [SETTINGS, Settings()])
def test_costs_are_settings_again(settings):
    placement = Placement.v(2)
    costs = settings.costs(placement)
    again = Settings(**settings_of(costs)).costs(placement)
    assert costs_json(again) == costs_json(costs)


def test_exported_costs_are_a_config_file(tmp_path):
    path = tmp_path / "costs.json"
    path.write_text(costs_json(SETTINGS.costs(Placement.linear(4))))
    assert load_config(path).settings["stages"] == 4
    again = pipeplan.simulate("1f1b", config=path)
    assert again.makespan == pipeplan.simulate("1f1b", **settings_of(SETTINGS.costs(Placement.linear(4)))).makespan


@pytest.mark.needs("planning")
def test_a_name_that_is_not_bundled_suggests_those_that_are(tmp_path, monkeypatch, capsys):
    """Also with a suffix; a file in another folder, or with a suffix of a config file, is a file that is not there."""
    monkeypatch.chdir(tmp_path)
    near = {
        "gpt-6.2b": "did you mean 'gpt-6.2b-24' or 'gpt-6.2b-64'?",
        "gpt-6.2b-42": "did you mean 'gpt-6.2b-",
        "GPT-6.2B-24": "did you mean 'gpt-6.2b-24'?",
        "gpt-6.2b-24.yaml": "did you mean 'gpt-6.2b-24'?",
        "llama3": "did you mean 'llama3-70b-64'?",
        "mine": "known: gpt-1.5b-24, ",
    }
    for name, remedy in near.items():
        with pytest.raises(UnknownNameError) as caught:
            pipeplan.simulate("1f1b", config=name)
        assert f"unknown config file or bundled costs '{name}'; {remedy}" in str(caught.value)
        assert main(["compare", "-c", name, "-p", "4", "-m", "12"]) == 2
        assert remedy in capsys.readouterr().err
    for name in ("mine.yaml", "folder/gpt-6.2b"):
        with pytest.raises(InputError, match=f"{name}|suffix"):
            pipeplan.simulate("1f1b", config=name)
