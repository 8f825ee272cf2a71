"""Values that no option of their kind can be: a command that takes one has read it as something else."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from tests.torture.commands.options import Option, commands, options_of
from tests.torture.forked import Ran
from tests.torture.suite import Found

_WHOLE = re.compile(r"[+-]?[0-9]+")
_WRONG = {
    "int": ("1.5", "2.0", "0.5", "1e1", "two", "nan", "inf", "1/2", "0x2", ".", ""),
    "float": ("nan", "-nan", "two", "none", ".", "e5"),
}
_ANSWERED_FIRST = {"-h", "--help", "--version", "--"}


def judge_plainly_wrong(ran: Ran) -> None:
    """Raises Found where what was given for a whole number, or for a number, is none, and was not refused."""
    if ran.arguments[:1] and ran.arguments[0] in commands() and not _ANSWERED_FIRST.intersection(ran.arguments):
        for option, value in _given_once(ran.arguments):
            if ran.code in (0, 1) and _is_wrong(option, value):
                raise Found(f"exit code {ran.code}, and {option.names[0]} was given {value!r}: {ran.line}")


def with_a_wrong_value(line: Sequence[str], luck: random.Random) -> list[str]:
    """A line with one option more, or said otherwise, that is plainly wrong; as it is where the command has none."""
    known = [each for each in options_of(line[0]) if each.kind in _WRONG and _can_be_wrong(each)]
    if not known:
        return list(line)
    option = luck.choice(known)
    name = next(name for name in option.names if name.startswith("--"))
    return [*without(line, option, options_of(line[0])), f"{name}={luck.choice(_WRONG[option.kind])}"]


def without(line: Sequence[str], option: Option, options: Sequence[Option]) -> list[str]:
    """A line without what it says of an option."""
    left = list(line)
    known = {name for each in options for name in each.names}
    for name in option.names:
        while name in left:
            at = left.index(name)
            end = at + 1
            while option.kind != "bool" and end < len(left) and left[end] not in known:
                end += 1
            del left[at:end]
    return left


def _can_be_wrong(option: Option) -> bool:
    return bool(option.names) and not option.many and not option.choices


def _given_once(line: Sequence[str]) -> Iterator[tuple[Option, str]]:
    """Options that the line says once, as ``--name=value``: which words belong to others is the parser's to say."""
    for option in options_of(line[0]):
        said = [word for word in line if word.partition("=")[0] in option.names]
        if len(said) == 1 and said[0].startswith("--") and "=" in said[0]:
            yield option, said[0].partition("=")[2]


def _is_wrong(option: Option, value: str) -> bool:
    if not _can_be_wrong(option):
        return False
    if option.kind == "int":
        return _WHOLE.fullmatch(value.strip()) is None
    return option.kind == "float" and value.strip().lower() in _WRONG["float"]
