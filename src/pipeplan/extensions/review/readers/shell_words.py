"""Words of a shell script with their places: quotes, continued lines and comments, as a shell reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeplan.foundation.errors import FormatError

_OPERATOR = re.compile(r";;&?|;&|&&|\|\||[;&|()]|\n")
_REDIRECTION = re.compile(r"\d*(?:<<<|<<-?|&>>?|>>?&?|<&?)(?:\s*[&\w./${}~\"'-]+)?")
_EXPANSION = re.compile(
    r"\$\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)|\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\$\w+|\$[@*#?!$-]"
)
_LITERAL = re.compile(r"[^\s\"'\\$`;&|()<>]+")
_QUOTED_LITERAL = re.compile(r"[^\"\\$`\n]+")

_LONGEST_QUOTE = 40_000
"""Number of characters within which a quote must end; a lone one is a letter."""

_MOST_AHEAD = 4_000_000
"""Number of characters that are looked at twice, for the ends of quotes, in one script."""

_MOST_WORDS = 100_000
"""Maximum number of words and operators of a script."""


@dataclass(frozen=True, slots=True)
class WordPart:
    """Part of a word: literal text, or an expansion with its ``$``; line from 1, and columns."""

    text: str
    line: int
    start: int
    expands: bool = False
    quoted: bool = False

    @property
    def end(self) -> int:
        """Column behind the piece."""
        return self.start + len(self.text)


@dataclass(slots=True)
class Word:
    """Word of a script as its pieces; an operator has none."""

    operator: str = ""
    pieces: list[WordPart] = field(default_factory=list)

    @property
    def plain(self) -> str:
        """Text of a word without expansions and quotes; empty for all others."""
        if any(piece.expands or piece.quoted for piece in self.pieces):
            return ""
        return "".join(piece.text for piece in self.pieces)


class _Lexer:
    def __init__(self, text: str, at: int = 0, end: int | None = None, line: int = 1, *, nested: bool = False) -> None:
        self.text = text
        self.at = at
        self.end = len(text) if end is None else end
        self.line = line
        self.line_start = at
        self.nested = nested
        self.documents: list[str] = []
        self.ahead = _MOST_AHEAD

    def words(self) -> Iterator[Word]:
        """Yield words and operators."""
        word = Word()
        while self.at < self.end:
            letter = self.text[self.at]
            if letter in " \t\r" or self.text.startswith(("\\\n", "\\\r\n"), self.at):
                if word.pieces:
                    yield word
                    word = Word()
                self._skip_blank()
            elif letter == "#" and not word.pieces:
                self._skip_to(self._line_end())
            elif letter in "<>" or self._redirects(word):
                if word.pieces:
                    yield word
                    word = Word()
                self._redirect()
            elif operator := _OPERATOR.match(self.text, self.at):
                if word.pieces:
                    yield word
                    word = Word()
                yield Word(operator=operator[0])
                self._skip_to(operator.end())
                if operator[0] == "\n":
                    while self.documents:
                        yield from self._document(self.documents.pop(0))
            else:
                self._piece(word)
        if word.pieces:
            yield word

    def _redirect(self) -> None:
        match = _REDIRECTION.match(self.text, self.at)
        document = match and re.fullmatch(r"\d*<<-?\s*[\"']?(\w+)[\"']?", match[0])
        if document and not self.nested:
            self.documents.append(document[1])
        self._skip_to(match.end() if match else self.at + 1)

    def _document(self, ending: str) -> Iterator[Word]:
        """Yield the words of a document that stands in the script up to its ending: it may be a script of its own."""
        match = re.compile(rf"^\t*{ending}[ \t]*$", re.MULTILINE).search(self.text, self.at, self.end)
        stop = match.start() if match else self.end
        yield from _Lexer(self.text, self.at, stop, self.line, nested=True).words()
        self._skip_to(match.end() if match else self.end)

    def _redirects(self, word: Word) -> bool:
        """Return True at ``2>&1``: digits that start a word and stand before a redirection."""
        return not word.pieces and re.compile(r"\d+[<>]|&>").match(self.text, self.at) is not None

    def _skip_blank(self) -> None:
        match = re.compile(r"(?:[ \t\r]|\\\r?\n)+").match(self.text, self.at)
        self._skip_to(match.end() if match else self.at + 1)

    def _skip_to(self, end: int) -> None:
        breaks = self.text.count("\n", self.at, end)
        if breaks:
            self.line += breaks
            self.line_start = self.text.rindex("\n", self.at, end) + 1
        self.at = end

    def _line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return self.end if end < 0 else min(end, self.end)

    def _add(self, word: Word, end: int, *, expands: bool = False, quoted: bool = False) -> None:
        text = self.text[self.at : end]
        word.pieces.append(WordPart(text, self.line, self.at - self.line_start, expands, quoted))
        self._skip_to(end)

    def _piece(self, word: Word) -> None:
        letter = self.text[self.at]
        if letter == "\\":
            self._skip_to(self.at + 1)
            self._add(word, min(self.at + 1, self.end), quoted=True)
        elif letter == "'" and (end := self._closing("'")) >= 0:
            self._skip_to(self.at + 1)
            self._quoted(word, end, "'")
        elif letter == '"' and (end := self._closing('"')) >= 0:
            self._skip_to(self.at + 1)
            self._quoted(word, end, '"')
        elif letter in "$`":
            self._expansion(word)
        elif match := _LITERAL.match(self.text, self.at):
            self._add(word, match.end())
        else:
            self._add(word, self.at + 1)

    def _closing(self, quote: str) -> int:
        """Return the place of the quote that closes one here; -1 if there is none near."""
        at, end = self.at + 1, self._horizon()
        while at < end:
            if self.text[at] == quote:
                self.ahead -= at - self.at
                return at
            at += 2 if self.text[at] == "\\" and quote == '"' else 1
        self.ahead -= end - self.at
        return -1

    def _horizon(self) -> int:
        """Return the place up to which a quote may end."""
        return min(self.end, self.at + min(_LONGEST_QUOTE, max(0, self.ahead)))

    def _quoted(self, word: Word, end: int, quote: str) -> None:
        """Add the inside of quotes, a piece for each part of a line and each expansion."""
        if self.at == end:
            word.pieces.append(WordPart("", self.line, self.at - self.line_start, quoted=True))
        while self.at < end:
            letter = self.text[self.at]
            if letter == "\n":
                word.pieces.append(WordPart(" ", self.line, self.at - self.line_start, quoted=True))
                self._skip_to(self.at + 1)
            elif quote == "'":
                stop = self.text.find("\n", self.at, end)
                self._add(word, end if stop < 0 else stop, quoted=True)
            elif letter == "\\":
                if self.text.startswith("\\\n", self.at):
                    self._skip_to(self.at + 2)
                else:
                    self._skip_to(self.at + 1)
                    self._add(word, min(self.at + 1, end), quoted=True)
            elif letter in "$`":
                self._expansion(word, quoted=True)
            else:
                match = _QUOTED_LITERAL.match(self.text, self.at, end)
                self._add(word, match.end() if match else self.at + 1, quoted=True)
        self._skip_to(end + 1)

    def _expansion(self, word: Word, *, quoted: bool = False) -> None:
        match = _EXPANSION.match(self.text, self.at)
        if match:
            self._add(word, match.end(), expands=True, quoted=quoted)
        elif self.text.startswith("$(", self.at):
            self._add(word, self._command_end(), expands=True, quoted=quoted)
        elif self.text[self.at] == "`":
            end = self.text.find("`", self.at + 1)
            self._add(word, end + 1 if end > 0 else self.at + 1, expands=True, quoted=quoted)
        else:
            self._add(word, self.at + 1, quoted=quoted)

    def _command_end(self) -> int:
        """Return the place behind a command substitution that starts here."""
        depth = 0
        for at in range(self.at + 1, self._horizon()):
            depth += (self.text[at] == "(") - (self.text[at] == ")")
            self.ahead -= 1
            if depth == 0:
                return at + 1
        return min(self.at + 2, self.end)


def words_of(text: str) -> Iterator[Word]:
    """Yield the words and operators of a script; a line's end that ends a command is an operator, too.

    Raises
    ------
    FormatError
        If there are too many.
    """
    for count, word in enumerate(_Lexer(text).words()):
        if count == _MOST_WORDS:
            raise FormatError(f"the script has more than {_MOST_WORDS:,} words")
        yield word


def is_quoted(text: str, line: int, column: int) -> bool:
    """Return True if a place of a script stands in quotes; line from 1."""
    return any(
        piece.quoted and piece.line == line and piece.start <= column <= piece.end
        for word in words_of(text)
        for piece in word.pieces
    )
