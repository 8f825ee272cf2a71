"""What a command may write to: never an input, never two things to one file, never a file in the place of a device."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeplan.answers import simulate

PLAN = "0F0,0B0\n1F0,1B0\n"
CONFIG = "ranks: 2\nmicrobatches: 1\n"
SEARCH = "search -p 2 -m 1 --evaluations 20"


@pytest.fixture
def files(run):
    """Two inputs, a timeline, links to all of them, and a folder of traces."""
    Path("m.csv").write_text(PLAN)
    Path("c.yaml").write_text(CONFIG)
    assert run("simulate m.csv -o t.json")[0] == 0
    Path("t.svg").write_text("<svg/>")
    for name in ("m.csv", "c.yaml", "t.json"):
        Path(f"soft-{name}").symlink_to(name)
        Path(f"hard-{name}").hardlink_to(name)
    Path("traces").mkdir()
    Path("traces/page.html").write_text("<p>mine</p>")
    Path("mine.py").write_text("def model(): ...")
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "simulate m.csv -o m.csv",
        "simulate soft-m.csv -o ../{here}/m.csv",
        "simulate -c c.yaml m.csv -o a.svg -o m.csv",
        "diff m.csv t.json -o t.json",
        "diff m.csv traces -o traces/page.html",
        "search --pareto --start t.json -o t.json",
        "export 1f1b -c c.yaml --to json -o soft-c.yaml",
        "profile -c c.yaml -o hard-c.yaml",
        "run m.csv --trace hard-m.csv",
        "run m.csv --model mine:model --trace mine.py",
        "run m.csv -o o.json --trace ./o.json",
        "simulate -o a.json -o a.json",
        "simulate m.csv -o m.torchtitan.sh -o m.torchtitan.csv",
        "export t.json hard-t.json",
    ],
)
def test_inputs_are_kept_and_outputs_are_apart(run, files, line):
    code, out, err = run(line.format(here=Path.cwd().name))
    assert (code, out) == (2, "")
    assert re.search(r"never overwritten|the same file|is given twice", err)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == files


def test_the_picture_that_nobody_asked_for_is_an_output_too(run, files):
    Path("pipeline_m.png").symlink_to("m.csv")
    code, _, err = run("simulate m.csv")
    assert code == 2
    assert "pipeline_m.png is also an input" in err
    assert Path("m.csv").read_text() == PLAN


def test_a_schedule_named_in_the_config_file_is_an_input(run, files):
    Path("c.yaml").write_text("schedule: m.csv\noutput: m.csv\n")
    for line in ("simulate -c c.yaml", "export -c c.yaml --to json -o m.csv", "run -c c.yaml --trace m.csv"):
        assert run(line)[0] == 2
    assert Path("m.csv").read_text() == PLAN


def test_outputs_of_the_config_file_are_for_commands_that_have_outputs(run):
    Path("c.yaml").write_text("output: missing/a.png\n")
    assert run("simulate -c c.yaml")[0] == 2
    assert run("check 1f1b -c c.yaml")[0] == 0
    assert run("export 1f1b -c c.yaml --to json")[0] == 0


@pytest.mark.needs("search")
def test_what_a_trainers_settings_name_is_written_and_said(run):
    for command in ("simulate 1f1b -o", "search -p 2 -m 2 --placement linear --evaluations 10 -o"):
        code, _, err = run(f"{command} mine.torchtitan.sh")
        assert code == 0
        assert "wrote mine.torchtitan.sh\nwrote mine.torchtitan.csv, which mine.torchtitan.sh names\n" in err
        assert Path("mine.torchtitan.csv").read_text().startswith("0F0,")
        Path("mine.torchtitan.csv").rename("mine.csv")
    said = "wrote again.torchtitan.sh\nwrote again.torchtitan.csv, which again.torchtitan.sh names\n"
    code, out, err = run("export mine.csv again.torchtitan.sh")
    assert (code, out) == (0, "")
    assert err.startswith(f"{said}warning: with torchtitan's default loss")
    code, _, err = run("simulate again.torchtitan.csv -o again.torchtitan.sh")
    assert code == 2
    assert "again.torchtitan.csv is also an input, and inputs are never overwritten" in err


def test_renumbered_microbatches_are_said_of_every_csv_whatever_writes_it(run):
    Path("swapped.csv").write_text("0F1,0F0,0B1,0B0\n1F1,1F0,1B1,1B0\n")
    said = "warning: microbatches are renumbered in the order of the last stage's forwards"
    for command in (
        "export swapped.csv out.csv",
        "export swapped.csv out.torchtitan.sh",
        "simulate swapped.csv -o out.csv -o out.torchtitan.sh",
        "simulate swapped.csv --json -o out.comms.csv",
        "export swapped.csv --to torchtitan --csv out.csv",
    ):
        code, out, err = run(command)
        assert code == 0
        assert err.count(said) == 1, command
        if "--json" in command:
            assert json.loads(out)["warnings"][-1].startswith(said[9:])
    assert Path("out.csv").read_text() == "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"
    for command in (
        "export swapped.csv out.json",
        "simulate out.csv --json -o again.csv",
    ):
        code, out, err = run(command)
        assert (code, said in err, said[9:] in out) == (0, False, False)
    files = simulate("swapped.csv").save("out.csv")
    assert files.warnings[0].startswith(said[9:])
    assert files == (Path("out.csv"),)


def test_standard_output_is_an_output():
    command = f"{sys.executable} -m pipeplan export 1f1b -p 1 -m 1 --to torch-csv -o /dev/fd/1"
    for shell in (command, f"{command} > file; cat file"):
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
        assert done.stdout == "0F0,0B0\n"


@pytest.fixture
def failing(monkeypatch):
    """Makes the writer of pictures fail as a full disk does, and that of traces as a mistake of ours."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    def wrong(*_: object) -> None:
        raise TypeError("found_by")

    monkeypatch.setattr("pipeplan.drawing.static.save_picture", full)
    monkeypatch.setattr("pipeplan.drawing.front.save_front", full)
    monkeypatch.setattr("pipeplan.formats.trace.chrome_trace", wrong)


@pytest.mark.needs("search", "planning", "training")
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("simulate -o a.svg -o b.json", "makespan"),
        ("compare -o a.svg -o b.json", "makespan"),
        (f"{SEARCH} -o a.svg -o b.json", "makespan"),
        ("search -p 2 -m 2 --pareto --points 2 --evaluations 20 -o a.svg -o b.json", "the step falls from"),
    ],
)
def test_an_output_that_fails_costs_neither_the_answer_nor_the_others(run, failing, line, shown):
    code, out, err = run(line)
    assert code == 2
    assert shown in out
    assert Path(line.split()[-1]).stat().st_size > 100
    assert not Path("a.svg").exists()
    assert "pipeplan: cannot write a.svg: no space left on device" in err


def test_every_output_that_fails_is_named(run, failing):
    code, out, err = run("simulate -o a.svg -o b.trace.json -o c.csv --json")
    assert code == 2
    assert json.loads(out)["schedule"] == "1f1b"
    assert "wrote c.csv" in err
    assert "cannot write a.svg" in err
    assert "TypeError: found_by" in err
