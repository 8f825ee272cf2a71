"""Pages write numbers as everything else does: the cases that vitest holds the pages to are those of `readable`."""

import json
from pathlib import Path

from pipeplan.foundation.readable import Times, change, percent

CASES = json.loads((Path(__file__).parents[4] / "web_ui" / "tests" / "readable.json").read_text())


def test_times_are_written_as_on_pages():
    for case in CASES["times"]:
        form = Times.of(case["values"], case["unit"])
        assert [form.text(value) for value in case["values"]] == case["texts"]


def test_shares_and_changes_are_written_as_on_pages():
    assert [percent(share) for share, _ in CASES["percents"]] == [text for _, text in CASES["percents"]]
    assert [change(share) for share, _ in CASES["changes"]] == [text for _, text in CASES["changes"]]
