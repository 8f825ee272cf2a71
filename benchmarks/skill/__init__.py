"""Twenty questions that users ask an agent with pipeplan, to measure what its skill (``skills/pipeplan``) is worth.

``python -m benchmarks.skill --write FOLDER`` writes the files of the questions and ``answers.yaml``, a form for the agent.
``python -m benchmarks.skill FOLDER/answers.yaml`` compares the filled-in form with what pipeplan computes now, and prints
the score: numbers within 1%, names exactly, lists in any order.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from benchmarks.questions import answer_of, value_of

TOLERANCE = 0.01
"""Relative difference of numbers that count as equal."""


class SkillQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question, the command that answers it, and the answer as an expression over the command's JSON ``c``."""

    name: str
    question: str
    command: str
    answer: str
    files: dict[str, str] = {}


def questions() -> list[SkillQuestion]:
    """Return the questions."""
    return msgspec.yaml.decode((Path(__file__).parent / "questions.yaml").read_bytes(), type=list[SkillQuestion])


def write_files(chosen: list[SkillQuestion], folder: Path) -> None:
    """Write the files that the questions mention."""
    for question in chosen:
        for name, text in question.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


def right_answer(question: SkillQuestion) -> Any:
    """Return the answer that pipeplan computes now: a number, a name, or a list of them."""
    with TemporaryDirectory() as folder:
        write_files([question], Path(folder))
        return value_of(question.answer, {"c": answer_of(question.command, Path(folder))})


def form() -> str:
    """Return the form that an agent fills in: every question, and an empty answer by its name."""
    lines = ["# Replace each null by a number, a name, or a [list, of, names]."]
    for question in questions():
        lines += [f"# {question.question}", f"{question.name}: null"]
    return "\n".join([*lines, ""])


def agrees(right: Any, answer: Any) -> bool:
    """Return whether an answer is right; a text may have a unit behind its number, and a list may be text with commas."""
    if isinstance(right, list):
        items = re.split(r"[,\s]+", answer.strip()) if isinstance(answer, str) else answer
        return isinstance(items, list) and {_word(item) for item in items} == {_word(item) for item in right}
    if isinstance(right, int | float):
        number = re.match(r"-?[\d.]+(e-?\d+)?", json.dumps(answer).strip('"').replace(",", ""))
        return number is not None and abs(float(number[0]) - right) <= TOLERANCE * abs(right)
    return _word(answer) == _word(right)


def _word(value: Any) -> str:
    return str(value).strip().casefold()
