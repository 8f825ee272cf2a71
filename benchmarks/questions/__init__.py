"""Questions that people asked in public issue threads, each with the commands that answer it and checks of the answer.

``python -m benchmarks.questions`` answers all of them, or those whose names are given, and prints what each check compares.
The ``*.yaml`` files hold the questions; ``unanswered.yaml`` holds those that pipeplan cannot answer, with the reason.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pipeplan.cli import main

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]

UNANSWERED = FOLDER / "unanswered.yaml"


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question with its answer.

    Attributes
    ----------
    name
        Short name.
    question
        The question, in our own words.
    thread
        Issue or pull request in which it was asked, as ``owner/repository#number``.
    commands
        Command lines that answer it, by name.
    checks
        Conditions on the answers, such as ``small.makespan > 1.3 * large.makespan``: Python expressions over the JSON of the
        commands. An item of a list is named by its number, or by its schedule (``all.results['zbv']``).
    answer
        The answer in words, with the numbers that the checks hold.
    files
        Files that the commands read, by name; ``$ROOT`` in them is the repository.
    """

    name: str
    question: str
    thread: str
    commands: dict[str, str]
    checks: list[str]
    answer: str
    files: dict[str, str] = {}


class UnansweredQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question that pipeplan cannot answer, and the reason.

    ``absent`` is a pattern of the commands and options that would answer it, none of which exists. The commands are the
    nearest to it, on the files of somebody who asks it, and the checks hold as long as their answers say nothing about it.
    """

    question: str
    thread: str
    reason: str
    absent: str
    commands: dict[str, str]
    checks: list[str]
    files: dict[str, str] = {}


def questions() -> list[Question]:
    """Return the questions with an answer, in the order of their files."""
    return [
        question
        for path in sorted(FOLDER.glob("*.yaml"))
        if path != UNANSWERED
        for question in msgspec.yaml.decode(path.read_bytes(), type=list[Question])
    ]


def unanswered() -> list[UnansweredQuestion]:
    """Return the questions without an answer."""
    return msgspec.yaml.decode(UNANSWERED.read_bytes(), type=list[UnansweredQuestion])


class Fields(dict[str, Any]):
    """JSON object whose fields are attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class Items(list[Any]):
    """JSON list whose items are also found by their schedule, name or id."""

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        return next(item for item in self if key in (item.get("schedule"), item.get("name"), item.get("id")))


def viewed(value: Any) -> Any:
    """Return a JSON value as checks read it."""
    if isinstance(value, dict):
        return Fields({name: viewed(item) for name, item in value.items()})
    return Items(map(viewed, value)) if isinstance(value, list) else value


def answers_to(question: Question | UnansweredQuestion, folder: Path) -> dict[str, Any]:
    """Run the commands of a question in a folder, and return their answers by name: JSON, or text for an export."""
    for name, text in question.files.items():
        (folder / name).write_text(text.replace("$ROOT", str(ROOT)), encoding="utf-8")
    return {name: answer_of(line, folder) for name, line in question.commands.items()}


def answer_of(line: str, folder: Path) -> Any:
    """Run a command line in a folder, and return its answer: JSON, or text for an export."""
    with contextlib.chdir(folder):
        return _answer(shlex.split(line))


def _answer(words: list[str]) -> Any:
    printed, messages = io.StringIO(), io.StringIO()
    exports = words[0] == "export"
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(messages):
        main([*words, *([] if exports else ["--json"])])
    if not printed.getvalue():
        return Fields(error=messages.getvalue().strip())
    return printed.getvalue() if exports and "json" not in words else viewed(json.loads(printed.getvalue()))


_FUNCTIONS = {function.__name__: function for function in (abs, all, any, len, max, min, next, range, round, sum, zip)}


def value_of(expression: str, answers: Mapping[str, Any]) -> Any:
    """Return the value of an expression over answers."""
    return eval(expression, {"__builtins__": _FUNCTIONS, **answers})


def holds(check: str, answers: Mapping[str, Any]) -> bool:
    """Return whether a condition holds; it does not if an answer lacks a field that it names."""
    try:
        return bool(value_of(check, answers))
    except (LookupError, StopIteration, TypeError):
        return False


_SHOWN = 100
"""Maximum length of a value that is printed."""


def values_in(check: str, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a condition compares: the value of each field of an answer in it."""
    values: dict[str, Any] = {}
    for node in ast.walk(ast.parse(check, mode="eval")):
        if isinstance(node, ast.Attribute | ast.Subscript):
            text = ast.unparse(node)
            with contextlib.suppress(Exception):
                value = value_of(text, answers)
                if len(str(value)) < _SHOWN and not callable(value):
                    values[text] = value
    return values
