"""Edits of a text, the edited text and its diff."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TextEdit:
    """Edit of a line (from 0): of the columns from ``start`` to ``end``; of no columns (-1): a new line behind it.

    ``new`` is the new text; None removes the line.
    """

    line: int
    start: int = -1
    end: int = -1
    new: str | None = None


class NoPatch(Exception):
    """A text cannot hold a change; the reason in words."""


def diff_of(file: str, before: str, after: str) -> str:
    """Return the unified diff of a file, with three lines of context; empty without a difference."""
    name = posixpath.normpath(file.replace("\\", "/")).lstrip("/")
    old, new = _quoted(f"a/{name}"), _quoted(f"b/{name}")
    lines = difflib.unified_diff(_lines_of(before), _lines_of(after), old, new)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _quoted(name: str) -> str:
    """Return a file's name as patch and git write it: one that ends a line would otherwise name another file."""
    if any(letter < " " or letter in '"\x7f' for letter in name):
        return '"' + "".join(_octal(letter) for letter in name) + '"'
    # A tab ends a name with spaces.
    return f"{name}\t" if " " in name else name


def _octal(letter: str) -> str:
    return f"\\{ord(letter):03o}" if letter < " " or letter in '"\\\x7f' else letter


def _lines_of(text: str) -> list[str]:
    """Return the lines with their ends; other separators than the line feed are part of a line, as they are for patch."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def edited_text(text: str, edits: Iterable[TextEdit]) -> str:
    """Return a text with edits, of which equal ones are made once. Raises NoPatch if two change the same columns."""
    lines = text.split("\n")
    last: TextEdit | None = None
    # From the end, so that what comes before keeps its place; new lines in their order.
    for edit in sorted(set(edits), key=lambda edit: (edit.line, edit.start, edit.end, edit.new or ""), reverse=True):
        line = lines[edit.line]
        if edit.start >= 0:
            if last is not None and (last.line, last.start >= 0) == (edit.line, True) and last.start < edit.end:
                raise NoPatch(f"two changes of line {edit.line + 1}")
            lines[edit.line] = line[: edit.start] + (edit.new or "") + line[edit.end :]
        elif edit.new is None:
            lines[edit.line] = "\0"
        else:
            end = "\r" if line.endswith("\r") else ""
            lines.insert(edit.line + 1, edit.new + end)
        last = edit
    return "\n".join(line for line in lines if line != "\0")
