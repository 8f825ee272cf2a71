"""Summaries of answers: which rows, texts and digits they have, and how they say what is missing."""

import json

from pipeplan.answers.parts import MOST_ROWS
from pipeplan.answers.summaries import MOST_BYTES, MOST_CHARACTERS, summary_of


def test_a_summary_has_the_headline_first_and_the_parts_at_its_paths():
    document = {"rows": [{"name": "a", "time": 1.5, "seed": 3}], "headline": "a is fast", "extra": 1, "none": None}
    summary = summary_of(document, "rows.name rows.time none absent")
    assert list(summary) == ["headline", "rows", "not_shown"]
    assert summary == {"headline": "a is fast", "rows": [{"name": "a", "time": 1.5}], "not_shown": "extra"}


def test_of_numbers_by_rank_a_summary_has_the_largest_with_six_digits():
    document = {"peaks": [1.0, 3.25000001], "time": 1234567.891, "share": 0.123456789, "count": 4.0}
    assert summary_of(document, "peaks time share count") == {
        "peaks": 3.25,
        "time": 1_234_568,
        "share": 0.123457,
        "count": 4,
    }


def test_of_a_long_list_a_summary_has_the_first_rows_and_says_so():
    rows = [{"name": f"row {number}"} for number in range(25)]
    summary = summary_of({"rows": rows}, "rows.name")
    assert summary == {"rows": rows[:MOST_ROWS], "not_shown": "15 of 25 rows"}


def test_of_long_rows_a_summary_has_fewer():
    rows = [{"text": "word " * 100} for _ in range(20)]
    summary = summary_of({"rows": rows}, "rows")
    assert 3 < len(summary["rows"]) < MOST_ROWS
    assert summary["not_shown"] == f"{20 - len(summary['rows'])} of 20 rows"
    assert all(row == rows[0] for row in summary["rows"])  # no text is cut
    assert len(json.dumps(summary, separators=(",", ":"))) <= MOST_BYTES


def test_a_long_text_is_left_out_whole():
    assert summary_of({"patch": "+" * MOST_CHARACTERS}, "patch") == {"patch": "+" * MOST_CHARACTERS}
    assert summary_of({"patch": "+" * (MOST_CHARACTERS + 1)}, "patch") == {"not_shown": "patch"}
