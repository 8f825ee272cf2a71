"""What a command may write to: never an input, never two things to one file, never a file in the place of a device."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeplan.answers import simulate
from pipeplan.extensions.search.commands import keep_best
from pipeplan.extensions.search.result import SearchProgress

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
        "simulate m.csv -o soft-m.csv",
        "simulate m.csv -o hard-m.csv",
        "simulate soft-m.csv -o ../{here}/m.csv",
        "simulate -c c.yaml m.csv -o a.svg -o m.csv",
        "compare 1f1b t.json -o t.json",
        "explain m.csv -o hard-m.csv",
        "diff m.csv t.json -o t.svg -o t.svg",
        "diff m.csv t.json -o t.json",
        "diff m.csv traces -o traces/page.html",
        "search --start m.csv -o m.csv",
        "search --start 1f1b --start soft-m.csv -o a.json -o m.csv",
        "search --pareto --start t.json -o t.json",
        "search -c c.yaml -o soft-m.csv --start hard-m.csv",
        "export m.csv --to json -o m.csv",
        "export 1f1b -c c.yaml --to json -o soft-c.yaml",
        "export m.csv --to json -o soft-m.csv",
        "profile -c c.yaml -o c.yaml",
        "profile -c c.yaml -o hard-c.yaml",
        "profile m.csv -o soft-c.yaml -c c.yaml",
        "run 1f1b -c c.yaml --trace c.yaml",
        "run m.csv --trace m.csv",
        "run m.csv --trace hard-m.csv",
        "run m.csv --model mine:model --trace mine.py",
        "run m.csv -o o.json --trace o.json",
        "run m.csv -o o.json --trace ./o.json",
        "simulate -o a.json -o a.json",
        "simulate -o a.json -o ../{here}/a.json",
        "compare -o t.json -o soft-t.json",
        f"{SEARCH} -o a.csv -o a.csv",
        "simulate m.csv -o m.torchtitan.sh -o m.torchtitan.csv",
        "export m.csv soft-m.csv",
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
        "export swapped.csv out.comms.csv",
        "export swapped.csv out.torchtitan.sh",
        "simulate swapped.csv -o out.csv",
        "simulate swapped.csv -o out.csv -o out.torchtitan.sh",
        "simulate swapped.csv --json -o out.comms.csv",
        "export swapped.csv --to torch-csv",
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
        "export out.csv again.csv",
        "simulate out.csv --json -o again.csv",
    ):
        code, out, err = run(command)
        assert (code, said in err, said[9:] in out) == (0, False, False)
    files = simulate("swapped.csv").save("out.csv")
    assert files.warnings[0].startswith(said[9:])
    assert files == (Path("out.csv"),)


ENDINGS = (".csv", ".json", ".png", ".svg", ".pdf", ".html", ".trace.json")


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


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("simulate -o a.svg -o b.json", "makespan"),
        ("compare -o a.svg -o b.json", "makespan"),
        ("explain -o a.svg -o b.json", "critical path"),
        (f"{SEARCH} -o a.svg -o b.json", "memory limit"),
        ("search -p 2 -m 2 --pareto --points 2 --evaluations 20 -o a.svg -o b.json", "memory against time"),
        ("diff plan.csv run.json -o a.svg -o b.html", "planned against measured"),
    ],
)
def test_an_output_that_fails_costs_neither_the_answer_nor_the_others(run, failing, line, shown):
    Path("plan.csv").write_text(PLAN)
    run("simulate plan.csv -o run.json")
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


def progress(value: float) -> SearchProgress:
    best = simulate("1f1b", ranks=2, microbatches=1).schedule
    return SearchProgress(value, 1.0, "", 1, 0.0, 0.0, lambda: best)


def test_the_best_so_far_is_kept_in_files_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeplan.extensions.search.commands.time.monotonic", iter(range(0, 100, 10)).__next__)
    pipe, file = tmp_path / "pipe.csv", tmp_path / "file.csv"
    os.mkfifo(pipe)
    keep = keep_best([pipe, tmp_path / "missing" / "a.csv", file])
    keep(progress(9.0))
    assert file.read_text() == PLAN
    file.unlink()
    keep(progress(9.0))
    assert not file.exists()
    keep(progress(8.0))
    assert file.read_text() == PLAN


QUICK_SEARCH = "search -p 4 -m 8 --evaluations 20 --no-visualization"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"{QUICK_SEARCH} --slices 2 -o x.csv", "x.csv cannot hold it: PyTorch's CSV does not support sequence slices"),
        (f"{QUICK_SEARCH} --placement wave -o x.torchtitan.sh", "this schedule's placement is wave"),
        (f"{QUICK_SEARCH} --placement bidirectional -o x.comms.csv", "a bidirectional placement has two"),
        (f"{QUICK_SEARCH} --placement linear -o x.zb.txt", "needs a V schedule"),
        (f"{QUICK_SEARCH} -o x.megatron.sh", "x.megatron.sh cannot hold it: Megatron-LM"),
        (
            f"{QUICK_SEARCH} --full-backward -o x.megatron.sh",
            "x.megatron.sh cannot hold it: search differs from the order that Megatron-LM generates",
        ),
    ],
)
def test_a_file_that_could_hold_no_answer_is_refused_before_the_search(run, monkeypatch, line, reason):
    monkeypatch.setattr(
        "pipeplan.extensions.search.answers.searches.best_placement", lambda *_, **__: pytest.fail("searched")
    )
    code, _, err = run(line)
    assert code == 2
    assert reason in err


RANKS = {"loop": [*range(4)] * 2, "v": [0, 1, 2, 3, 3, 2, 1, 0], "wave": [0, 1, 2, 3, 3, 2, 1, 0] * 2}


@pytest.mark.parametrize(("name", "placement"), [("x.torchtitan.sh", "loop"), ("x.zb.txt", "v"), ("x.json", "wave")])
def test_a_search_finds_what_its_file_can_hold(run, name, placement):
    code, out, err = run(f"{QUICK_SEARCH} -o {name} --json")
    assert code == 0, err
    assert json.loads(out)["placement"] == RANKS[placement]
    assert f"wrote {name}" in err


def test_a_sliced_schedule_is_no_answer_for_a_file_without_slices(run):
    line = "search -c gpt-6.2b-24 -p 4 -m 12 --memory-limit 8.8GiB --allow slices --evaluations 20 --no-visualization --json"
    assert json.loads(run(line)[1])["slices"] == 4
    code, out, _ = run(f"{line} -o x.csv")
    assert (code, json.loads(out)["slices"]) == (0, 1)
