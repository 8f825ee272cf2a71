"""Integer arithmetic of shell scripts, by recursive descent; nothing is evaluated by Python."""

from __future__ import annotations

import re
from collections.abc import Callable

_LONGEST = 400
"""Maximum number of characters of an expression."""

_LARGEST = 10**18


def computed(expression: str, value_of: Callable[[str], str | None]) -> int | None:
    """Return the value of an expression of integers, variables and ``+ - * / %``; None for any other.

    Parameters
    ----------
    value_of
        Text of a variable by its name; None if it is unknown.
    """
    words = re.findall(r"\d+|\$?\{?[A-Za-z_]\w*\}?|[-+*/%()]|\S", expression)
    if len(expression) > _LONGEST or "**" in expression:
        return None
    try:
        value = _sum(words, value_of)
        return value if not words and abs(value) <= _LARGEST else None
    except (ValueError, ZeroDivisionError, IndexError, RecursionError):
        return None


def _sum(words: list[str], value_of: Callable[[str], str | None]) -> int:
    value = _product(words, value_of)
    while words and words[0] in "+-":
        value += _product(words, value_of) if words.pop(0) == "+" else -_product(words, value_of)
    return value


def _product(words: list[str], value_of: Callable[[str], str | None]) -> int:
    value = _factor(words, value_of)
    while words and words[0] in "*/%":
        operator, right = words.pop(0), _factor(words, value_of)
        value = value * right if operator == "*" else int(value / right) if operator == "/" else value % right
    return value


def _factor(words: list[str], value_of: Callable[[str], str | None]) -> int:
    word = words.pop(0)
    if word == "(":
        value = _sum(words, value_of)
        if words.pop(0) != ")":
            raise ValueError(word)
        return value
    if word == "-":
        return -_factor(words, value_of)
    if word.isdigit():
        return int(word[:19])
    text = value_of(word.strip("${}"))
    if text is None:
        raise ValueError(word)
    return int(text[:19])
