"""``run`` and ``profile`` as a user calls them: two processes, a small model."""

import json

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: the commands that need it are not tested")

from pipeplan.cli import main

pytestmark = pytest.mark.usefixtures("empty_folder")


@pytest.mark.parametrize("line", ["run chimera -p 2 -m 4", "run dualpipe -p 2 -m 4"])
def test_what_pytorch_cannot_run_is_refused_before_anything_is_measured(line, capsys):
    assert main(line.split()) == 2
    assert "supports one rank per stage" in capsys.readouterr().err


@pytest.mark.parametrize("layout", [["3,3,2"], ["3", "3", "2"], ["3,3", "2"]])
def test_a_layout_is_numbers_apart_by_commas_or_blanks(layout, capsys):
    assert main(["profile", "1f1b", "-p", "2", "--layout", *layout]) == 2
    assert "a layout of 3 stages does not fit 2 stages" in capsys.readouterr().err


def test_a_layout_has_whole_numbers_of_layers(capsys):
    assert main(["profile", "1f1b", "-p", "2", "--layout", "5.5,4.5"]) == 2
    assert "--layout: invalid integer '5.5'" in capsys.readouterr().err


def test_costs_need_a_unit_to_be_compared_with_a_run(capsys):
    assert main(["run", "1f1b", "-p", "2", "-m", "2", "-f", "1"]) == 2
    assert "--time-unit" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["function", "module"])
@pytest.mark.parametrize("command", ["run", "profile"])
def test_a_model_that_ends_the_process_gives_a_sentence_and_no_answer(tmp_path, monkeypatch, capsys, where, command):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "leaves_at_once.py").write_text("import sys\nsys.exit(0)\n")
    model = {"function": "sys:exit", "module": "leaves_at_once:model"}[where]
    assert main([command, "-p", "2", "-m", "2", "--model", model, *(["--json"] if command == "run" else [])]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("pipeplan: ")
    assert "SystemExit" in err
    assert err.count("\n") == 1


def test_a_run_is_compared_with_its_prediction(tmp_path, capsys):
    """The tutorial of training profiles a model and runs with the costs."""
    timeline, trace = (str(tmp_path / name) for name in ("run.json", "run.trace"))
    line = ["run", "zbv", "-p", "2", "-m", "3", "-f", "1", "--time-unit", "ms", "--steps", "2", "--verify", "--json"]
    assert main([*line, "--trace", trace, "-o", timeline]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["max_gradient_difference"] == 0
    assert len(document["step_seconds"]["steps"]) == 2
    assert document["predicted_on"] == "the costs given"
    assert document["predicted_seconds"] > 0
    steps = document["step_seconds"]
    assert document["makespan"] == pytest.approx(min(steps["steps"]) * 1e3, rel=0.5)
    assert (document["noise"] is None) == (steps["spread"] < 0.1)
    assert json.loads((tmp_path / "run.trace").read_text())["traceEvents"]
    assert [len(step["start"]) for step in json.loads((tmp_path / "run.json").read_text())["steps"]] == [2, 2]
    assert main(["simulate", timeline, "--no-visualization"]) == 2
    assert "holds a measured timeline" in capsys.readouterr().err
    assert main(["explain", timeline, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["makespan"] == pytest.approx(document["makespan"])
