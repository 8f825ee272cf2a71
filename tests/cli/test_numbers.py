"""No option of any command takes a number that cannot be; the options are those that the commands say they have."""

import json
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import pytest
from cyclopts import CycloptsError, Token
from cyclopts.argument import Argument

import pipeplan
from pipeplan.cli import main
from pipeplan.cli.app import command_line
from pipeplan.cli.options import from_words
from pipeplan.foundation.errors import InputError

COMMANDS = command_line()

NO_WHOLE_NUMBERS = ("1.5", "1e3", "1_000", " 1", "１", "inf", "-1", "9" * 30, "9" * 5000, "")
NO_NUMBERS = ("nan", "inf", "-inf", "1e308", "-1", "1_000", "１", "10**30", "9" * 400, "", "x")
NO_PATHS = ("", "x" * 300, "a\0b", "missing/", "/".join(["x" * 200] * 30))


def _held(hint: Any) -> Any:
    """What an option holds: ``int`` of ``int | None`` and of ``tuple[int, ...]``."""
    plain = [each for each in get_args(hint) if each not in (NoneType, ...)]
    return _held(plain[0]) if plain and hint not in (int, float, Path) and len(plain) == 1 else hint


@cache
def _arguments(held: type) -> Mapping[tuple[str, str], Argument]:
    """Every option that holds such values, by its command and its name."""
    return {
        (command, argument.names[0]): argument
        for command in COMMANDS
        if not command.startswith("-")
        for argument in COMMANDS[command].assemble_argument_collection()
        if _held(argument.hint) is held
    }


def _refused(held: type, word: str) -> dict[tuple[str, str], str]:
    """What is said of a word where it stands for such a value, by command and option."""
    return {place: _message(place, argument, word) for place, argument in _arguments(held).items()}


def _message(place: tuple[str, str], argument: Argument, word: str) -> str:
    argument = copy(argument)
    argument.tokens = []
    argument.append(Token(keyword=place[1], value=word))
    try:
        taken = argument.convert(from_words)
    except (InputError, CycloptsError) as error:
        return str(error)
    raise AssertionError(f"{' '.join(place)} '{word[:20]}' is taken as {taken}")


def test_there_are_options_to_try():
    assert {("serve", "--port"), ("run", "--steps"), ("simulate", "--ranks"), ("export", "--data-parallel")} <= {
        *_arguments(int)
    }
    assert {("run", "--timeout"), ("search", "--seconds"), ("simulate", "--static-bytes")} <= {*_arguments(float)}
    assert {("simulate", "--output"), ("plan", "--store"), ("profile", "--source")} <= {*_arguments(Path)}


def test_no_option_takes_what_is_no_whole_number():
    for word in NO_WHOLE_NUMBERS:
        assert max(map(len, _refused(int, word).values())) < 200, word


def test_no_option_takes_what_is_no_number():
    for word in NO_NUMBERS:
        assert max(map(len, _refused(float, word).values())) < 200, word


@pytest.mark.parametrize("word", NO_PATHS)
def test_no_option_takes_what_can_be_no_file(word):
    assert max(map(len, _refused(Path, word).values())) < 300


def test_limits_are_known_before_any_work(run):
    for line, said in {
        "run --steps 0": "steps must be at least 1, not 0",
        "run --timeout inf": "timeout must be at most 31,536,000, not inf",
        "run --seed -1": "seed must be at least 0, not -1",
        "profile --repeats 1.5": "--repeats: invalid integer '1.5': expected a whole number such as 4",
        "simulate -c missing/": "-c missing/ ends in a path separator, but there is no such folder",
        "convert x.csv/ y.csv": "the schedule's file x.csv/ ends in a path separator, but there is no such folder",
        "serve --port 99999": "port must be at most 65,535, not 99,999",
    }.items():
        assert run(line) == (2, "", f"pipeplan: {said}\n")


WRONG: tuple[object, ...] = ("a", True, float("inf"), -1, {}, b"1")

NUMBERS: dict[Callable[..., object], tuple[str, ...]] = {
    pipeplan.run: ("steps", "warmup", "threads", "seed", "timeout"),
    pipeplan.profile: ("repeats", "threads", "seed", "timeout", "microbatch_size"),
    pipeplan.search: ("seconds", "evaluations", "seed", "workers"),
    pipeplan.pareto: ("points", "seconds", "evaluations", "seed", "workers"),
    pipeplan.simulate: ("ranks", "microbatches", "p2p_time", "step_time"),
}

FRACTIONS = {"timeout", "seconds", "p2p_time", "step_time"}


@pytest.mark.parametrize("function", NUMBERS)
def test_python_refuses_the_same_in_a_sentence(function):
    for name in NUMBERS[function]:
        for value in (*WRONG, *(() if name in FRACTIONS else (1.5, 4.0, 10**30))):
            with pytest.raises(InputError, match=name.replace("_", "[_ ]")) as caught:
                function(**{name: value})
            assert caught.value.field == name


@pytest.mark.parametrize(
    "line", ["-f|1, 2", "-f|1,2", "--activation-bytes|1 GiB, 2GiB", "--activation-bytes|1GiB,2GiB"]
)
def test_a_list_in_quotes_may_have_blanks_behind_its_commas(capsys, line):
    assert main(["simulate", "-p", "2", "-m", "2", "--no-visualization", "--json", *line.split("|")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["makespan"] == 15) == line.startswith("-f")
    assert (found["peak_bytes"] is None) == line.startswith("-f")
