"""What stands only in ``export`` and ``convert``: their formats, and the passes that they take."""

import json
from pathlib import Path

import pytest

from pipeplan.api.outputs import export_formats, output_endings

PLAN = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
SPLIT = "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1W0,1F1,1I1,1W1\n"


def test_help_lists_the_formats(run):
    text = run("export --help")[1]
    assert all(f"{each.name}:" in text for each in export_formats().values())
    text = run("convert --help")[1]
    assert all(ending in text for ending in output_endings())


def test_backwards_are_split_merged_and_retimed(run):
    Path("plan.csv").write_text(PLAN)
    assert run("export plan.csv --to torch-csv --split-backward") == (0, SPLIT, "")
    assert run("convert plan.csv split.csv --split-backward")[0] == 0
    assert Path("split.csv").read_text() == SPLIT
    assert run("export split.csv --to torch-csv --merge-backward") == (0, PLAN, "")
    code, out, _ = run("export 1f1b -p 4 -m 4 --to json --split-backward --retime")
    assert code == 0
    assert json.loads(out)["rows"][0][-2:] == ["0I3", "0W3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("export plan.csv --to torch-csv --split-backward --merge-backward", "undo each other"),
        ("convert plan.csv a.csv --retime", "no weight gradients apart to move"),
        ("convert run.json a.csv --split-backward", "run.json holds a timeline: only the ops of a schedule"),
        ("convert plan.csv a.costs.json", "would hold the costs of one schedule, and this is a schedule"),
        ("export plan.csv --to torch-csw", "unknown format 'torch-csw'; did you mean 'torch-csv'?"),
    ],
)
def test_what_cannot_be_is_said(run, line, message):
    Path("plan.csv").write_text(PLAN)
    assert run("simulate plan.csv -o run.json")[0] == 0
    code, out, err = run(line)
    assert (code, out) == (2, "")
    assert message in err
    assert not Path("a.csv").exists()


def test_json_draws_no_picture_unless_asked(run):
    assert run("simulate -p 2 -m 2 --json")[0] == 0
    assert list(Path().glob("*.png")) == []
    assert run("simulate -p 2 -m 2 --json -o a.png")[0] == 0
    assert Path("a.png").exists()
