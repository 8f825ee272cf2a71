import io
from pathlib import Path

import pytest
from hypothesis import given

import pipeplan
from pipeplan.formats import read_standard_input, rows_of
from pipeplan.formats.rows import parse_rows
from pipeplan.foundation.errors import FormatError, InputError
from pipeplan.model import Schedule, format_schedule
from tests.formats.schedules import schedules

PLAN = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n"


@given(schedules())
def test_reader_and_writer_undo_each_other(schedule):
    assert parse_rows(format_schedule(schedule)) == schedule


@pytest.mark.parametrize(
    "text",
    [
        PLAN.replace("\n", "\r\n"),
        PLAN.replace("\n", "\r"),
        PLAN.replace(" ", ", "),
        PLAN.replace(" ", "\t"),
        PLAN.replace(" ", "\u00a0"),
        f"\ufeff\n\n{PLAN}\n\n",
        PLAN.replace("\n", "  \n\n"),
    ],
)
def test_what_people_paste(text):
    assert format_schedule(parse_rows(text)) == PLAN.strip()


def test_rows_that_hold_nothing_are_rows_where_their_number_is_known():
    assert rows_of("0F0\n\n1F0\n").lines == [0, 2]
    assert rows_of("0F0\n\n1F0\n", ranks=3).cells == [["0F0"], [], ["1F0"]]
    assert rows_of("0F0\n\n", ranks=3).lines == [0, 1, 2]
    assert rows_of("\n0F0\n", ranks=1).lines == [1]


@pytest.mark.parametrize("text", ["", "\n \n", "0F0 nonsense", "0F0 0F0 0B0", "0F0.99999 0B0.99999"])
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(FormatError, match="plan: "):
        parse_rows(text, name="plan")


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (b"", FormatError, "standard input is empty"),
        (b"0F0,\xfc", FormatError, "standard input is not text: byte 4 is not UTF-8"),
        (b"[" * 9, FormatError, "stdin.json"),
        (b"0F0 0X0", FormatError, "stdin.txt: rank 0, cell 1"),
        (b"{}", InputError, "stdin.json"),
    ],
)
def test_standard_input_that_is_no_schedule_is_refused(content, error, says):
    with pytest.raises(error, match=says):
        read_standard_input(io.BytesIO(content))


PRINTED = """\
        Rank 0 Rank 1
Step 0: 0F0
Step 1: 0F1    1F0
Step 2:        1B0
Step 3: 0B0    1F1    <-- ERROR HERE
Step 4:        1B1
Step 5: 0B1
"""


def test_orders_that_pytorch_prints_are_read(tmp_path: Path):
    expected = parse_rows(PLAN)
    steps = PRINTED.split("\n", 1)[1]
    full = "Step 00: 0F0  1F0\nStep 01: 0B0  1B0\n"
    for text in (PRINTED, steps, f"AssertionError: Rank 1, step 3: no\n\nFull pipeline schedule:\n{PRINTED}"):
        assert parse_rows(text) == expected
        assert parse_rows(text.replace("\n", "\r\n")) == expected
    assert parse_rows("".join(f"[rank0]: {line}\n" for line in PRINTED.splitlines())) == expected
    # Every rank prints the order, and their lines mix.
    assert parse_rows(PRINTED + PRINTED) == expected
    assert (
        parse_rows("".join(f"[rank{rank}]: {line}\n" for line in PRINTED.splitlines() for rank in (0, 1))) == expected
    )
    assert parse_rows(full) == parse_rows(full.replace("  ", "     ")) == parse_rows("0F0 0B0\n1F0 1B0")
    for name in ("a.txt", "a.csv", "a.rows.txt", "a.log"):
        (tmp_path / name).write_text(PRINTED)
        assert pipeplan.simulate(tmp_path / name).makespan == 9
        assert pipeplan.check(tmp_path / name).valid
    for text in (PRINTED, f"[rank0]: {full}", PLAN, PLAN.replace(" ", ","), "\ufeff" + PLAN):
        content = read_standard_input(io.BytesIO(text.encode()))
        assert isinstance(content, Schedule)
        assert content.name == "stdin"


def test_an_order_that_pytorch_printed_is_judged_by_its_rules(tmp_path: Path):
    swapped = PRINTED.replace("0F0", "0F9").replace("0F1", "0F0").replace("0F9", "0F1").replace("1F0", "1F1")
    (tmp_path / "printed.txt").write_text(swapped.replace("1B0", "1B1").replace("3: 0B0    1F1", "3: 0B1    1F0"))
    (tmp_path / "rows.txt").write_text("0F1 0F0 0B1 0B0\n1F1 1B1 1F0 1B0")
    assert [pipeplan.check(tmp_path / name).valid for name in ("printed.txt", "rows.txt")] == [False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PRINTED.replace("Step 3", "Step 4"), "has step 4 where step 3 is expected"),
        (PRINTED.replace("Rank 0 Rank 1", "Rank 0 Rank 1 Rank 2"), "has 3 ranks, but ops in 2 columns"),
        ("Step 0: nonsense\n", "nonsense"),
        (f"{PRINTED}{PRINTED.replace('1B1', '1B0')}", "several printed orders: step 4 is there with other ops"),
    ],
)
def test_a_printed_order_that_lost_something_is_refused(text: str, message: str):
    with pytest.raises(FormatError, match=f"plan: .*{message}"):
        parse_rows(text, name="plan")
