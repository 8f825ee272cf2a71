"""What commands say while they work."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from pipeplan.cli.progress import ProgressBar
from pipeplan.extensions.search import Published, SearchProgress
from pipeplan.extensions.search.commands import COMPILING, progress_line, progress_text
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import parse_schedule


def progress(published: Published | None) -> SearchProgress:
    plan = parse_schedule("0F0 0B0")
    return SearchProgress(2_115_000.0, 2_057_000.0, "", 1, 1.0, 0.5, lambda: plan, published)


def test_a_search_says_its_best_its_bound_and_what_it_has_to_beat():
    said = progress_text(progress(Published("v-half", 2_234_000.0)), "us")
    assert said == "best 2.115 s, -5.3% against v-half; bound 2.057 s, gap 2.8%"
    assert progress_text(progress(None), "us") == "best 2.115 s; bound 2.057 s, gap 2.8%"


def test_a_search_whose_kernels_are_compiled_says_what_it_waits_for(monkeypatch):
    # An earlier search of this process may still be compiling in the background.
    monkeypatch.setattr("pipeplan.foundation.kernels._BEING_COMPILED", set())
    told = []
    monkeypatch.setattr(ProgressBar, "show", lambda _, share, said: told.append(said.endswith(COMPILING)))
    with progress_line((), unit="us", quiet=True) as line:
        compiled = Kernel(lambda *_: line(progress(None)))
        line(progress(None))
        with patch("pipeplan.foundation.kernels.compile_loop", lambda function: function):
            compiled.compile((), ())
        line(progress(None))
    assert told == [False, True, False]


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
