"""Syntax errors of JSON, YAML and TOML as one sentence: line, column, what is wrong there, and the remedy.

The parsers say where they stopped, in their own terms: "while scanning for the next token found character that cannot start
any token" is a tab. The tables below name the likely slip instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

_LONGEST = 300
"""Maximum length of a parser's own sentence."""


def syntax_fault(error: Exception, text: str) -> str:
    """Return what is wrong with a text that a parser refused: ``line 2, column 1: a tab; use spaces``."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return _of_json(error)
    if hasattr(error, "problem_mark"):
        return _of_yaml(error, text)
    if hasattr(error, "position") and hasattr(error, "character"):  # PyYAML's ReaderError
        return f"{_place(text.count(chr(10), 0, error.position))}: a control character; remove it"
    if match := re.fullmatch(r"(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error)):
        return _of_toml(match, text)
    return _plain(str(error))


def json_fault(text: str) -> str | None:
    """Return what is wrong with the syntax of a JSON text, as :func:`syntax_fault`; None if nothing is."""
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return syntax_fault(error, text)
    return None


def record_fault(error: Exception, text: str) -> str:
    """Return what is wrong with a JSON text that is not a record: its syntax, or else a value of the wrong type."""
    return json_fault(text) or (
        type_fault(error) if isinstance(error, msgspec.ValidationError) else syntax_fault(error, text)
    )


_TYPE_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "null": "nothing",
    "object": "a group of keys",
}


def type_fault(error: Exception) -> str:
    """Return msgspec's "Expected `float`, got `str` - at `$.p2p_time`" as "p2p_time: expected a number, got text"."""
    # msgspec has no structured errors: the place is a JSONPath at the end of its text, in backticks like the types.
    match = re.fullmatch(r"(.*?)(?: - at `\$\.?(.*)`)?", str(error), re.DOTALL)
    assert match is not None
    text, place = match.groups()
    text = re.sub(r"^Object missing required field `(.*?)`", r"the key '\1' is missing", text)
    text = re.sub(r"^Object contains unknown field `(.*?)`", r"unknown key '\1'; remove it", text)
    text = re.sub(r"`([\w |]+)`", lambda types: _words(types.group(1)), text)
    text = text.replace("whole number, got a number", "whole number, got a fraction").replace("enum value", "value")
    return f"{place}: {text[0].lower()}{text[1:]}" if place else f"{text[0].lower()}{text[1:]}"


def _words(types: str) -> str:
    names = [name for name in types.split(" | ") if name != "null" or types == "null"]
    return " or ".join(_TYPE_WORDS.get(name, name) for name in names)


def _plain(message: str) -> str:
    return " ".join(message.split()).partition("; use sys.set_int_max_str_digits")[0][:_LONGEST]


def _place(line: int, column: int | None = None) -> str:
    """Return a place, counted from 0, as users count."""
    return f"line {line + 1}" if column is None else f"line {line + 1}, column {column + 1}"


# JSON

_CONSTANTS = {"True": "true", "False": "false", "None": "null", "yes": "true", "no": "false", "undefined": "null"}


def _of_json(error: json.JSONDecodeError) -> str:
    text, start = error.doc, error.pos
    rest, before = text[start:], text[:start].rstrip()[-1:]
    return f"{_place(error.lineno - 1, error.colno - 1)}: {_slip_of_json(error.msg, rest, before)}"


def _slip_of_json(message: str, rest: str, before: str) -> str:
    word = re.match(r"\w+", rest)
    if not rest.strip() or (word and word[0] == rest.strip()):
        return "the text ends too early; close its quotes and brackets, or copy the file again as a whole"
    if "trailing comma" in message or (before == "," and rest[0] in "}]"):
        return "a comma before the closing bracket; remove it"
    if rest[0] in "'‘’“”`":
        return f"the quotation mark {rest[0]}; use double quotes"
    if rest.startswith(("//", "/*", "#")):
        return "a comment, which JSON does not have; remove it, or write YAML (.yaml)"
    if message.startswith("Expecting value") and word:
        name = word[0]
        return f"'{name}'; write {_CONSTANTS[name]}" if name in _CONSTANTS else f"'{name}'; put text in double quotes"
    slip = next((remedy for start, remedy in _SLIPS_OF_JSON if message.startswith(start)), "")
    return slip or f"{message[:1].lower()}{message[1:]}"


_SLIPS_OF_JSON = (
    ("Expecting property name", 'expected a key in double quotes, as in "ranks": 4'),
    ("Expecting ',' delimiter", "expected a comma before this value, or a closing bracket"),
    ("Expecting ':' delimiter", "expected a colon between key and value"),
    ("Expecting value", "expected a value"),
    ("Extra data", "more text after the end of the document; remove it"),
    ("Unterminated string", "a quotation mark that is not closed; close it, or copy the file again as a whole"),
    ("Invalid control character", "a line end or tab within a text; write \\n or \\t"),
    ("Invalid \\", "a single backslash; write two"),
)


# YAML


def _of_yaml(error: Any, text: str) -> str:
    problem, context = str(error.problem or ""), str(error.context or "")
    mark, start = error.problem_mark or error.context_mark, error.context_mark or error.problem_mark
    if mark is None:
        return _plain(str(error))
    lines = text.splitlines() or [""]
    tab = next((n for n, line in enumerate(lines[: mark.line + 2]) if re.match(r" *\t", line)), None)
    if tab is not None:
        return f"{_place(tab)}: a tab; use spaces"
    line = lines[min(mark.line, len(lines) - 1)]
    for pattern, at_start, slip in _SLIPS_OF_YAML:
        if re.search(pattern, f"{context}; {problem}"):
            place = start if at_start else mark
            return f"{_place(place.line, place.column)}: {slip(line, mark.column, problem)}"
    return f"{_place(mark.line, mark.column)}: {_plain(problem)}"


def _slip_of_colon(line: str, column: int, _: str) -> str:
    if ":" in line[:column]:
        return "a second colon in one entry; put the value in quotes, or give each key its own line"
    return "a key that is indented deeper than the one above; align them"


def _slip_of_character(line: str, column: int, _: str) -> str:
    return f"a value cannot begin with {line[column : column + 1]!r}; put it in quotes"


def _slip_of_tag(_: str, __: int, problem: str) -> str:
    tag = re.search(r"'([^']*)'", problem)
    return f"unsupported YAML tag '{tag[1] if tag else ''}'; remove it"


def _says(sentence: str) -> Callable[[str, int, str], str]:
    return lambda *_: sentence


_SLIPS_OF_YAML: tuple[tuple[str, bool, Callable[[str, int, str], str]], ...] = (
    (r"quoted scalar; .*(unexpected end of stream|end of stream)", True, _says("a quotation mark that is not closed")),
    (r"escape", False, _says("a backslash in double quotes; write two, or use single quotes")),
    (r"flow (sequence|mapping)", True, _says("a bracket that is not closed, or a comma that is missing within")),
    (r"mapping values are not allowed", False, _slip_of_colon),
    (r"cannot start any token", False, _slip_of_character),
    (r"could not determine a constructor", False, _slip_of_tag),
    (r"unhashable|unacceptable key", False, _says("a key that is a list or a group; put it in quotes")),
    (r"could not find expected ':'", True, _says("a key without a colon; write KEY: VALUE")),
    (r"block sequence|'-' indicator", False, _says("expected '- ' before each entry, at the same indentation")),
    (r"block mapping|expected key|block end", False, _says("expected KEY: VALUE at the indentation of the keys above")),
    (r"node content", False, _says("a value or a closing bracket is missing before this place")),
    (r"directive name", False, _says("a value cannot begin with '%'; put it in quotes")),
    (r"undefined alias", False, _says("a value with '*' names what no '&' defines; put a text in quotes")),
    (r"alphabetic or numeric", False, _says("a value cannot begin with '*' or '&'; put it in quotes")),
    (r"document start", False, _says("text outside of all keys; write KEY: VALUE")),
    (r"single document", False, _says("a second document after '---'; keep one")),
)
"""Patterns of PyYAML's sentences, True to name where the context starts, and the slip."""


# TOML


def _of_toml(match: re.Match[str], text: str) -> str:
    message, number, column = match.groups()
    lines = text.splitlines() or [""]
    row = int(number) - 1 if number else len(lines) - 1
    line = lines[min(row, len(lines) - 1)]
    place = _place(row, int(column) - 1) if column else f"{_place(row)}, at its end"
    return f"{place}: {_slip_of_toml(message, line, int(column) - 1 if column else len(line))}"


def _slip_of_toml(message: str, line: str, column: int) -> str:
    word = re.match(r"[^\s,#\]}]+", line[column:])
    if "Expected '='" in message:
        return "expected KEY = VALUE; TOML has an equals sign, not a colon"
    if message.startswith("Invalid value"):
        return (
            f"{word[0]!r} is not a value; put text in double quotes"
            if word
            else "expected a value after the equals sign"
        )
    if "overwrite" in message or "twice" in message or "Cannot declare" in message:
        return "duplicate key; keep one of them"
    if "statement" in message:
        return "expected the end of the line; give each key its own line, and put text in double quotes"
    return f"{message[:1].lower()}{message[1:]}"
