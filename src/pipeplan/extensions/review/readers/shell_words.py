"""Words of a shell script with their places: quotes, continued lines, comments and here-documents, as a shell reads them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeplan.foundation.errors import FormatError

_LONGEST = 40_000
"""Number of characters within which a quote, an expansion or a document must end; a lone quote is a letter."""

_MOST_AHEAD = 1_000_000
"""Number of characters of a script that are looked at in vain for the ends of quotes and expansions."""

_MOST_WORDS = 100_000
"""Maximum number of words and operators of a script."""

_BLANK = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
_OPERATOR = re.compile(r";;&?|;&|&&|\|\||[;&|()\n]")
_DOCUMENT = re.compile(r"\d*<<-?[ \t]*[\"'\\]?(\w+)[\"']?")
_REDIRECTION = re.compile(r"(?:\d+|&)?(?:<<<|>>?&?|<&?)(?:[ \t]*[\w./${}~\"'-]+)?")
_LITERAL = re.compile(r"[^\s\"'\\$`;&|()<>]+")
_ARGUMENT = re.compile(r"[^\s\"'\\$`]+")
_IN_QUOTES = re.compile(r"[^\"\\$`\n]+")
_NAMED = re.compile(r"\$\w+|\$[@*#?!$-]")
_CAPTURED = re.compile(
    r"\$\(\s*cat\s*<<-?\s*([\"'\\]?)(\w+)[\"']?[ \t]*\n(.{0,10000}?)\n[ \t]*\2[ \t]*\n\s*\)", re.DOTALL
)
"""Matches a document that becomes the value of a variable: ``$(cat <<EOM ...)``."""

_ARGUMENTS = re.compile(r"(?<![^\s\"'])(?:--?[A-Za-z]|[+~]*\w+(?:\.\w+)+=)")
"""Matches flags and overrides in quotes, which are several words for the command that gets them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a word from one place of a script to another.

    Its kind is ``text``, ``expansion`` (with its ``$``), or ``words``: text between quotes that holds arguments.
    """

    kind: str
    start: int
    end: int
    quoted: bool = False


@dataclass(slots=True)
class Word:
    """Word of a script as its pieces, an operator without any, or the inside of a here-document.

    ``NAME=( ... )`` is a word with the words in the parentheses as its ``array``.
    """

    operator: str = ""
    pieces: list[Piece] = field(default_factory=list)
    document: tuple[int, int] | None = None
    array: list[Word] | None = None


class ScriptText:
    """Text of a script, and the lines and columns of places in it."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._ahead = _MOST_AHEAD
        self._words = 0

    def position(self, at: int) -> tuple[int, int]:
        """Return the line, from 1, and the column of a place."""
        line = bisect_right(self._lines, at)
        return line, at - self._lines[line - 1]

    def words(self, at: int = 0, end: int | None = None, *, arguments: bool = False) -> Iterator[Word]:
        """Yield the words of a part of the script; operators are words, and lines' ends blanks, among ``arguments``."""
        text, end = self.text, len(self.text) if end is None else end
        documents: list[str] = []
        word = Word()
        while at < end:
            letter, stop, operator = text[at], -1, ""
            if match := _BLANK.match(text, at, end):
                stop = match.end()
            elif letter == "#" and not word.pieces:
                stop = self._find("\n", at, end)
            elif letter == "\n" and arguments:
                stop = at + 1
            elif not arguments and (match := _DOCUMENT.match(text, at, end)) and text[at : at + 3] != "<<<":
                documents.append(match[1])
                stop = match.end()
            elif not arguments and (not word.pieces or letter in "<>") and (match := _REDIRECTION.match(text, at, end)):
                stop = match.end()
            elif not arguments and (match := _OPERATOR.match(text, at, end)):
                stop, operator = match.end(), match[0]
            if stop < 0:
                at = self._piece(word.pieces, at, end, _ARGUMENT if arguments else _LITERAL)
                continue
            if word.pieces:
                yield self._counted(word)
                word = Word()
            at = stop
            if operator:
                yield self._counted(Word(operator=operator))
            while operator == "\n" and documents:
                closing = re.compile(rf"^[ \t]*{documents.pop(0)}[ \t]*\r?$", re.MULTILINE).search(text, at, end)
                yield self._counted(Word(document=(at, closing.start() if closing else end)))
                at = closing.end() if closing else end
        if word.pieces:
            yield self._counted(word)

    def _counted(self, word: Word) -> Word:
        self._words += max(1, len(word.pieces))
        if self._words > _MOST_WORDS:
            raise FormatError(f"the script has more than {_MOST_WORDS:,} words")
        return word

    def _find(self, letters: str, at: int, end: int) -> int:
        found = self.text.find(letters, at, end)
        return end if found < 0 else found

    def _piece(self, pieces: list[Piece], at: int, end: int, literal: re.Pattern[str]) -> int:
        """Add the piece at a place of a word; return the place behind it."""
        letter = self.text[at]
        if letter == "\\":
            pieces.append(Piece("text", at + 1, min(at + 2, end), quoted=True))
            return min(at + 2, end)
        if letter in "\"'" and (inner := self._quoted(at, end)) is not None:
            stop = inner[1]
            words = _ARGUMENTS.search(self.text, at + 1, stop)
            pieces += [Piece("words", at + 1, stop, quoted=True)] if words else inner[0]
            return stop + 1
        if letter in "$`":
            stop = self._expansion_end(at, end)
            pieces.append(Piece("expansion" if stop > at + 1 else "text", at, stop))
            return stop
        match = literal.match(self.text, at, end)
        stop = match.end() if match else at + 1
        pieces.append(Piece("text", at, stop))
        return stop

    def _quoted(self, at: int, end: int) -> tuple[list[Piece], int] | None:
        """Return the pieces between quotes and the place of the closing one; None if there is none near."""
        quote, first, pieces = self.text[at], at + 1, list[Piece]()
        end = min(end, at + min(_LONGEST, max(0, self._ahead)))
        if quote == "'":
            stop = self._find("'", first, end)
            pieces.append(Piece("text", first, stop, quoted=True))
        else:
            stop = first
            while stop < end and self.text[stop] != '"':
                start, letter = stop, self.text[stop]
                if letter in "$`":
                    stop = self._expansion_end(start, end)
                    pieces.append(Piece("expansion" if stop > start + 1 else "text", start, stop, quoted=True))
                    continue
                match = _IN_QUOTES.match(self.text, start, end)
                stop = match.end() if match else min(start + 1 + (letter == "\\"), end)
                pieces.append(Piece("text", start + (letter == "\\"), stop, quoted=True))
            pieces = pieces or [Piece("text", first, first, quoted=True)]
        if stop >= end:
            self._ahead -= end - at
            return None
        return pieces, stop

    def _expansion_end(self, at: int, end: int) -> int:
        """Return the place behind an expansion or a command that starts here; behind the ``$`` if there is neither."""
        text = self.text
        if match := _NAMED.match(text, at, end) or _CAPTURED.match(text, at, end):
            return match.end()
        end = min(end, at + min(_LONGEST, max(0, self._ahead)))
        opening = text[at + 1 : at + 2]
        if text[at] == "`":
            stop = text.find("`", at + 1, end)
            return at + 1 if stop < 0 else stop + 1
        if opening in ("(", "{"):
            depth = 0
            for match in re.compile(r"[(){}]").finditer(text, at + 1, end):
                depth += (match[0] == opening) - (match[0] == {"(": ")", "{": "}"}[opening])
                if depth == 0:
                    return match.end()
            self._ahead -= end - at
        return at + 1

    def captured(self, piece: Piece) -> tuple[int, int] | None:
        """Return the document that an expansion captures, as its places; None for other expansions."""
        match = _CAPTURED.match(self.text, piece.start, piece.end)
        return None if match is None else match.span(3)


def is_quoted(text: str, line: int, column: int) -> bool:
    """Return True if a place of a script stands in quotes; line from 1."""
    script = ScriptText(text, "")
    pieces = [piece for word in script.words() for piece in word.pieces if piece.quoted]
    return any(script.position(piece.start) <= (line, column) <= script.position(piece.end) for piece in pieces)
