"""Variables and commands of a shell script.

A script is not run: its variables, arrays and sourced files are followed in their order. What a branch sets differently
from the rest of the script is unsaid, and so is what only a running shell has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.readers.recipe_values import combined
from pipeplan.extensions.review.readers.shell_words import ARGUMENT, ScriptText, Word, WordPiece
from pipeplan.extensions.review.readers.source import SourceText, text_near
from pipeplan.foundation.errors import FormatError

OPEN = "\0"
"""Stands in a text for a part that only a running shell has."""

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?:\[\w*\])?(\+?)=")
_PARAMETER = re.compile(r"\$\{?(\w+)(?:\[[@*]\])?(?:(:?[-=+?])(.*))?\}?", re.DOTALL)
_CAPTURED = re.compile(r"\$\(\s*cat\s*<<-?\s*[\"'\\]?(\w+)[\"']?[ \t]*\n(.*)\n[ \t]*\1[ \t]*\n\s*\)", re.DOTALL)
"""Matches a document that becomes the value of a variable: ``$(cat <<EOM ...)``."""

_HERE = re.compile(r"\bdirname\b[^)`]*(?:BASH_SOURCE|\$\{?0\b)[^)`]*[)`]?[\"']?((?:/\.\.)*)")
"""Matches the folder of the script: ``$(cd "$(dirname "$0")/.." && pwd)``."""

_COUNTS = re.compile(r"NODE|WORLD|RANK|NPROC|GPU")
"""Matches variables whose default of 0 or 1 holds until a launcher sets them."""

_DECLARES = frozenset({"export", "local", "readonly", "declare", "typeset"})
_OPENS = frozenset({"if", "case", "for", "select", "while", "until"})
_MOST_TOKENS, _MOST_BEYOND = 40_000, 100
"""Maximum number of tokens of all commands and variables, which may double each other, and of each one beyond that."""

_LONGEST = 20_000
"""Maximum number of characters of a word, for variables may double themselves; what is longer is unsaid."""

_LONGEST_EXPRESSION = 400
_MOST_SOURCED = 20
_DEEPEST, _MOST_OPEN = 10, 200
"""Maximum nesting of documents and sourced files, and of branches and loops."""


@dataclass(frozen=True, slots=True)
class Token:
    """Word as a command gets it, with its place."""

    text: str
    place: SettingPlace = field(default_factory=SettingPlace)


_UNKNOWN = (Token(OPEN),)


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """Command of a script, and whether it stands in a branch."""

    tokens: tuple[Token, ...]
    branch: bool


class ShellState:
    """Variables and commands of a script that has been followed to its end."""

    def __init__(self, text: str, file: str, folder: Path | None) -> None:
        self.variables: dict[str, tuple[Token, ...]] = {}
        self.commands: list[ShellCommand] = []
        self.sourced: list[SourceText] = []
        self.unread: list[SettingPlace] = []
        self.script, self._folder, self._files = ScriptText(text, file), folder, {file}
        self._open: list[str] = []
        self._guarded = False
        self._reads = ""
        self._tokens = self._depth = 0
        self._follow(self.script.words())

    # Statements

    def _follow(self, items: Iterator[Word]) -> None:
        words: list[Word] = []
        reads = ""
        for item in items:
            if item.kind == "word":
                words.append(item)
            elif item.kind == "document" and reads:
                self.variables[reads] = self._counted(self._arguments(item.start, item.end))
            elif item.kind == "document":
                self._follow_apart(self.script, item.start, item.end)
            elif item.kind == "(" and words and _ASSIGNED.fullmatch(self._text(words[-1])):
                inside = takewhile(lambda one: one.kind != ")", items)
                words[-1] = replace(words[-1], array=tuple(word for word in inside if word.kind == "word"))
            else:
                self._statement(words, item.kind)
                words, self._guarded = [], item.kind in ("&&", "||")
                if item.kind == "\n":
                    reads, self._reads = self._reads, ""
        self._statement(words, "")

    def _follow_apart(self, script: ScriptText, start: int = 0, end: int | None = None) -> None:
        """Follow a document or a sourced file: a branch does not end in another one."""
        before, branches = self.script, len(self._open)
        if self._depth < _DEEPEST:
            self.script, self._guarded = script, False
            self._depth += 1
            self._follow(script.words(start, end))
            self._depth -= 1
        self.script = before
        del self._open[branches:]

    def _statement(self, words: Sequence[Word], ends: str) -> None:
        keyword = self._text(words[0]) if words else ""
        if keyword in ("fi", "done", "esac"):
            del self._open[-1:]
        elif keyword in _OPENS:
            self._open.append(keyword)
            if len(self._open) > _MOST_OPEN:
                raise FormatError("the branches and loops of the script are nested too deeply")
            if keyword in ("for", "select") and len(words) > 1:
                self.variables[self._text(words[1])] = _UNKNOWN
        elif self._open[-1:] == ["case"] and (ends == ")" or (ends == "|" and len(words) == 1)):
            # A pattern.
            return
        elif keyword in ("then", "do", "else", "{", "!", "time", "function"):
            self._statement(words[1:], ends)
        elif words and keyword != "elif":
            self._command(words)

    def _command(self, words: Sequence[Word]) -> None:
        """Follow the assignments of a command, and record the rest of it."""
        rest = list(words)
        declares = self._text(rest[0]) in _DECLARES
        while rest and ((assigns := _ASSIGNED.match(self._text(rest[0]))) or declares):
            word = rest.pop(0)
            if assigns:
                self._assign(word, assigns)
        tokens = [token for word in rest for token in self._expanded(word)]
        if tokens and tokens[0].text in ("source", ".") and len(tokens) > 1:
            self._source(tokens[1])
        if tokens and tokens[0].text == "read":
            self._reads = tokens[-1].text
        self._record(tokens)

    def _record(self, tokens: Sequence[Token]) -> None:
        """Record a command, or the several of ``bash -c "one; two"``."""
        command: list[Token] = []
        for token in (*self._counted(tokens), Token(";")):
            text = token.text.removesuffix(";")
            ends = text != token.text or text in ("&&", "||", "|")
            if text not in ("", "&&", "||", "|"):
                command.append(replace(token, text=text))
            if ends and command:
                if command[0].text.startswith("--") and self.commands:
                    # A list of arguments without a command, or a line that a backslash should continue.
                    command = [*self.commands.pop().tokens, *command]
                self.commands.append(ShellCommand(tuple(command), not {*self._open} <= {"for", "while"}))
                command = []

    def _counted(self, tokens: Sequence[Token]) -> tuple[Token, ...]:
        self._tokens += sum(1 + len(token.text) // 100 for token in tokens)
        return tuple(tokens if self._tokens <= _MOST_TOKENS else tokens[:_MOST_BEYOND])

    def _source(self, token: Token) -> None:
        """Follow a sourced file that lies beside the script or in the repository above it."""
        source = text_near(token.text, self._folder, "shell")
        if source is None:
            key = f"source {token.text.replace(OPEN, '...')}"
            self.unread += [replace(token.place, key=key)] if token.text.endswith(".sh") else []
        elif len(self.sourced) < _MOST_SOURCED and source.file not in self._files:
            folder, self._folder = self._folder, Path(source.file).parent
            self.sourced.append(source)
            self._files.add(source.file)
            self._follow_apart(ScriptText(source.text, source.file))
            self._folder = folder

    def _assign(self, word: Word, assigns: re.Match[str]) -> None:
        """Set a variable. What a branch sets differently from before is open: it may run or not."""
        values = (replace(word, start=word.start + assigns.end()),) if word.array is None else word.array
        before = self.variables.get(assigns[1], ())
        added = tuple(token for value in values for token in self._expanded(value))
        tokens = (*before, *added) if assigns[2] else added
        if "while" in self._open or "until" in self._open:
            # A loop over the arguments of the script, which has none here.
            return
        branch = self._guarded or not {*self._open} <= {"for"}
        if branch and [one.text for one in tokens] != [one.text for one in before]:
            kept = len(before) if tokens[: len(before)] == before else 0
            changed = dict.fromkeys(_opened(one) for one in (*before[kept:], *tokens[kept:]))
            tokens = (*before[:kept], *changed)
        self.variables[assigns[1]] = self._counted(tokens)

    # Words

    def _text(self, word: Word) -> str:
        return self.script.text[word.start : word.end]

    def _arguments(self, start: int, end: int) -> list[Token]:
        words = self.script.words(start, end, arguments=True)
        return [token for word in words for token in self._expanded(word)]

    def _expanded(self, word: Word) -> Iterator[Token]:
        """Yield the tokens of a word: several if it holds arguments, none for an empty expansion, else one."""
        place, text, several = self._place(word), "", False
        pieces = [*self.script.pieces(word.start, word.end)]
        for piece in pieces:
            if piece.kind == "text":
                text += self.script.text[piece.start : piece.end].replace("\n", " ")
                continue
            words = piece.kind == "words"
            values = self._arguments(piece.start, piece.end) if words else self._value(piece)
            if words or (len(pieces) == 1 and len(values) > 1) or any(ARGUMENT.match(one.text) for one in values):
                if text:
                    yield Token(text, place)
                text, several = "", True
                yield from values
            else:
                text += " ".join(value.text for value in values)
            text = text if len(text) <= _LONGEST else OPEN
        if text or (not several and self._text(word)[:1] in ("'", '"')):
            yield Token(text, place)

    def _place(self, word: Word) -> SettingPlace:
        """Return the place of a word, inside its quotes."""
        text = self._text(word)
        inside = len(text) > 1 and text[0] in "\"'" and text.count(text[0]) == text.endswith(text[0]) + 1
        (line, start), (last_line, end) = (self.script.position(at) for at in (word.start + inside, word.end - inside))
        return SettingPlace(self.script.file, line, "", start, end if line == last_line else start)

    def _value(self, piece: WordPiece) -> Sequence[Token]:
        """Return the tokens of an expansion; an open one for what the script does not have."""
        text = self.script.text[piece.start : piece.end]
        if captured := _CAPTURED.fullmatch(text):
            return self._arguments(piece.start + captured.start(2), piece.start + captured.end(2))
        if text.startswith("$((") and text.endswith("))") and len(text) < _LONGEST_EXPRESSION:
            number = computed(re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", lambda name: self._number(name[1]), text[3:-2]))
            return _UNKNOWN if number is None else (Token(str(number)),)
        if text.startswith(("$(", "`")) or "%/*}" in text:
            here = _HERE.search(text)
            known = self._folder is not None and (here or "BASH_SOURCE" in text)
            return (Token(f"{self._folder}{here[1] if here else ''}"),) if known else _UNKNOWN
        return () if text in ("$@", "$*", "${@}") else self._parameter(piece, text)

    def _parameter(self, piece: WordPiece, text: str) -> Sequence[Token]:
        match = _PARAMETER.fullmatch(text)
        if match is None:
            return _UNKNOWN
        operation, default, value = match[2] or "", (match[3] or "").removesuffix("}"), self.variables.get(match[1])
        start = piece.start + match.start(3)
        if operation in (":-", "-", ":=", "=") and (not value or value == _UNKNOWN):
            counts = default.strip("\"'") in ("0", "1") and (match[1].isdigit() or _COUNTS.search(match[1].upper()))
            return _UNKNOWN if counts else self._arguments(start, start + len(default))
        if operation in (":+", "+"):
            return self._arguments(start, start + len(default)) if value else ()
        return _UNKNOWN if value is None else value

    def _number(self, name: str) -> str:
        tokens = self.variables.get(name, ())
        return f"({tokens[0].text})" if len(tokens) == 1 else OPEN


def _opened(token: Token) -> Token:
    """Return a token that may be there or not: a flag or an override without its value, or nothing that is known."""
    return replace(token, text=f"{token.text.partition('=')[0]}={OPEN}") if ARGUMENT.match(token.text) else _UNKNOWN[0]


def computed(expression: str) -> int | None:
    """Return the value of an expression of integers and ``+ - * / %``; None for any other."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.BinOp):
            return int(combined(node.op, value(node.left), value(node.right)))
        return int(ast.literal_eval(node))

    try:
        return value(ast.parse(expression.strip(), mode="eval").body) if len(expression) < _LONGEST_EXPRESSION else None
    except (ValueError, TypeError, SyntaxError, ArithmeticError, RecursionError, MemoryError):
        return None
