"""Every command that writes files: what an output cannot hold is refused before any work is done."""

import os
import re
from pathlib import Path

import pytest

from pipeplan.answers import output_endings
from pipeplan.cli.app import command_line

ENDINGS = output_endings()

FEW = (".csv", ".trace.json", ".png", ".html", ".json")

WAYS = {
    "compare": ("compare 1f1b gpipe -p 2 -m 2", "pipeplan.answers.comparison_of", ENDINGS),
    "diff": ("diff plan.csv run.json", "pipeplan.extensions.training.commands.differences", FEW),
    "search --pareto": (
        "search --pareto --points 2 -p 2 -m 2 --evaluations 20",
        "pipeplan.extensions.search.commands.front_found",
        FEW,
    ),
}
"""Ways of commands whose answer is not one schedule: a line, what it calls once it has found nothing to refuse, endings."""

WHOLE = {"simulate", "explain", "search", "export", "run"}
"""What answers with a schedule: all formats hold something of that, if they have words for it."""

OTHERS = {"plan", "profile", "calibrate", "estimate", "pareto", "review"}
"""Tested where their own endings are."""


class Worked(Exception):
    """Work was begun."""


@pytest.fixture
def _files(run):
    Path("plan.csv").write_text("0F0,0B0\n1F0,1B0\n")
    assert run("simulate plan.csv -o run.json")[0] == 0


@pytest.mark.needs("search", "planning", "review", "training", "web")
def test_every_command_that_writes_is_known_here():
    app = command_line()
    names = [name for name in app if not name.startswith("-") and name != "help"]
    writing = {name for name in names if "-o" in {each for one in _arguments(app, name) for each in one.names}}
    assert writing == {way.split()[0] for way in WAYS} | WHOLE | OTHERS


def _arguments(app, name):
    return app[name].assemble_argument_collection()


@pytest.mark.slow
@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("way", WAYS)
def test_what_an_output_cannot_hold_is_refused_before_work_and_the_rest_is_written(run, monkeypatch, way):
    def work(*_: object, **__: object) -> None:
        raise Worked

    line, place, endings = WAYS[way]
    before = sorted(os.listdir())
    with monkeypatch.context() as patched:
        patched.setattr(place, work)
        held = _choice(run(f"{line} -o a.trace.json"), "a.trace.json")
        for ending in set(endings) - {".trace.json", *held}:
            assert _choice(run(f"{line} -o a{ending}"), f"a{ending}") == held
        outputs = " ".join(f"-o held{ending}" for ending in held)
        assert "Worked" in run(f"{line} {outputs}")[2]
    assert sorted(os.listdir()) == before
    code, _, err = run(f"{line} {outputs}")
    assert code == 0, err
    assert all(Path(f"held{ending}").stat().st_size for ending in held)


def _choice(refused, name):
    """The endings to choose from where an output was refused."""
    code, out, err = refused
    assert (code, out) == (2, "")
    found = re.fullmatch(
        rf"pipeplan: {re.escape(name)} would hold .*: choose one of (.*)\n", err.replace("\n", " ").strip() + "\n"
    )
    assert found, err
    return found[1].split(", ")


@pytest.mark.needs("training")
@pytest.mark.parametrize("twice", ["o.json", "./o.json", "link.json", "../{here}/o.json"])
def test_a_run_keeps_its_outputs_apart(run, monkeypatch, twice):
    Path("link.json").symlink_to("o.json")
    monkeypatch.setattr("pipeplan.extensions.training.commands.trained", None)
    code, out, err = run(f"run -o o.json --trace {twice.format(here=Path.cwd().name)}")
    assert (code, out) == (2, "")
    assert "the same file" in err or "given twice" in err
