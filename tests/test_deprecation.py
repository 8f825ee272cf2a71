"""What is deprecated works, and says once, to whom it concerns, what to use: in Python, on the command line, in a file."""

import re
import warnings
from pathlib import Path

import pytest

import pipeplan
from pipeplan import deprecation
from pipeplan.api.searching.problems import choices_of
from pipeplan.cli import main
from pipeplan.costs import Settings, load_config
from pipeplan.deprecation import FULL_BACKWARD, KEYS, NAMES, Deprecated, DeprecatedWarning, warn_of
from pipeplan.errors import InputError
from pipeplan.model import Schedule

SMALL = {"ranks": 2, "microbatches": 2, "evaluations": 5, "workers": 1}
RENAMED = Deprecated(old="ranks_in_line", new="ranks", since="0.2", until="0.4")
EVERY = [*NAMES.values(), FULL_BACKWARD, *KEYS.values()]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def test_a_renamed_function_is_there_and_blames_its_caller(tmp_path):
    path = tmp_path / "order.csv"
    pipeplan.save(pipeplan.simulate("1f1b", ranks=2, microbatches=2).schedule, path)
    with pytest.warns(DeprecatedWarning, match="read_schedule is deprecated since .* use pipeplan.read") as told:
        read = pipeplan.read_schedule
    assert isinstance(read(path), Schedule)
    assert told[0].filename == __file__
    assert "read_schedule" not in dir(pipeplan)


@pytest.mark.parametrize("call", [pipeplan.search, pipeplan.pareto, pipeplan.steady_state])
def test_a_renamed_argument_does_what_the_new_one_does(call):
    asked = {key: value for key, value in SMALL.items() if call is not pipeplan.steady_state or key != "evaluations"}
    more = {"seconds": 0.05, "most": 1} if call is pipeplan.steady_state else {}
    with pytest.warns(DeprecatedWarning, match=r"full_backward=True is deprecated .*; use leave=\"split\"$") as told:
        old = call(full_backward=True, **asked, **more)
    assert (len(told), told[0].filename) == (1, __file__)
    new = call(leave="split", **asked, **more)
    if call is pipeplan.search:
        assert old.schedule == new.schedule


def test_what_contradicts_a_renamed_argument_is_refused():
    with pytest.warns(DeprecatedWarning), pytest.raises(InputError, match="leave no backward to split"):
        choices_of("split", (), full_backward=True)


def test_a_renamed_option_is_told_of_once_in_the_words_of_the_command_line(capsys):
    words = ["search", "-p", "2", "-m", "2", "--evaluations", "5", "--workers", "1", "--json"]
    for options, told in ((["--full-backward"], 1), (["--leave", "split"], 0), (["--full-backward", "--pareto"], 1)):
        assert main([*words, *options]) == 0
        out, err = capsys.readouterr()
        note = f"note: {FULL_BACKWARD.old_option} is deprecated since 0.1 and goes with 0.3; use --leave split\n"
        assert err.count(note) == err.count("deprecated") == told
        assert out.startswith("{")


def test_a_renamed_key_of_a_file_means_the_new_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(KEYS, "ranks_in_line", RENAMED)
    path = tmp_path / "config.yaml"
    path.write_text("ranks-in-line: 3\nmicrobatches: 3\n")
    with pytest.warns(DeprecatedWarning, match="ranks_in_line is deprecated since 0.2 and goes with 0.4; use ranks$"):
        assert load_config(path).settings["ranks"] == 3
    with pytest.warns(DeprecatedWarning):
        assert pipeplan.simulate("gpipe", ranks_in_line=3).schedule.ranks == 3  # type: ignore[call-arg]
    assert main(["simulate", "--config", str(path), "--json"]) == 0
    assert capsys.readouterr().err.count("note: ranks_in_line is deprecated") == 1


def test_other_warnings_and_filters_are_left_alone(capsys):
    before, show = warnings.filters[:], warnings.showwarning
    assert main(["search", "-p", "1", "--evaluations", "1", "--full-backward", "--json"]) == 0
    assert (warnings.filters[:], warnings.showwarning) == (before, show)
    with pytest.raises(DeprecatedWarning):
        warn_of(RENAMED)


@pytest.mark.parametrize("about", EVERY, ids=lambda about: about.old)
def test_a_deprecation_lasts_for_a_version_at_least_and_ends(about):
    """Two minor versions apart, so that one whole version has both; when its time has come this fails."""
    (major, since), (other, until) = numbers(about.since), numbers(about.until)
    assert other > major or until >= since + 2
    assert numbers(pipeplan.__version__) < numbers(about.until), f"{about.old} was to go with {about.until}"


def test_the_names_of_the_first_simulator_stay(tmp_path):
    path = tmp_path / "older.yaml"
    path.write_text(
        "num_stages: 4\nnum_batches: 8\nforward_times: 1\nbackward_times: 2\np2p_time: 0\noutput_file: x.png\n"
    )
    config = load_config(path)
    assert Settings(**config.settings).stages == 4
    assert config.output == ("x.png",)
    names = {"num_stages", "num_batches", "forward_times", "backward_times", "p2p_time", "output_file"}
    assert names.isdisjoint(KEYS)


def test_what_is_deprecated_is_in_the_changelog():
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
    assert [
        about.old
        for about in EVERY
        if not re.search(rf"(?i)deprecated[^\n]*\n?[^\n]*{re.escape(about.old.partition('=')[0])}", text)
    ] == []
    assert deprecation.__doc__
