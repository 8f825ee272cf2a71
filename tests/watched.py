"""Reads files and answers questions while the interpreter says what it does: ``python -m tests.watched FOLDER``.

Everything is done twice, and watched the second time, when all modules are there: then nothing is left to import, compile or
connect to but what a file or a question itself would cause. What was seen is printed as JSON, with how much was done.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pipeplan.cli import main
from pipeplan.costs import load_config
from pipeplan.extensions.planning import read_calibration
from pipeplan.formats import read_file
from pipeplan.foundation.errors import PipeplanError
from tests.corpus.make import HERE
from tests.corpus.reading import figures

CODE = ("compile", "exec", "import", "marshal.loads", "pickle.find_class", "ctypes.dlopen", "code.__new__")
"""Events of ``sys.audit`` by which code of a file would run."""

OUTSIDE = (
    *("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "urllib.Request", "webbrowser.open"),
    *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
)
"""Those by which something would leave the machine, or a program start."""

QUESTIONS = (
    "compare -p 2 -m 3",
    "explain 1f1b -p 2 -m 3",
    "check {files}/schedule.json",
    "estimate {files}/configurations.json",
)


class _Runs:
    """Pickled, it would start a program where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("true",)


HOSTILE = {
    "object.yaml": b"ranks: !!python/object/apply:os.system ['true']\n",
    "name.yaml": b"ranks: !!python/name:os.system\n",
    "pickle.json": pickle.dumps(_Runs()),
    "pickle.costs.json": b"cposix\nsystem\n(S'true'\ntR.",
    "eval.csv": b"__import__('os').system('true'),0F0\n",
    "format.json": b'{"format": "os.system", "version": "{0.__class__}"}',
    "store.yaml": b"SQLite format 3\x00",
}


def done(folder: Path) -> Iterator[tuple[str, tuple[str, ...], Callable[[], Any]]]:
    """What is done, each with its name and what must not happen. The command line itself evaluates its own annotations."""
    for version in sorted(path for path in HERE.iterdir() if path.name[0].isdigit()):
        for name, record in json.loads((version / "files.json").read_text()).items():
            yield name, (*CODE, *OUTSIDE), partial(figures, version / "files" / name, record["holds"], folder)
    for name, content in HOSTILE.items():
        path = folder / name
        path.write_bytes(content)
        for read in (read_file, load_config, read_calibration):
            yield f"{read.__name__} of {name}", (*CODE, *OUTSIDE), partial(read, path)
    for question in QUESTIONS:
        words = question.format(files=HERE / "0.1" / "files").split()
        yield question, ("pickle.find_class", *OUTSIDE), partial(main, [*words, "--json"])


def tried(what: Callable[[], Any]) -> None:
    with contextlib.ExitStack() as quiet:
        quiet.enter_context(contextlib.redirect_stdout(io.StringIO()))
        quiet.enter_context(contextlib.redirect_stderr(io.StringIO()))
        quiet.enter_context(warnings.catch_warnings(action="ignore"))
        quiet.enter_context(contextlib.suppress(PipeplanError))
        what()


def watch(folder: Path) -> dict[str, Any]:
    """What was seen while everything was done for the second time."""
    everything = list(done(folder))
    everything.append(("planted", CODE, lambda: eval("1 + 1")))
    for _, _, what in everything:
        tried(what)
    seen: list[tuple[str, str, str]] = []
    now: tuple[str, tuple[str, ...]] = ("", ())

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in now[1]:
            seen.append((now[0], event, repr(arguments)[:100]))

    sys.addaudithook(hook)
    for name, forbidden, what in everything:
        now = (name, forbidden)
        tried(what)
        now = ("", ())
    return {"done": len(everything), "seen": seen}


if __name__ == "__main__":
    print(json.dumps(watch(Path(sys.argv[1]))))
