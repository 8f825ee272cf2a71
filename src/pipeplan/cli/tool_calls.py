"""Calls of tools: each one a command in a process of its own, within a time limit."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeplan.cli.tools import FIELDS, PICTURE, Json, Tool, as_arguments, parts_of, words_of
from pipeplan.errors import InputError, PipeplanError

GRACE = 10.0
"""Seconds that a command has after its time limit to answer with what it has, and to clean up."""

LARGEST = 1 << 20
"""Maximum number of characters of an answer."""

_ERROR = "pipeplan: "
"""Beginning of an error message."""

_WRITTEN = "wrote "
"""Beginning of a message that names a file."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """Answer of a tool.

    Attributes
    ----------
    text
        The answer; the document as JSON if there is one.
    document
        The object that ``--json`` prints, or the parts of it that the call selects.
    messages
        Messages beside the answer, such as the names of written files.
    picture
        The picture as the content of a PNG file.
    """

    text: str
    document: Json | None = None
    messages: tuple[str, ...] = ()
    picture: bytes | None = None


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """A command that has ended.

    Attributes
    ----------
    late
        True if the time limit ended it.
    code
        Exit code.
    output, messages
        What it wrote to standard output and standard error.
    """

    late: bool
    code: int
    output: str
    messages: str


async def called(tool: Tool, call: Mapping[str, Any], *, seconds: float) -> ToolAnswer:
    """Run a tool in a process of its own, and return its answer.

    Cancelling ends the process and those that it started. Paths are relative to the working directory.

    Parameters
    ----------
    tool
        Command.
    call
        Values by the names of the tool's arguments, as :func:`~pipeplan.cli.tools.words_of` takes them.
    seconds
        Time limit, after which a search or a plan answers with its best result so far, and other commands do not answer.
    """
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        picture = folder / "picture.png"
        words = words_of(tool, call, folder)
        switches = [f"--output={picture}"] if call.get(PICTURE) else []
        switches += ["--json"] if tool.answers_json else []
        ended = await _ran([words[0], *switches, *words[1:]], seconds)
        if not ended.output:
            _require_success(tool, ended, folder, seconds)
        answer = ended.output.replace(f"{folder}/", "")
        lines = ended.messages.replace(f"{folder}/", "").splitlines()
        document = _document(answer, call.get(FIELDS) or []) if tool.answers_json else None
        if document is not None:
            answer = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
            lines = [line for line in lines if line.startswith(_WRITTEN)]
        if len(answer) > LARGEST:
            remedy = f"select parts of it with {FIELDS}" if tool.answers_json else "write it to a file with output"
            raise InputError(f"the answer has {len(answer):,} characters, more than {LARGEST:,}: {remedy}")
        return ToolAnswer(
            answer,
            document,
            (
                *(line for line in lines if line != f"{_WRITTEN}{picture.name}"),
                *((f"ended after {seconds:g} s",) if ended.late else ()),
            ),
            picture.read_bytes() if picture.is_file() else None,
        )


async def _ran(words: list[str], seconds: float) -> EndedProcess:
    """Run a command line in a process group of its own, which ends with this call."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's background job ignores interrupts, and its processes inherit that, but no handler: with one that does
        # nothing, the time limit still interrupts the command.
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "pipeplan", *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, UnicodeError) as error:
        raise InputError(f"the arguments cannot be passed to a process: {error}; put long ones into a file") from None
    texts = asyncio.ensure_future(process.communicate())
    try:
        late = not (await asyncio.wait({texts}, timeout=seconds))[0]
        if late:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            await asyncio.wait({texts}, timeout=GRACE)
    finally:
        if not texts.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    output, messages = (text.decode(errors="replace") for text in await texts)
    assert process.returncode is not None
    return EndedProcess(late, process.returncode, output, messages)


def _require_success(tool: Tool, ended: EndedProcess, folder: Path, seconds: float) -> None:
    """Raise the error of a command without an answer, with the names of the tool's arguments in the place of options."""
    if ended.late:
        raise InputError(
            f"no answer within {seconds:g} s: try a smaller request, or a longer limit: pipeplan mcp --seconds"
        )
    if ended.code != 0:
        message = ended.messages.rpartition(f"\n{_ERROR}")[2].removeprefix(_ERROR).replace(f"{folder}/", "")
        text = as_arguments(message, tool.arguments)
        raise PipeplanError(
            " ".join(text.split()) or "the process ended early, probably out of memory; try a smaller request"
        )


def _document(text: str, fields: list[str]) -> Json:
    """Return an answer in JSON, or the parts of it at these paths."""
    try:
        document: Json = json.loads(text)
    except ValueError:
        raise InputError("the answer is incomplete: the process was stopped while it wrote it") from None
    return parts_of(document, fields)
