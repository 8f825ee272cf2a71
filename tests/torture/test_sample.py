"""A few cases of every suite; ``make torture`` tries them for as long as it is given."""

import pytest

from tests.torture.commands import faults
from tests.torture.running import tried
from tests.torture.suites import SUITES


@pytest.mark.parametrize("suite", SUITES, ids=[suite.name for suite in SUITES])
def test_the_sample_finds_nothing(suite, monkeypatch, tmp_path):
    why = suite.needs()
    if why is not None:
        pytest.skip(why)
    monkeypatch.setenv("HOME", str(tmp_path))  # a suite may set it, which is undone
    verdicts = [tried(suite.name, seed) for seed in range(suite.sample)]
    assert [verdict.line for verdict in verdicts if verdict.fault is not None] == []


def test_what_no_command_may_do_is_found():
    last = "pipeplan: internal error: KeyError: 3"
    for ended, fault in {
        (2, "", last): "last resort",
        (2, "", "Traceback (most recent call last)"): "traceback",
        (3, "x", ""): "exit code 3",
        (2, "", ""): "without a word",
        (2, "", "a\n\nb"): "paragraphs",
        (0, '{"a": NaN}', ""): "not JSON",
        (0, '"\x1b[31m"', ""): "the output holds",
    }.items():
        assert any(fault in each for each in faults(["simulate", "--json"], *ended))
    assert faults(["simulate", "--json"], 0, "{}", "a note\n") == []
