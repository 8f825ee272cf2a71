"""Sizes of schedules, and names in one line of visible characters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.model import Timeline, parse_schedule
from pipeplan.model.values import LONGEST_NAME, MOST_FORWARDS, cell_width, counted, one_line, require_size, shortened


@pytest.mark.parametrize(
    ("counts", "rule"),
    [
        ({"ranks": 0}, "^ranks must be at least 1, not 0$"),
        ({"ranks": 10**9}, "^ranks must be at most 65,536, not 1,000,000,000$"),
        (
            {"ranks": 4, "chunks": 1, "microbatches": 10**7},
            "^4 ranks x 10000000 microbatches need 40,000,000 forwards;",
        ),
        (
            {"microbatches": 10**17, "slices": 2},
            "^100000000000000000 microbatches x 2 slices need 200,000,000,000,000,000",
        ),
        ({"slices": 2**15 + 1}, "^slices must be at most 32,768, not 32,769$"),
        ({"ranks": 2 << 99_999}, r"^ranks must be at most 65,536, not about 10\^30103$"),
        ({"chunks": 2 << 99_999}, r"^about 10\^30103 chunks need about 10\^30103 forwards"),
        ({"ranks": -(2 << 99_999)}, r"^ranks must be at least 1, not about -10\^30103$"),
    ],
)
def test_what_is_too_large_or_nothing(counts, rule):
    with pytest.raises(ShapeError, match=rule):
        require_size(**counts)


def test_what_is_planned():
    require_size(ranks=64, chunks=4, microbatches=1024)
    require_size(ranks=1, microbatches=MOST_FORWARDS)
    require_size(slices=2**15)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a$x$b [red]<b>", "a$x$b [red]<b>"),
        ("größe 模型 🚀", "größe 模型 🚀"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[31m\x07\x00", r"\x1b[31m\x07\x00"),
        ("\u202etxet\u2028\ufeff", r"\u202etxet\u2028\ufeff"),
        ("non\u00a0breaking", "non\u00a0breaking"),
        ("half \udcff", r"half \udcff"),
    ],
)
def test_what_cannot_be_seen_stands_by_its_number(name, shown):
    assert one_line(name) == shown


@given(st.text())
def test_any_name_is_one_line_that_can_be_written(name):
    shown = one_line(name)
    assert len(f"{shown}.".splitlines()) == 1
    shown.encode()


@pytest.mark.parametrize(
    ("text", "cells", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "ab…ef"),
        ("模型abc", 6, "模…bc"),
        ("模型", 3, "…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_what_does_not_fit_is_left_out(text, cells, shown):
    assert shortened(text, cells) == shown
    assert cell_width(shown) <= cells


def test_signs_have_their_widths():
    assert [cell_width(text) for text in ("abc", "模型", "e\u0301", "🚀")] == [3, 4, 1, 2]


def test_one_is_no_plural():
    texts = [counted(count, noun) for count, noun in ((1, "chunk"), (0, "chunk"), (2048, "chunk"), (8, "microbatch"))]
    assert texts == ["1 chunk", "0 chunks", "2,048 chunks", "8 microbatches"]


def test_what_nobody_reads_to_its_end_is_refused():
    schedule = parse_schedule("0F0 0B0")
    assert schedule.renamed("x" * LONGEST_NAME).name
    with pytest.raises(InputError, match="the name of a schedule has 1,000,000 characters; at most 1,000 are allowed"):
        schedule.renamed("x" * 1_000_000)
    with pytest.raises(InputError, match="a unit of time has 1,001 characters"):
        Timeline(schedule, np.array([0.0, 1.0]), np.array([1.0, 2.0]), "s" * 1_001)
