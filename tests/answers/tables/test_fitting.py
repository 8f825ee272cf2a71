"""Tables on lines of any length: what is shown is whole, and what is left out is named."""

import io
import re

import pytest
from rich.console import Console, RenderableType

from pipeplan.answers.parts import columns, facts

ROWS = [("interleaved-1f1b-overlap", "26.8", "14.9%", "70.5 GiB"), ("zbv", "25.5", "5.9%", "4.0 GiB")]


def shown(part: RenderableType, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as captured:
        console.print(part)
    return captured.get()


def table() -> RenderableType:
    made = columns("schedule", "makespan\n(s)", "idle\ntotal", "peak", padding=1, least=["idle\ntotal"])
    for row in ROWS:
        made.add_row(*row)
    return made


@pytest.mark.parametrize(
    ("width", "missing"),
    [(80, None), (51, None), (40, "idle total, peak"), (48, None), (47, "idle total"), (33, "idle total, peak")],
)
def test_columns_are_left_out_whole_the_least_important_first(width, missing):
    text = shown(table(), width)
    assert max(map(len, text.splitlines())) <= width
    sentence = re.search(r"… no room for: (.*?)\s*$", " ".join(text.split()))
    assert (None if sentence is None else sentence[1]) == missing
    left_out = [] if missing is None else missing.split(", ")
    for heading, cells in zip(("makespan", "idle total", "peak"), list(zip(*ROWS, strict=True))[1:], strict=True):
        assert all((cell in text) == (heading not in left_out) for cell in cells)
    assert all(row[0] in text for row in ROWS)


def test_a_name_longer_than_most_of_a_line_is_folded():
    made = columns("schedule", "makespan")
    made.add_row("a" * 70, "26.8")
    text = shown(made, 40)
    assert text.count("a") - "schedule makespan".count("a") == 70
    assert "26.8" in text


def test_names_stand_before_what_they_are_where_both_do_not_fit_side_by_side():
    rows = [("bubble, of the longest span", "5.9%"), ("lower bound", "25.5 (the work of rank 3)")]
    wide, narrow = shown(facts(rows), 80), shown(facts(rows), 30)
    assert "bubble, of the longest span   5.9%" in wide
    assert "bubble, of the longest span: \n5.9%" in narrow or "bubble, of the longest span:" in narrow
    assert "(the work of" in narrow
    assert max(map(len, narrow.splitlines())) <= 30
