"""What commands say while they work."""

from collections.abc import Iterator

import pytest

from pipeplan.cli.progress import ProgressBar


@pytest.fixture
def seconds() -> Iterator[float]:
    return iter((0.0, 1.0, 6.0, 6.0, 11.5, 12.0, 12.0))


def test_without_a_terminal_a_line_is_told_now_and_then_never_twice_and_the_share_never_goes_back(capsys, seconds):
    bar = ProgressBar("starting up", quiet=False, every=5.0, clock=seconds.__next__)
    for share, said in ((0.1, "step 1"), (0.5, "step 5"), (0.4, "step 5"), (1.2, "step 7")):
        bar.show(share, said)
    bar.close()
    assert capsys.readouterr().err.splitlines() == ["step 5 (50%)", "step 7 (100%)"]


def test_nothing_is_said_where_the_answer_is_json(capsys, seconds):
    bar = ProgressBar("starting up", quiet=True, every=0.0, clock=seconds.__next__)
    bar.show(0.5, "step 5")
    bar.close()
    assert capsys.readouterr().err == ""
