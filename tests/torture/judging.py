"""What no command may ever do, whatever it is given."""

from __future__ import annotations

import json
import re
import shlex
import signal
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.torture.suite import Found

_CODES = (0, 1, 2)
_WARNING = re.compile(r"^\S*:\d+: \w*Warning: .*", re.MULTILINE)
_KILLED = {signal.SIGKILL}
"""After which a process that clears up behind the command says what it cleared up."""
_SHOWN = 300
"""Signs of a command line or an output that a finding quotes."""


@dataclass(frozen=True)
class Ran:
    """How a command ended.

    Attributes
    ----------
    arguments
        What stood behind ``pipeplan``.
    code
        Its exit code, negative where a signal ended it.
    out, err
        What it wrote; empty where that went elsewhere.
    seconds
        How long it took.
    signal
        Which ended it, if one did.
    hung
        Whether it had to be killed as it took too long.
    left
        Processes of its own that outlived it.
    sent
        The signals that it was sent.
    """

    arguments: tuple[str, ...]
    code: int
    out: bytes
    err: bytes
    seconds: float
    signal: int | None = None
    hung: bool = False
    left: tuple[int, ...] = ()
    sent: tuple[int, ...] = ()

    @property
    def stdout(self) -> str:
        """What it wrote to stdout."""
        return self.out.decode(errors="replace")

    @property
    def stderr(self) -> str:
        """What it wrote to stderr."""
        return self.err.decode(errors="replace")

    @property
    def line(self) -> str:
        """The command as a shell takes it, cut where it is long."""
        return _cut(shlex.join(["pipeplan", *self.arguments]))

    def json(self) -> Any:
        """Its stdout as one JSON object. Raises Found where it is none."""
        try:
            found = json.loads(self.out, object_pairs_hook=_once, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise Found(f"stdout is not JSON ({error}): {self.line}: {_cut(self.stdout)!r}") from None
        if not isinstance(found, dict):
            raise Found(f"stdout is JSON, but no object: {self.line}")
        return found


def judged(ran: Ran) -> str:
    """What came of a command in one word, ``answered``, ``negative``, ``refused`` or ``ended`` by a signal.

    Raises
    ------
    Found
        For a hang, a crash, a traceback, an exit code that is none of ours, processes left behind, an error without a
        sentence or with several paragraphs, what is no JSON under ``--json``, and signs that do something to a terminal.
    """
    for wrong in _wrong(ran):
        raise Found(f"{wrong}: {ran.line}")
    options = ran.arguments[: ran.arguments.index("--")] if "--" in ran.arguments else ran.arguments
    if "--json" in options and ran.out.strip():
        ran.json()
    return {0: "answered", 1: "negative", 2: "refused"}.get(ran.code, "ended")


def _wrong(ran: Ran) -> Iterator[str]:
    both = ran.stdout + ran.stderr
    error = ran.stderr.strip()
    if ran.hung:
        yield f"hangs: no end after {ran.seconds:.0f} s"
    if "Traceback (most recent call last)" in both and not _is_shown(ran):
        yield f"a traceback ({error.splitlines()[-1] if error else '?'})"
    if "should not have happened" in both:
        yield f"an error of last resort ({_cut(error)!r})"
    if ran.code not in _CODES and not _by_signal(ran):
        yield f"exit code {ran.code} ({_cut(error)!r})"
    if ran.left:
        yield f"{len(ran.left)} processes outlive it"
    if ran.code == 2 and not error:
        yield "exit code 2 without a word on stderr"
    if ran.code == 1 and not error and not ran.out.strip():
        yield "exit code 1 without a word"
    if ran.code == 2 and re.search(r"\n\s*\n", error) and not _is_shown(ran):
        yield f"an error of several paragraphs ({_cut(error)!r})"
    if any(not (_KILLED & {*ran.sent} and "resource_tracker" in line) for line in _WARNING.findall(ran.stderr)):
        yield f"a warning of Python's ({_cut(error)!r})"
    for name, text in (("stdout", ran.out), ("stderr", ran.err)):
        if (sign := _harmful(text)) is not None:
            yield f"{name} holds {sign}"


def _is_shown(ran: Ran) -> bool:
    """Whether a traceback was asked for, and is of an error that is raised on purpose."""
    asked = "--debug" in ran.arguments or "--debug=true" in ran.arguments
    return asked and re.search(r"^(pipeplan\.errors|cyclopts\.exceptions)\.\w+: ", ran.stderr, re.MULTILINE) is not None


def _by_signal(ran: Ran) -> bool:
    """Whether a command that was sent a signal ended as that says."""
    return any(ran.code in (128 + number, -number) for number in ran.sent)


def _harmful(text: bytes) -> str | None:
    """A sign that does something to a terminal or to the text around it, in words; None where there is none."""
    try:
        signs = set(text.decode())
    except UnicodeDecodeError as error:
        return f"bytes that are no UTF-8 ({text[max(error.start - 10, 0) : error.start + 10]!r})"
    for sign in sorted(signs - set("\n\t")):
        kind = unicodedata.category(sign)
        if kind in {"Cc", "Cs", "Zl", "Zp"} or unicodedata.bidirectional(sign) in _TURNING:
            return f"the sign {sign.encode('unicode_escape').decode()}"
    return None


_TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""Marks that change the direction of what follows."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _cut(text: str) -> str:
    text = "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode() for sign in text
    )
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} signs)"


def signal_name(number: int) -> str:
    """``SIGSEGV``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
