"""State of a shell script as it would run: its variables and commands, followed as far as the script itself says.

Assignments, arrays, arithmetic, tests, branches and functions are followed; nothing is executed. A branch whose condition
the script does not decide marks what it changes as undecided, and a value that only a running shell has is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from pipeplan.extensions.review.readers.arithmetic import computed
from pipeplan.extensions.review.readers.shell_words import Word, WordPart, words_of

OPEN = "\0"
"""Stands in a text for a part that only a running shell has."""

_NAME = re.compile(r"([A-Za-z_]\w*)(?:\[\w*\])?(\+?)=")
_FLAG = re.compile(r"(?:^|\s)--?[A-Za-z]")
_PARAMETER = re.compile(r"\$\{?([A-Za-z_]\w*)(?:\[[@*]\])?(?:(:?[-=+?])(.*))?\}?", re.DOTALL)
_DECLARES = frozenset({"export", "local", "readonly", "declare", "typeset"})
_BREAKS = frozenset({"\n", ";", "&", "&&", "||", "|", ")", ";;", ";&", ";;&"})
_DEPTH = 50
"""Maximum nesting of branches, and of defaults in defaults."""

_MOST_TOKENS = 40_000
"""Maximum number of tokens of all commands and variables together: variables may double each other."""


@dataclass(frozen=True, slots=True)
class Token:
    """Word as a command gets it; line from 1, columns, and whether the script leaves open that it is there."""

    text: str
    line: int
    start: int
    end: int
    undecided: bool = False


_UNKNOWN = (Token(OPEN, 0, -1, -1),)

Variables = dict[str, tuple[Token, ...]]


class ShellState:
    """Variables and commands of a script after it has been followed to its end."""

    def __init__(self, text: str) -> None:
        self.variables: Variables = {}
        self.commands: list[tuple[Token, ...]] = []
        self._words = list(words_of(text))
        self._at = 0
        self._undecided = 0
        self._dead = 0
        self._tokens = 0
        while self._at < len(self._words):
            self._block(frozenset(), 0)

    # Statements

    def _block(self, stops: frozenset[str], depth: int) -> str:
        """Follow statements up to one of these words at the start of a command; return it, or nothing at the end."""
        guard: bool | None = True
        while self._at < len(self._words):
            word = self._words[self._at]
            if word.operator:
                if word.operator in stops:
                    self._at += 1
                    return word.operator
                self._at += 1
                continue
            if word.plain in stops:
                self._at += 1
                return word.plain
            with_guard = guard is not True
            self._dead += with_guard and guard is False
            self._undecided += with_guard and guard is None
            result = self._statement(word.plain, depth)
            self._dead -= with_guard and guard is False
            self._undecided -= with_guard and guard is None
            guard = self._guard(result)
        return ""

    def _guard(self, result: bool | None) -> bool | None:
        """Return whether the next command runs, if ``&&`` or ``||`` stands before it; a command's success is assumed."""
        operator = self._words[self._at].operator if self._at < len(self._words) else ""
        if operator == "&&":
            return result
        if operator == "||":
            return None if result is None else not result
        return True

    def _statement(self, keyword: str, depth: int) -> bool | None:
        """Follow a statement; return the result of a test, and True for everything else."""
        if depth > _DEPTH:
            self._at += 1
        elif keyword == "if":
            self._if(depth + 1)
        elif keyword == "case":
            self._case(depth + 1)
        elif keyword in ("for", "select"):
            self._for(depth + 1)
        elif keyword in ("while", "until"):
            # Loops read the arguments of the script, which it does not have here.
            self._at += 1
            self._dead += 1
            self._block(frozenset({"do"}), depth + 1)
            self._block(frozenset({"done"}), depth + 1)
            self._dead -= 1
        elif keyword in ("{", "}", "!", "function", "then", "do", "done", "fi", "esac", "else", "elif", "time"):
            self._at += 1 + (keyword == "function")
        else:
            return self._command()
        return True

    def _if(self, depth: int) -> None:
        self._at += 1
        branches: list[Variables] = []
        before = dict(self.variables)
        decided, undecided, keyword = False, False, "if"
        while keyword in ("if", "elif", "else"):
            result = True if keyword == "else" else self._condition()
            dead = decided or result is False
            maybe = undecided or result is None
            self._dead += dead
            self._undecided += maybe
            keyword = self._block(frozenset({"elif", "else", "fi"}), depth)
            self._dead -= dead
            self._undecided -= maybe
            if not dead:
                branches.append(self.variables)
            self.variables = dict(before)
            decided = decided or result is True
            undecided = undecided or result is None
        self.variables = _merged(branches if decided else [*branches, before])

    def _condition(self) -> bool | None:
        """Return the truth of the words up to ``then``."""
        words: list[Word] = []
        while self._at < len(self._words) and self._words[self._at].plain != "then":
            words.append(self._words[self._at])
            self._at += 1
        self._at += 1
        while words and words[-1].operator in ("\n", ";"):
            words.pop()
        return self._truth(words)

    def _case(self, depth: int) -> None:
        subject = self._text(self._words[self._at + 1]) if self._at + 1 < len(self._words) else OPEN
        self._at += 2
        branches: list[Variables] = []
        before, decided, undecided = dict(self.variables), False, False
        while self._at < len(self._words):
            patterns = []
            while self._at < len(self._words) and self._words[self._at].operator != ")":
                word = self._words[self._at]
                self._at += 1
                if word.plain == "esac":
                    self.variables = _merged(branches if decided else [*branches, before])
                    return
                if word.pieces and word.plain != "in":
                    patterns.append(self._text(word))
            self._at += 1
            result = None if OPEN in subject or OPEN in "".join(patterns) else _matches(subject, patterns)
            result = True if patterns == ["*"] else result
            dead, maybe = decided or result is False, undecided or result is None
            self._dead += dead
            self._undecided += maybe
            stop = self._block(frozenset({";;", ";&", ";;&", "esac"}), depth)
            self._dead -= dead
            self._undecided -= maybe
            if not dead:
                branches.append(self.variables)
            self.variables = dict(before)
            decided, undecided = decided or result is True, undecided or result is None
            if stop == "esac":
                break
        self.variables = _merged(branches if decided else [*branches, before])

    def _for(self, depth: int) -> None:
        self._at += 1
        name = self._words[self._at].plain if self._at < len(self._words) else ""
        values: list[Token] = []
        while self._at < len(self._words) and self._words[self._at].plain != "do":
            self._at += 1
            word = self._words[self._at] if self._at < len(self._words) else Word()
            if word.pieces and word.plain not in ("in", "do"):
                values += self._expanded(word)
        self._at += 1
        if re.fullmatch(r"\w+", name):
            self._assign(name, tuple(values) if len(values) == 1 else _UNKNOWN)
        self._block(frozenset({"done"}), depth)

    def _command(self) -> bool | None:
        """Follow a command with its assignments; return the truth of a test."""
        start = self._at
        words: list[Word] = []
        while self._at < len(self._words):
            word = self._words[self._at]
            if word.operator in _BREAKS:
                break
            if word.operator == "(":
                if not self._array(words):
                    # A function's parentheses, or a subshell.
                    self._at += 1 + (self._operator_at(self._at + 1) == ")")
                    return True
                continue
            words.append(word)
            self._at += 1
        self._at = max(self._at, start + 1)
        if words and words[0].plain in ("[", "[[", "test"):
            while self._at < len(self._words) and words[0].plain == "[[" and words[-1].plain != "]]":
                words.append(self._words[self._at])
                self._at += 1
            return self._truth(words)
        declares = bool(words) and words[0].plain in _DECLARES
        while words and ((match := self._assigns(words[0])) or declares):
            if match:
                self._set(words[0], match)
            words.pop(0)
        if words:
            self._record(words)
        return {"true": True, "false": False}.get(words[0].plain if words else "", True)

    def _operator_at(self, place: int) -> str:
        return self._words[place].operator if place < len(self._words) else ""

    def _record(self, words: Sequence[Word]) -> None:
        if self._dead:
            return
        tokens = tuple(token for word in words for token in self._expanded(word))
        if self._undecided:
            tokens = tuple(replace(token, undecided=True) for token in tokens)
        if not tokens or not self._counted(len(tokens)):
            return
        if tokens[0].text.startswith("--") and self.commands:
            # A list of arguments without a command, or a line that a backslash should continue.
            self.commands[-1] += tokens
        else:
            self.commands.append(tokens)

    def _counted(self, count: int) -> bool:
        self._tokens += count
        return self._tokens <= _MOST_TOKENS

    # Assignments

    @staticmethod
    def _assigns(word: Word) -> re.Match[str] | None:
        first = word.pieces[0] if word.pieces else None
        return None if first is None or first.expands or first.quoted else _NAME.match(first.text)

    def _set(self, word: Word, match: re.Match[str]) -> None:
        first = word.pieces[0]
        rest = WordPart(first.text[match.end() :], first.line, first.start + match.end())
        value = Word(pieces=[*([rest] if rest.text else []), *word.pieces[1:]])
        self._assign(match[1], tuple(self._expanded(value)), more=bool(match[2]))

    def _array(self, words: list[Word]) -> bool:
        """Follow ``NAME=( ... )`` whose name is the last word, and drop the word; return False if it is none."""
        match = self._assigns(words[-1]) if words else None
        if match is None or match.end() != len(words[-1].pieces[0].text) or len(words[-1].pieces) > 1:
            return False
        words.pop()
        self._at += 1
        tokens: list[Token] = []
        while self._at < len(self._words) and self._words[self._at].operator != ")":
            if self._words[self._at].pieces:
                tokens += self._expanded(self._words[self._at])
            self._at += 1
        self._at += 1
        self._assign(match[1], tuple(tokens), more=bool(match[2]))
        return True

    def _assign(self, name: str, tokens: tuple[Token, ...], *, more: bool = False) -> None:
        if self._dead:
            return
        if more:
            tokens = self.variables.get(name, ()) + tokens
        self.variables[name] = tokens if self._counted(len(tokens)) else _UNKNOWN

    # Words

    def _expanded(self, word: Word) -> Iterator[Token]:
        """Yield the tokens of a word: several if it holds flags, else one; none for an empty expansion."""
        values = [self._value(piece) if piece.expands else None for piece in word.pieces]
        flags = any(
            value is not None and any(token.text.startswith("-") and _FLAG.match(token.text) for token in value)
            for value in values
        ) or any(piece.quoted and not piece.expands and _FLAG.search(piece.text) for piece in word.pieces)
        if flags:
            yield from _split(word, values)
            return
        text = "".join(
            piece.text if value is None else " ".join(token.text for token in value)
            for piece, value in zip(word.pieces, values, strict=True)
        )
        if text or any(piece.quoted for piece in word.pieces):
            first, last = word.pieces[0], word.pieces[-1]
            end = last.end if last.line == first.line else first.end
            undecided = any(token.undecided for value in values if value for token in value)
            yield Token(text, first.line, first.start, end, undecided)

    def _text(self, word: Word) -> str:
        return " ".join(token.text for token in self._expanded(word))

    def _value(self, piece: WordPart, depth: int = 0) -> tuple[Token, ...]:
        """Return the tokens of an expansion; an open one for what the script does not have."""
        text = piece.text
        if text.startswith("$((") and text.endswith("))"):
            number = computed(text[3:-2], self._number)
            return _UNKNOWN if number is None else (replace(_UNKNOWN[0], text=str(number)),)
        match = _PARAMETER.fullmatch(text)
        if match is None or depth > _DEPTH:
            # Parameters of the script have a default at most.
            match = re.fullmatch(r"\$\{(\d+)(:?[-=])(.*)\}", text, re.DOTALL)
            if match is None or depth > _DEPTH:
                return _UNKNOWN
        name, operator, default = match[1], match[2], (match[3] or "").removesuffix("}")
        value = self.variables.get(name)
        if default.strip("\"'") == "1" and "NODE" in name.upper():
            # One node is what a script has until its environment says how many there are.
            return _UNKNOWN if value is None else value
        if operator in (":-", "-", ":=", "=") and (not value or value == _UNKNOWN):
            return self._default(default, piece, depth)
        if operator in (":+", "+"):
            return self._default(default, piece, depth) if value else ()
        return _UNKNOWN if value is None else value

    def _default(self, text: str, piece: WordPart, depth: int) -> tuple[Token, ...]:
        words = [word for word in words_of(text) if word.pieces]
        at = piece.start + piece.text.find(text)
        tokens: list[Token] = []
        for word in words:
            inner = [replace(part, line=piece.line, start=at + part.start) for part in word.pieces]
            texts = (
                " ".join(token.text for token in self._value(part, depth + 1)) if part.expands else part.text
                for part in inner
            )
            tokens.append(Token("".join(texts), piece.line, inner[0].start, inner[-1].end))
        return tuple(tokens)

    def _number(self, name: str) -> str | None:
        value = self.variables.get(name)
        text = value[0].text if value and len(value) == 1 and not value[0].undecided else ""
        return text if text.isdigit() else None

    # Tests

    def _truth(self, words: Sequence[Word]) -> bool | None:
        """Return the truth of tests joined by ``&&`` and ``||``; None if the script does not decide it."""
        result: bool | None = True
        operator, part = "&&", list[Word]()
        for word in [*words, Word(operator=";")]:
            if word.operator in ("&&", "||", ";", "\n"):
                result = _joined(result, operator, self._test(part))
                operator, part = word.operator, []
            else:
                part.append(word)
        return result

    def _test(self, words: Sequence[Word]) -> bool | None:
        parts = [word for word in words if word.plain not in ("[", "[[", "]", "]]", "test")]
        negated = bool(parts) and parts[0].plain == "!"
        if negated:
            parts = parts[1:]
        result = self._compared(parts)
        return None if result is None else result != negated

    def _compared(self, parts: Sequence[Word]) -> bool | None:
        tokens = [token for word in parts for token in self._expanded(word)]
        if any(word.operator for word in parts) or any(OPEN in token.text or token.undecided for token in tokens):
            return None
        return _decided([self._text(word) for word in parts])


def _decided(texts: Sequence[str]) -> bool | None:
    """Return the truth of a test of texts; None for a test of files, and any other."""
    result: bool | None = None
    match texts:
        case ["true" | ":"]:
            result = True
        case ["false"]:
            result = False
        case ["-z" | "-n" as operator, text]:
            result = (text == "") == (operator == "-z")
        case [left, "=" | "==" | "!=" as operator, right]:
            result = fnmatchcase(left, right) != (operator == "!=")
        case [left, operator, right]:
            result = _ordered(left, operator, right)
    return result


def _ordered(left: str, operator: str, right: str) -> bool | None:
    if not (re.fullmatch(r"-?\d{1,18}", left) and re.fullmatch(r"-?\d{1,18}", right)):
        return None
    difference = int(left) - int(right)
    results = {
        "-eq": difference == 0,
        "-ne": difference != 0,
        "-gt": difference > 0,
        "-ge": difference >= 0,
        "-lt": difference < 0,
        "-le": difference <= 0,
    }
    return results.get(operator)


def _joined(left: bool | None, operator: str, right: bool | None) -> bool | None:
    decides = operator == "||"
    if left is decides or right is decides:
        return decides
    return None if left is None or right is None else not decides


def _matches(subject: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(subject, pattern) for pattern in patterns)


def _split(word: Word, values: Sequence[tuple[Token, ...] | None]) -> Iterator[Token]:
    """Yield the tokens of a word that holds flags: its parts between blanks, and the tokens of its variables."""
    current: Token | None = None
    for piece, value in zip(word.pieces, values, strict=True):
        if value is not None and (len(value) != 1 or _FLAG.match(value[0].text)):
            if current:
                yield current
            current = None
            yield from value
            continue
        text = piece.text if value is None else value[0].text
        parts = re.finditer(r"\s+|\S+", text) if piece.quoted and value is None else re.finditer(r".+", text, re.DOTALL)
        for part in parts:
            start = piece.start + (part.start() if value is None else 0)
            end = piece.start + part.end() if value is None else piece.end
            if part[0].isspace():
                if current:
                    yield current
                current = None
            elif current is None:
                current = Token(part[0], piece.line, start, end)
            else:
                current = replace(current, text=current.text + part[0], end=end)
    if current:
        yield current


def _merged(branches: Sequence[Mapping[str, tuple[Token, ...]]]) -> Variables:
    """Return variables after one of several branches: what differs is open, or has undecided tokens."""
    if len(branches) == 1:
        return dict(branches[0])
    merged: Variables = {}
    for name in dict.fromkeys(name for branch in branches for name in branch):
        values = [branch.get(name, ()) for branch in branches]
        if all(value == values[0] for value in values):
            merged[name] = values[0]
        elif max(map(len, values)) <= 1:
            merged[name] = _UNKNOWN
        else:
            common = set(values[0]).intersection(*values[1:])
            tokens = dict.fromkeys(token for value in values for token in value)
            merged[name] = tuple(token if token in common else replace(token, undecided=True) for token in tokens)
    return merged
