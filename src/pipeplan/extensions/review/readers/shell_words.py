"""Words of a shell script as parts of its text: quotes, expansions, comments and here-documents, as a shell reads them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from pipeplan.foundation.errors import FormatError

_MOST_WORDS = 100_000
"""Maximum number of words, operators and pieces of a script."""


def _nested(opening: str, closing: str) -> str:
    """Return a pattern of brackets and what is between them, up to five deep."""
    other = rf"[^\{opening}\{closing}]++"
    pattern = rf"\{opening}(?:{other})?\{closing}"
    for _ in range(4):
        pattern = rf"\{opening}(?:{other}|{pattern})*+\{closing}"
    return pattern


# Possessive patterns: what follows a part never changes where it ends, in time that grows with the text.
_EXPANSION = rf"(?:\${_nested('(', ')')}|\${_nested('{', '}')}|`[^`]*+`|\$\w++|\$[@*#?!$-])"
_QUOTED = rf"(?:'[^']*+'|\"(?:[^\"\\$`]++|\\.|{_EXPANSION}|[$`])*+\")"
_ESCAPED = r"\\(?!\r?\n)."

_PIECE = re.compile(rf"(?P<quoted>{_QUOTED})|(?P<expansion>{_EXPANSION})|\\.|[^\"'\\$`]++|.", re.DOTALL)
_IN_QUOTES = re.compile(rf"(?P<expansion>{_EXPANSION})|\\.|[^\\$`]++|.", re.DOTALL)


def _items(literal: str, *others: str) -> re.Pattern[str]:
    blank = r"(?P<blank>(?:[ \t\r]|\\\r?\n)++|#[^\n]*+)"
    word = rf"(?P<word>(?:{_QUOTED}|{_EXPANSION}|{_ESCAPED}|{literal}++|[\"'$`])++)"
    return re.compile("|".join((blank, *others, word, ".")), re.DOTALL)


_OF_COMMANDS = _items(
    r"[^\s\"'\\$`;&|()<>]",
    r"(?P<document>\d*<<-?(?!<)[ \t]*[\"'\\]?(?P<ends>\w+)[\"']?)",
    r"(?P<redirection>(?:\d+|&)?(?:<<<|>>?&?|<&?)(?:[ \t]*[\w./${}~\"'-]+)?)",
    r"(?P<operator>;;&?|;|&&|\|\||[;&|()\n])",
)
_OF_ARGUMENTS = _items(r"[^\s\"'\\$`]")

ARGUMENT = re.compile(r"(?<![^\s\"'])(?:--?[A-Za-z]|[+~]*\w+(?:\.\w+)+=)")
"""Matches the start of a flag or an override; in quotes, they are several words for the command that gets them."""


@dataclass(frozen=True, slots=True)
class Word:
    """Word of a script from one place to another; its kind is an operator, ``word``, or ``document``.

    ``NAME=( ... )`` is a word with the words in the parentheses as its ``array``.
    """

    kind: str
    start: int
    end: int
    array: tuple[Word, ...] | None = None


@dataclass(frozen=True, slots=True)
class WordPiece:
    """Part of a word: ``text``, ``expansion`` (with its ``$``), or ``words``: text in quotes that holds arguments."""

    kind: str
    start: int
    end: int


class ScriptText:
    """Text of a script, its words, and the lines and columns of places in it."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._words = 0

    def position(self, at: int) -> tuple[int, int]:
        """Return the line, from 1, and the column of a place."""
        line = bisect_right(self.lines, at)
        return line, at - self.lines[line - 1]

    def words(self, at: int = 0, end: int | None = None, *, arguments: bool = False) -> Iterator[Word]:
        """Yield the words of a part of the script; operators are words, and lines' ends blanks, among ``arguments``."""
        end = len(self.text) if end is None else end
        documents: list[str] = []
        while item := (_OF_ARGUMENTS if arguments else _OF_COMMANDS).match(self.text, at, end):
            at = item.end()
            if item.lastgroup == "document":
                documents.append(item["ends"])
            elif item.lastgroup in ("word", "operator"):
                self._count()
                yield Word("word" if item.lastgroup == "word" else item[0], *item.span())
            while item[0] == "\n" and documents:
                closing = re.compile(rf"^[ \t]*{documents.pop(0)}[ \t]*\r?$", re.MULTILINE).search(self.text, at, end)
                yield Word("document", at, closing.start() if closing else end)
                at = closing.end() if closing else end

    def pieces(self, start: int, end: int, *, quoted: bool = False) -> Iterator[WordPiece]:
        """Yield the pieces of a word, or those between double quotes."""
        for match in (_IN_QUOTES if quoted else _PIECE).finditer(self.text, start, end):
            self._count()
            first, last = match.span()
            if match.lastgroup == "quoted":
                if ARGUMENT.search(self.text, first + 1, last - 1):
                    yield WordPiece("words", first + 1, last - 1)
                elif match[0][0] == "'":
                    yield WordPiece("text", first + 1, last - 1)
                else:
                    yield from self.pieces(first + 1, last - 1, quoted=True)
            elif match.lastgroup == "expansion":
                yield WordPiece("expansion", first, last)
            else:
                yield WordPiece("text", first + (last > first + 1 and match[0][0] == "\\"), last)

    def _count(self) -> None:
        self._words += 1
        if self._words > _MOST_WORDS:
            raise FormatError(f"the script has more than {_MOST_WORDS:,} words")


def is_quoted(text: str, line: int, column: int) -> bool:
    """Return True if a place of a script stands in quotes; line from 1."""
    script = ScriptText(text, "")
    at = script.lines[line - 1] + column
    words = (word for word in script.words() if word.kind == "word" and word.start < at < word.end)
    pieces = (match for word in words for match in _PIECE.finditer(text, word.start, word.end))
    return any(match.lastgroup == "quoted" and match.start() < at < match.end() for match in pieces)
