"""Every command that writes files: what an output cannot hold is refused before any work is done."""

import os
from pathlib import Path

import pytest

from pipeplan.api import output_endings
from pipeplan.cli.app import command_line

ENDINGS = output_endings()

FEW = (".csv", ".trace.json", ".png", ".html", ".json")

WAYS = {
    "compare": ("compare 1f1b gpipe -p 2 -m 2", "pipeplan.api.compare", ENDINGS),
    "diff": ("diff plan.csv run.json", "pipeplan.api.diff", FEW),
    "search --pareto": ("search --pareto --points 2 -p 2 -m 2 --evaluations 20", "pipeplan.cli.search.pareto", ENDINGS),
    "search --steady-state": ("search --steady-state -p 2 -m 2", "pipeplan.cli.search.steady_state", FEW),
}
"""Ways of commands whose answer is not one schedule: a line, what it calls once it has found nothing to refuse, endings."""

WHOLE = {"simulate", "explain", "search", "export", "run"}
"""What answers with a schedule: all formats hold something of that, if they have words for it."""

OTHERS = {"plan", "profile", "estimate"}
"""Tested where their own endings are."""


class Worked(Exception):
    """Work was begun."""


@pytest.fixture
def _files(run):
    Path("plan.csv").write_text("0F0,0B0\n1F0,1B0\n")
    assert run("simulate plan.csv -o run.json")[0] == 0


def test_every_command_that_writes_is_known_here():
    app = command_line()
    names = [name for name in app if not name.startswith("-") and name != "help"]
    writing = {name for name in names if "-o" in {each for one in _arguments(app, name) for each in one.names}}
    assert writing == {way.split()[0] for way in WAYS} | WHOLE | OTHERS


def _arguments(app, name):
    return app[name].assemble_argument_collection()


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("way", WAYS)
def test_what_an_output_cannot_hold_is_refused_before_work_and_the_rest_is_written(run, monkeypatch, way):
    def work(*_: object, **__: object) -> None:
        raise Worked

    line, place, endings = WAYS[way]
    held, before = [], sorted(os.listdir())
    with monkeypatch.context() as patched:
        patched.setattr(place, work)
        for ending in endings:
            code, out, err = run(f"{line} -o a{ending}")
            assert (code, out) == (2, "")
            if "Worked" in err:
                held.append(ending)
            else:
                assert f"a{ending} would hold " in err
    assert sorted(os.listdir()) == before
    assert set(held) < set(endings)
    if way != "search --steady-state":
        outputs = [f"held{ending}" for ending in held]
        code, _, err = run(f"{line} {' '.join(f'-o {name}' for name in outputs)}")
        assert code == 0, err
        assert all(Path(name).stat().st_size for name in outputs)


@pytest.mark.parametrize("twice", ["o.json", "./o.json", "link.json", "../{here}/o.json"])
def test_a_run_keeps_its_outputs_apart(run, monkeypatch, twice):
    Path("link.json").symlink_to("o.json")
    monkeypatch.setattr("pipeplan.api.run", None)
    code, out, err = run(f"run -o o.json --trace {twice.format(here=Path.cwd().name)}")
    assert (code, out) == (2, "")
    assert "one file" in err or "given twice" in err
