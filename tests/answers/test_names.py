"""Names are text in tables, whatever a terminal or rich would take them for."""

import io

import pytest
from rich.console import Console

import pipeplan
from pipeplan.model import Schedule, one_line, parse_schedule
from tests.names import ODD

SEEN = ["a$x$b", "[bold]x[/bold]", "[red]", ":smile:", "[/]", "&amp;"]


def named(name: str) -> Schedule:
    return parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1", name=name)


@pytest.mark.parametrize("name", [*SEEN, *ODD])
def test_answers_show_a_name_in_one_line(name, capsys):
    schedule = named(name)
    for answer in (
        pipeplan.simulate(schedule, time_unit="[red]\n"),
        pipeplan.compare(schedule, "1f1b", ranks=2, microbatches=2, time_unit="[red]\n"),
        pipeplan.explain(schedule),
    ):
        answer.print()
        out = capsys.readouterr().out
        shown = "".join(out.split())
        assert "".join(one_line(name)[:40].split()) in shown
        assert all(sign.isprintable() or sign in "\n\u200d" for sign in out)


@pytest.mark.parametrize("name", SEEN)
def test_a_terminal_that_takes_colors_gets_the_same(name, monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **options: Console(file=file, force_terminal=True, width=120, color_system="truecolor", **options),
    )
    pipeplan.compare(named(name), "1f1b", ranks=2, microbatches=2).print()
    assert name in file.getvalue()
