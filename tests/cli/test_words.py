"""Sentences about bad input, in ``words.txt``, and what is no fault.

Every sentence stands in one line, begins with ``pipeplan: `` in the shell, and has the exit code 2.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import pipeplan
from pipeplan.foundation.errors import InputError, PipeplanError


def rows_of(section: str) -> list[tuple[str, str]]:
    """Return the inputs of a section with their sentences."""
    text = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8")
    lines = text.partition(f"[{section}]\n")[2].partition("\n\n")[0].splitlines()
    rows = [line.partition(" => ")[::2] for line in lines if not line.startswith("#")]
    assert len(dict(rows)) == len(rows) > 4
    return rows


EXTENSION_OF = {
    "run": "training",
    "diff": "training",
    "profile": "training",
    "plan": "planning",
    "estimate": "planning",
    "calibrate": "planning",
    "review": "review",
    "search": "search",
    "pareto": "search",
    "serve": "web",
    "mcp": "web",
}
"""Extension of each command that the core does not have: the registry only knows those that are installed."""


def of_installed(line: str, *further: str) -> Any:
    """Return a row of a command line, which is skipped without the extension that has the command."""
    extension = EXTENSION_OF.get(line.split(maxsplit=1)[0])
    return pytest.param(line, *further, marks=[pytest.mark.needs(extension)] if extension else [])


def written(escaped: str) -> bytes:
    return escaped.encode("ascii").decode("unicode_escape").encode("latin-1")


@pytest.mark.parametrize(("line", "sentence"), [of_installed(*row) for row in rows_of("lines")])
def test_a_command_line_is_refused_with_its_remedy(run, line, sentence):
    Path("folder").mkdir()
    assert run(line) == (2, "", f"pipeplan: {sentence}\n")


@pytest.mark.parametrize(("file", "sentence"), rows_of("config files"))
def test_a_config_file_is_refused_with_its_place_and_remedy(run, file, sentence):
    name, _, content = file.partition(" ")
    Path(name).write_bytes(written(content))
    assert run(f"simulate -c {name}") == (2, "", f"pipeplan: {sentence}\n")


OF_PAIRS = [row for row in rows_of("config files") if any(name in row[0] for name in ("segments", "pair_", "overlap_"))]


@pytest.mark.parametrize(("file", "sentence"), OF_PAIRS)
def test_times_of_pairs_are_refused_in_python_with_the_sentence_of_the_file(file, sentence):
    with pytest.raises(PipeplanError) as caught:
        pipeplan.simulate(**yaml.safe_load(written(file.partition(" ")[2])))
    assert str(caught.value) == sentence.removeprefix("config file a.yaml: ")


@pytest.mark.parametrize(("content", "sentence"), rows_of("schedules in JSON"))
@pytest.mark.parametrize("command", [of_installed(name) for name in ("simulate", "check", "explain", "search --start")])
def test_a_json_file_that_is_not_a_schedule_is_named(run, command, content, sentence):
    Path("a.json").write_text(content)
    assert run(f"{command} a.json") == (2, "", f"pipeplan: {sentence}\n")


@pytest.mark.parametrize(("content", "sentence"), rows_of("schedules in CSV"))
def test_a_file_of_a_spreadsheet_is_refused_with_its_remedy(run, content, sentence):
    Path("a.csv").write_bytes(written(content))
    assert run("simulate a.csv") == (2, "", f"pipeplan: {sentence}\n")


@pytest.mark.parametrize(
    "content",
    [
        b"0F0,0B0\n1F0,1B0\n",
        b'"0F0","0B0"\r\n"1F0","1B0"\r\n',
        "\ufeff0F0,0B0\r\n1F0,1B0\r\n".encode(),
        "0F0,0B0\r\n1F0,1B0\r\n".encode("utf-16"),
    ],
)
def test_what_a_spreadsheet_may_add_to_a_schedule_changes_nothing(run, content):
    Path("a.csv").write_bytes(content)
    assert run("check a.csv")[:2] == (0, "a.csv is valid: 2 ranks, 2 stages (linear), 1 microbatch, 4 ops\n")


@pytest.mark.parametrize("size", ["12GiB", "12 GiB", "12gib", "12 gib", "12Gi", "12582912KiB", "12 GIB", "12884901888"])
def test_a_size_means_the_same_in_any_unambiguous_spelling(run, size):
    line = ["simulate", "-p", "2", "-m", "2", "--json", "--no-visualization"]
    expected = run(" ".join([*line, "--activation-bytes", "12GiB"]))
    assert run(" ".join([*line, "--activation-bytes", size])) == expected
    assert pipeplan.simulate("1f1b", ranks=2, microbatches=2, activation_bytes=size).peak_bytes == [
        24 * 2**30,
        12 * 2**30,
    ]
    Path("a.yaml").write_text(f"activation_bytes: {size}\n")
    assert run(" ".join([*line, "-c", "a.yaml"])) == expected


CALLS: tuple[tuple[Callable[[], Any], str], ...] = (
    (lambda: pipeplan.simulate(p2p_time="0,4"), "p2p_time: invalid number '0,4': use a decimal point, 0.4"),  # type: ignore[arg-type]
    (lambda: pipeplan.simulate(ranks="8k"), "ranks: invalid integer '8k': write all digits, 8000 or 8192"),  # type: ignore[arg-type]
    (
        lambda: pipeplan.simulate(static_bytes="12G"),
        "static_bytes: invalid size '12G': write 12GiB (binary) or 12GB (decimal)",
    ),
    (lambda: pipeplan.simulate(theme="drak"), "unknown setting 'theme'"),  # type: ignore[call-arg]
)
"""Calls in Python, and what is said of them: the sentence of the shell."""


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_a_call_is_refused_with_the_sentence_of_the_shell(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.needs("search")
def test_a_duration_of_a_search_is_refused_with_the_sentence_of_the_shell():
    with pytest.raises(InputError, match="seconds: invalid number '2m': write 120, in seconds"):
        pipeplan.search(seconds="2m")  # type: ignore[arg-type]
