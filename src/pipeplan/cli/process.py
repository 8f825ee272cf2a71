"""The command line as a process: its streams, its signals, its memory, and the exit code.

Only the standard library is loaded here, so that what is too much for a machine fails where it becomes a sentence.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pipeplan.cli.answers import tell
from pipeplan.cli.shortage import memory_limit, shortage
from pipeplan.cli.signals import Ended, ended_by_signals
from pipeplan.cli.streams import standard_streams


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done; 1 the answer is no; 2 the input is wrong, or no answer can be given.

    A signal that ends it gives 128 and its number, as shells do.

    Parameters
    ----------
    arguments
        What stands behind ``pipeplan`` on the command line; ``sys.argv``'s where None.
    """
    if arguments is not None:
        return _ended(list(arguments))
    if "--debug" not in sys.argv:
        threading.excepthook = _say_no_more
    sys.unraisablehook = let_go
    code = _ended(sys.argv[1:])
    _leave_kernels(code)
    return code


def _ended(given: Sequence[str]) -> int:
    if memory_limit() is None:
        return _run(given)
    from pipeplan.cli.watching import watched  # few processes are limited

    return watched(partial(_run, given), debug="--debug" in given)


def _leave_kernels(code: int) -> None:
    """End this process at once where a kernel is still being compiled, for which nobody waits and which nothing can end.

    An interpreter that ends in its own way would take LLVM apart while a thread is in it, and be aborted.
    """
    kernels = sys.modules.get("pipeplan.kernels")
    if kernels is not None and kernels.are_being_compiled():
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(code)


def _run(given: Sequence[str]) -> int:
    try:
        with ended_by_signals() as signals, standard_streams() as answer:
            code = _answered(given, signals.require_none)
            signals.require_none()
            sys.stdout.flush()
            if answer is None or answer.failure is None:
                return code
            tell(f"pipeplan: the answer cannot be written: {_reason(answer.failure)}")
            return 2
    except KeyboardInterrupt:
        return 130
    except Ended as end:
        return end.code


def _say_no_more(died: threading.ExceptHookArgs) -> None:
    """A library's thread that gets too little of something dies; who waits for it says so in a sentence."""
    if died.exc_value is None or shortage(died.exc_value) is None:
        threading.__excepthook__(died)


def let_go(what: Any) -> None:
    """Have nobody wait for a thread that died before it could say that it has begun, as for lack of memory.

    Python would wait for ever (``Thread.start``). Anything else is told as ever.
    """
    thread = getattr(what.object, "__self__", None)
    begun = getattr(thread, "_started", None)
    if not isinstance(thread, threading.Thread) or begun is None or begun.is_set():
        sys.__unraisablehook__(what)
        return
    thread._is_stopped = True  # type: ignore[attr-defined]  # what Python 3.11 and 3.12 ask whether it lives
    begun.set()


def _answered(given: Sequence[str], before_errors: Callable[[], None]) -> int:
    """The exit code of a command. What its errors say needs the command line itself, for which there may be no room."""
    try:
        from pipeplan.cli.app import answered

        return answered(given, before_errors)
    except Exception as error:
        before_errors()
        short = shortage(error)
        if short is None or "--debug" in given:
            traceback.print_exc()
        else:
            tell(f"pipeplan: {short}")
        return 2


def _reason(failure: OSError) -> str:
    if failure.errno == errno.EBADF:
        return "standard output is closed, or only to be read"
    return (failure.strerror or str(failure)).lower()
