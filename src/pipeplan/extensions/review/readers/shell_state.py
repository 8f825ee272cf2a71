"""Variables and commands of a shell script.

A script is not run: its variables, arrays and sourced files are followed in their order. What a branch or loop sets
differently from the rest of the script is unsaid, and so is what only a running shell has.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.readers.shell_words import Piece, ScriptText, Word
from pipeplan.extensions.review.readers.source import SourceText, text_near
from pipeplan.foundation.errors import FormatError

OPEN = "\0"
"""Stands in a text for a part that only a running shell has."""

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?:\[\w*\])?(\+?)=")
_PARAMETER = re.compile(r"\$\{?(\w+)(?:\[[@*]\])?(?:(:?[-=+?])(.*))?\}?", re.DOTALL)
_FLAG = re.compile(r"--?[A-Za-z]")
_HERE = re.compile(r"\bdirname\b[^)`]*(?:BASH_SOURCE|\$\{?0\b)[^)`]*[)`]?[\"']?((?:/\.\.)*)")
"""Matches the folder of the script: ``$(cd "$(dirname "$0")/.." && pwd)``."""

_COUNTS = re.compile(r"NODE|WORLD|RANK|NPROC|GPU")
"""Matches variables whose default of 0 or 1 holds until a launcher sets them."""

_DECLARES = frozenset({"export", "local", "readonly", "declare", "typeset"})
_MOST_TOKENS = 40_000
"""Maximum number of tokens of all commands and variables together: variables may double each other."""

_MOST_BEYOND = 100
"""Maximum number of tokens of a variable or command when there are too many."""

_MOST_SOURCED = 20
_DEEPEST, _MOST_OPEN = 10, 200
"""Maximum nesting of here-documents, and of branches and loops."""


@dataclass(frozen=True, slots=True)
class Token:
    """Word as a command gets it with its place, and whether the script leaves open that it is there."""

    text: str
    place: SettingPlace = field(default_factory=SettingPlace)
    undecided: bool = False


_UNKNOWN = (Token(OPEN),)

Variables = dict[str, tuple[Token, ...]]


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """Command of a script, and whether it stands in a branch or loop."""

    tokens: tuple[Token, ...]
    branch: bool


class ShellState:
    """Variables and commands of a script that has been followed to its end."""

    def __init__(self, text: str, file: str, folder: Path | None) -> None:
        self.variables: Variables = {}
        self.commands: list[ShellCommand] = []
        self.sourced: list[SourceText] = []
        self.unread: list[SettingPlace] = []
        self._script, self._folder, self._files = ScriptText(text, file), folder, {file}
        self._open: list[str] = []
        self._reads = ""
        self._tokens = self._depth = 0
        self._follow(self._script.words())

    # Statements

    def _follow(self, items: Iterator[Word]) -> None:
        words, guarded, reads = list[Word](), False, ""
        for item in items:
            if item.document is not None and reads:
                self.variables[reads] = self._counted(self._arguments(*item.document))
            elif item.document is not None and self._depth < _DEEPEST:
                self._depth += 1
                self._follow_apart(self._script, item.document)
                self._depth -= 1
            elif item.operator == "(" and words and self._is_array(words[-1]):
                inside = takewhile(lambda one: one.operator != ")", items)
                words[-1].array = [word for word in inside if word.pieces]
            elif item.operator:
                self._guarded(words, guarded=guarded, ends=item.operator)
                test = bool(words) and (self._plain(words[0]) in ("[", "[[", "test") or self._plain(words[-1]) == "]]")
                guarded = item.operator == "||" or (item.operator == "&&" and test)
                words = []
                if item.operator == "\n":
                    reads, self._reads = self._reads, ""
            elif item.pieces:
                words.append(item)
        self._guarded(words, guarded=guarded, ends="")

    def _follow_apart(self, script: ScriptText, part: tuple[int, int | None]) -> None:
        """Follow a document or a sourced file: a branch does not end in another one."""
        before, branches = self._script, len(self._open)
        self._script = script
        self._follow(script.words(*part))
        self._script = before
        del self._open[branches:]

    def _guarded(self, words: Sequence[Word], *, guarded: bool, ends: str) -> None:
        """Follow a statement that may depend on a test before it."""
        self._open += ["guard"] * guarded
        self._statement(words, ends)
        if guarded and "guard" in self._open:
            self._open.reverse()
            self._open.remove("guard")
            self._open.reverse()

    def _statement(self, words: Sequence[Word], ends: str) -> None:
        if len(self._open) > _MOST_OPEN:
            raise FormatError("the branches and loops of the script are nested too deeply")
        keyword, inner = self._plain(words[0]) if words else "", self._open[-1] if self._open else ""
        if keyword in ("fi", "done", "esac"):
            self._open = self._open[:-1]
        elif inner == "pattern":
            self._open[-1] = "case" if ends == ")" else "pattern"
        elif keyword == "case":
            self._open.append("case" if ends == ")" else "pattern")
        elif keyword in ("if", "for", "select", "while", "until"):
            self._open.append(keyword)
            if keyword in ("for", "select") and len(words) > 1:
                self.variables[self._plain(words[1])] = tuple(self._expanded(words[3])) if len(words) == 4 else _UNKNOWN
        elif keyword in ("then", "do", "else", "{", "!", "time", "function"):
            self._statement(words[1:], ends)
        elif words and keyword != "elif":
            self._command(words)
        if ends in (";;", ";&", ";;&") and self._open and self._open[-1] == "case":
            self._open[-1] = "pattern"

    def _command(self, words: Sequence[Word]) -> None:
        """Follow the assignments of a command, and record the rest of it."""
        rest = list(words)
        declares = self._plain(rest[0]) in _DECLARES
        while rest and ((assigns := self._assigns(rest[0])) or declares):
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
        command: list[Token] = []
        for token in (*self._counted(tokens), Token(";")):
            text = token.text.removesuffix(";")
            if text not in ("", "&&", "||", "|"):
                command.append(token if text == token.text else replace(token, text=text))
            if text != token.text or text in ("", "&&", "||", "|"):
                if command and command[0].text.startswith("--") and self.commands:
                    # A list of arguments without a command, or a line that a backslash should continue.
                    command = [*self.commands.pop().tokens, *command]
                if command:
                    self.commands.append(ShellCommand(tuple(command), bool({*self._open} - {"for", "while"})))
                command = []

    def _counted(self, tokens: Sequence[Token]) -> tuple[Token, ...]:
        self._tokens += len(tokens)
        return tuple(tokens if self._tokens <= _MOST_TOKENS else tokens[:_MOST_BEYOND])

    def _source(self, token: Token) -> None:
        """Follow a sourced file that lies beside the script or in the repository above it."""
        source = text_near(token.text, self._folder, "shell")
        if source is None or len(self.sourced) == _MOST_SOURCED or source.file in self._files:
            key = f"source {token.text.replace(OPEN, '...')}"
            self.unread += [replace(token.place, key=key)] if source is None and token.text.endswith(".sh") else []
            return
        folder, self._folder = self._folder, Path(source.file).parent
        self.sourced.append(source)
        self._files.add(source.file)
        self._follow_apart(ScriptText(source.text, source.file), (0, None))
        self._folder = folder

    # Assignments

    def _plain(self, word: Word) -> str:
        """Return the text of a word without expansions and quotes; empty for all others."""
        plain = all(piece.kind == "text" and not piece.quoted for piece in word.pieces)
        return "".join(self._script.text[piece.start : piece.end] for piece in word.pieces) if plain else ""

    def _assigns(self, word: Word) -> re.Match[str] | None:
        first = word.pieces[0]
        known = first.kind == "text" and not first.quoted
        return _ASSIGNED.match(self._script.text, first.start, first.end) if known else None

    def _is_array(self, word: Word) -> bool:
        match = self._assigns(word)
        return match is not None and len(word.pieces) == 1 and match.end() == word.pieces[0].end

    def _assign(self, word: Word, assigns: re.Match[str]) -> None:
        """Set a variable. What a branch sets differently from before is open: it may run or not."""
        first, name = word.pieces[0], assigns[1]
        rest = [] if assigns.end() == first.end else [Piece("text", assigns.end(), first.end)]
        values = [Word(pieces=[*rest, *word.pieces[1:]])] if word.array is None else word.array
        before = self.variables.get(name, ())
        added = tuple(token for value in values for token in self._expanded(value))
        tokens = self._counted((*before, *added) if assigns[2] else added)
        if "while" in self._open or "until" in self._open:
            # A loop over the arguments of the script, which has none here.
            return
        if {*self._open} - {"for", "select"} and [one.text for one in tokens] != [one.text for one in before]:
            if len(tokens) <= 1 and len(before) <= 1 and not any(_FLAG.match(one.text) for one in (*before, *tokens)):
                tokens = _UNKNOWN
            else:
                both = set(before) & set(tokens)
                union = dict.fromkeys((*before, *tokens))
                tokens = tuple(one if one in both else replace(one, undecided=True) for one in union)
        self.variables[name] = tokens

    # Words

    def _arguments(self, start: int, end: int) -> list[Token]:
        words = self._script.words(start, end, arguments=True)
        return [token for word in words for token in self._expanded(word)]

    def _expanded(self, word: Word) -> Iterator[Token]:
        """Yield the tokens of a word: several if it holds arguments, none for an empty expansion, else one."""
        text, undecided, first, last = "", False, None, None
        for piece in word.pieces:
            values: Sequence[Token] | None = None
            if piece.kind == "words":
                values = self._arguments(piece.start, piece.end)
            elif piece.kind == "expansion":
                values = self._value(piece)
            alone = len(word.pieces) == 1 and values is not None and len(values) > 1
            if values is not None and (alone or piece.kind == "words" or any(_FLAG.match(one.text) for one in values)):
                if first is not None and last is not None:
                    yield self._token(text, first, last, undecided=undecided)
                text, undecided, first, last = "", False, None, None
                yield from values
                continue
            if values is None:
                text += self._script.text[piece.start : piece.end].replace("\n", " ")
            else:
                text += " ".join(value.text for value in values)
                undecided |= any(value.undecided for value in values)
            if values or piece.quoted or values is None:
                first, last = first or piece, piece
        if first is not None and last is not None:
            yield self._token(text, first, last, undecided=undecided)

    def _token(self, text: str, first: Piece, last: Piece, *, undecided: bool) -> Token:
        (line, start), (last_line, end) = self._script.position(first.start), self._script.position(last.end)
        end = end if line == last_line else self._script.position(first.end)[1]
        return Token(text, SettingPlace(self._script.file, line, "", start, end), undecided)

    def _value(self, piece: Piece) -> Sequence[Token]:
        """Return the tokens of an expansion; an open one for what the script does not have."""
        text = self._script.text[piece.start : piece.end]
        if captured := self._script.captured(piece):
            return self._arguments(*captured)
        if text.startswith("$((") and text.endswith("))"):
            number = computed(text[3:-2], self.variables)
            return _UNKNOWN if number is None else (Token(str(number)),)
        if text.startswith(("$(", "`")) or "%/*}" in text:
            here = _HERE.search(text)
            known = self._folder is not None and (here or "BASH_SOURCE" in text)
            return (Token(f"{self._folder}{here[1] if here else ''}"),) if known else _UNKNOWN
        return () if text in ("$@", "$*", "${@}") else self._parameter(piece, text)

    def _parameter(self, piece: Piece, text: str) -> Sequence[Token]:
        match = _PARAMETER.fullmatch(text)
        if match is None:
            return _UNKNOWN
        operation, default, value = match[2] or "", (match[3] or "").removesuffix("}"), self.variables.get(match[1])
        start = piece.start + match.start(3)
        if operation in (":-", "-", ":=", "=") and (not value or value == _UNKNOWN):
            counts = default.strip("\"'") in ("0", "1") and _COUNTS.search(match[1].upper())
            return _UNKNOWN if counts else self._arguments(start, start + len(default))
        if operation in (":+", "+"):
            return self._arguments(start, start + len(default)) if value else ()
        return _UNKNOWN if value is None else value


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.Div: lambda left, right: int(left / right),
}


def computed(expression: str, variables: Variables) -> int | None:
    """Return the value of an expression of integers, variables and ``+ - * / %``; None for any other."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            result = int(_OPERATIONS[type(node.op)](value(node.left), value(node.right)))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            result = -value(node.operand)
        else:
            name = node.id if isinstance(node, ast.Name) else ""
            tokens = variables.get(name, ()) if name else (Token(ast.unparse(node)),)
            result = int(tokens[0].text) if len(tokens) == 1 and not tokens[0].undecided else int(OPEN)
        if abs(result) > 10**15:
            raise OverflowError
        return result

    try:
        plain = re.sub(r"\$\{?([A-Za-z_]\w*)\}?", r"\1", expression).strip()
        return value(ast.parse(plain, mode="eval").body) if len(expression) < 400 else None
    except (ValueError, SyntaxError, ArithmeticError, RecursionError, MemoryError):
        return None
