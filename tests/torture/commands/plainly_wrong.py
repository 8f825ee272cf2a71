"""Values that no option of their kind can be: a command that takes one has read it as something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tests.torture.commands.options import Option, commands, options_of
from tests.torture.forked import Ran
from tests.torture.suite import Found

_WHOLE = re.compile(r"[+-]?[0-9]+")
_ANSWERED_FIRST = {"-h", "--help", "--version", "--"}


def judge_plainly_wrong(ran: Ran) -> None:
    """Raises Found where what was given for a whole number, or for a number, is none, and was not refused."""
    if ran.arguments[:1] and ran.arguments[0] in commands() and not _ANSWERED_FIRST.intersection(ran.arguments):
        for option, value in _given_once(ran.arguments):
            if ran.code in (0, 1) and _is_wrong(option, value):
                raise Found(f"exit code {ran.code}, and {option.names[0]} was given {value!r}: {ran.line}")


def _given_once(line: Sequence[str]) -> Iterator[tuple[Option, str]]:
    """Options that the line says once, as ``--name=value``: which words belong to others is the parser's to say."""
    for option in options_of(line[0]):
        said = [word for word in line if word.partition("=")[0] in option.names]
        if len(said) == 1 and said[0].startswith("--") and "=" in said[0]:
            yield option, said[0].partition("=")[2]


def _is_wrong(option: Option, value: str) -> bool:
    if option.many or option.choices:
        return False
    if option.kind == "int":
        return _WHOLE.fullmatch(value.strip()) is None
    return option.kind == "float" and value.strip().lower().lstrip("+-") in {"nan", "two", "none", ".", "e5"}
