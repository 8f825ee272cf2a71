"""Variables and commands of a shell script.

A script is not run: its variables, arrays and sourced files are followed in their order. What a branch or loop sets
differently from the rest of the script is unsaid, and so is what only a running shell has.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
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

_MOST_COPIES = 1_000_000
"""Maximum number of variables that are remembered for all branches together."""

_MOST_SOURCED = 20
_DEEPEST = 10
"""Maximum nesting of here-documents."""


@dataclass(frozen=True, slots=True)
class Token:
    """Word as a command gets it with its place, and whether the script leaves open that it is there."""

    text: str
    file: str = ""
    line: int = 0
    start: int = -1
    end: int = -1
    undecided: bool = False


_UNKNOWN = (Token(OPEN),)

Variables = dict[str, tuple[Token, ...]]


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """Command of a script, and whether it stands in a branch or loop."""

    tokens: tuple[Token, ...]
    branch: bool


@dataclass(slots=True)
class _Branches:
    """Variables before a branch and behind those parts of it that have ended."""

    keyword: str
    before: Variables
    ended: list[Variables] = field(default_factory=list)
    every: bool = False


class ShellState:
    """Variables and commands of a script that has been followed to its end."""

    def __init__(self, text: str, file: str, folder: Path | None) -> None:
        self.variables: Variables = {}
        self.commands: list[ShellCommand] = []
        self.sourced: list[SourceText] = []
        self.unread: list[SettingPlace] = []
        self._branches: list[_Branches] = []
        self._tokens = self._copies = self._depth = 0
        self._script, self._folder = ScriptText(text, file), folder
        self._files = {file}
        self._follow(self._script.words())

    # Statements

    def _follow(self, items: Iterator[Word]) -> None:
        words: list[Word] = []
        guarded = False
        for item in items:
            if item.document is not None:
                self._document(words, item.document)
            elif item.operator == "(" and words and self._array(words[-1]):
                words[-1].array = list(self._until_closed(items))
            elif item.operator:
                self._statement(words, guarded=guarded, ends=item.operator)
                test = bool(words) and self._plain(words[0]) in ("[", "[[", "test")
                test = test or (bool(words) and self._plain(words[-1]) == "]]")
                guarded = item.operator == "||" or (item.operator == "&&" and test)
                if item.operator != "\n" or not words or self._plain(words[0]) != "read":
                    words = []
            else:
                words.append(item)
        self._statement(words, guarded=guarded, ends="")

    @staticmethod
    def _until_closed(items: Iterator[Word]) -> Iterator[Word]:
        for item in items:
            if item.operator == ")":
                return
            if item.pieces:
                yield item

    def _document(self, words: list[Word], document: tuple[int, int]) -> None:
        """Follow the lines of a document, which may be a script of its own, or the value of ``read -d '' NAME``."""
        if words and (name := self._plain(words[-1])):
            self.variables[name] = self._counted(self._arguments(*document))
            words.clear()
        elif self._depth < _DEEPEST:
            self._depth += 1
            self._follow(self._script.words(*document))
            self._depth -= 1

    def _statement(self, words: Sequence[Word], *, guarded: bool, ends: str) -> None:
        keyword = self._plain(words[0]) if words else ""
        if self._branches and self._branches[-1].keyword == "pattern":
            if keyword == "esac":
                self._close()
            elif ends == ")":
                self._branches[-1].keyword = "case"
                self._branches[-1].every |= [self._plain(word) for word in words] == ["*"]
        elif keyword in ("if", "for", "select", "while", "until", "case"):
            self._open("pattern" if keyword == "case" else keyword)
            if keyword == "case" and ends == ")":
                self._branches[-1].keyword = "case"
            if keyword == "for" and len(words) > 1:
                self.variables[self._plain(words[1])] = tuple(self._expanded(words[3])) if len(words) == 4 else _UNKNOWN
        elif keyword in ("elif", "else") and self._branches:
            self._next(every=keyword == "else")
            if keyword == "else":
                self._statement(words[1:], guarded=False, ends=ends)
        elif keyword in ("fi", "done", "esac"):
            self._close()
        elif keyword in ("then", "do", "{", "!", "time", "function"):
            self._statement(words[1:], guarded=guarded, ends=ends)
        elif words and guarded:
            self._open("if")
            self._command(words)
            self._close()
        elif words:
            self._command(words)
        if ends in (";;", ";&", ";;&") and self._branches and self._branches[-1].keyword == "case":
            self._next()
            self._branches[-1].keyword = "pattern"

    def _open(self, keyword: str) -> None:
        self._branches.append(_Branches(keyword, self._copied()))

    def _next(self, *, every: bool = False) -> None:
        branches = self._branches[-1]
        branches.ended.append(self.variables)
        branches.every |= every
        self.variables = dict(branches.before)
        self._copied()

    def _close(self) -> None:
        if self._branches:
            branches = self._branches.pop()
            ended = branches.ended if branches.keyword == "pattern" else [*branches.ended, self.variables]
            # A loop over the arguments of the script has none here.
            loops = branches.keyword in ("while", "until")
            self.variables = (
                branches.before if loops else _merged(ended if branches.every else [*ended, branches.before])
            )

    def _copied(self) -> Variables:
        self._copies += len(self.variables)
        if self._copies > _MOST_COPIES:
            raise FormatError("the script has too many variables in branches")
        return dict(self.variables)

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
        self._record(tokens)

    def _record(self, tokens: Sequence[Token]) -> None:
        command: list[Token] = []
        for token in (*self._counted(tokens), Token(";")):
            if token.text in (";", "&&", "||", "|"):
                if command and command[0].text.startswith("--") and self.commands:
                    # A list of arguments without a command, or a line that a backslash should continue.
                    last = self.commands.pop()
                    command = [*last.tokens, *command]
                if command:
                    self.commands.append(ShellCommand(tuple(command), bool(self._branches)))
                command = []
            else:
                command.append(
                    replace(token, text=token.text.removesuffix(";"), end=token.end - token.text.endswith(";"))
                )

    def _counted(self, tokens: Sequence[Token]) -> tuple[Token, ...]:
        self._tokens += len(tokens)
        return tuple(tokens if self._tokens <= _MOST_TOKENS else tokens[:_MOST_BEYOND])

    def _source(self, token: Token) -> None:
        """Follow a sourced file that lies beside the script or in the repository above it."""
        source = text_near(token.text.rpartition(OPEN)[2], self._folder, "shell")
        if source is None or len(self.sourced) >= _MOST_SOURCED or source.file in self._files:
            place = SettingPlace(token.file, token.line, f"source {token.text.replace(OPEN, '...')}")
            self.unread += [place] if source is None and token.text.endswith(".sh") else []
            return
        script, folder = self._script, self._folder
        self.sourced.append(source)
        self._files.add(source.file)
        self._script, self._folder = ScriptText(source.text, source.file), Path(source.file).parent
        self._follow(self._script.words())
        self._script, self._folder = script, folder

    # Assignments

    def _plain(self, word: Word) -> str:
        """Return the text of a word without expansions and quotes; empty for all others."""
        if any(piece.kind != "text" or piece.quoted for piece in word.pieces):
            return ""
        return "".join(self._script.text[piece.start : piece.end] for piece in word.pieces)

    def _assigns(self, word: Word) -> re.Match[str] | None:
        first = word.pieces[0]
        known = first.kind == "text" and not first.quoted
        return _ASSIGNED.match(self._script.text, first.start, first.end) if known else None

    def _array(self, word: Word) -> bool:
        match = self._assigns(word)
        return match is not None and len(word.pieces) == 1 and match.end() == word.pieces[0].end

    def _assign(self, word: Word, assigns: re.Match[str]) -> None:
        first = word.pieces[0]
        rest = [] if assigns.end() == first.end else [Piece("text", assigns.end(), first.end)]
        values = [Word(pieces=[*rest, *word.pieces[1:]])] if word.array is None else word.array
        before = self.variables.get(assigns[1], ()) if assigns[2] else ()
        tokens = [token for value in values for token in self._expanded(value)]
        self.variables[assigns[1]] = self._counted((*before, *tokens))

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
        return Token(text, self._script.file, line, start, end, undecided)

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
        if text in ("$@", "$*", "${@}"):
            return ()
        match = _PARAMETER.fullmatch(text)
        if match is None:
            return _UNKNOWN
        name, operation, value = match[1], match[2] or "", self.variables.get(match[1])
        default = (match[3] or "").removesuffix("}")
        if operation in (":-", "-", ":=", "=") and (not value or value == _UNKNOWN):
            if default.strip("\"'") in ("0", "1") and _COUNTS.search(name.upper()):
                return _UNKNOWN
            return self._arguments(piece.start + match.start(3), piece.start + match.start(3) + len(default))
        if operation in (":+", "+"):
            return (
                self._arguments(piece.start + match.start(3), piece.start + match.start(3) + len(default))
                if value
                else ()
            )
        return _UNKNOWN if value is None else value


def _merged(branches: Sequence[Variables]) -> Variables:
    """Return variables after one of several branches: what differs is open, or has undecided tokens."""
    merged: Variables = {}
    for name in dict.fromkeys(name for branch in branches for name in branch):
        values = [branch.get(name, ()) for branch in branches]
        texts = [[(token.text, token.undecided) for token in value] for value in values]
        if all(value == values[0] for value in values):
            merged[name] = values[0]
        elif all(text == texts[0] for text in texts):
            # Said in several places, of which a patch would change one.
            merged[name] = tuple(Token(text, undecided=undecided) for text, undecided in texts[0])
        elif max(map(len, values)) <= 1:
            merged[name] = _UNKNOWN
        else:
            common = set(values[0]).intersection(*values[1:])
            tokens = dict.fromkeys(token for value in values for token in value)
            merged[name] = tuple(token if token in common else replace(token, undecided=True) for token in tokens)
    return merged


_OPERATIONS = {
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
