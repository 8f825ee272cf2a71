"""The command line as a process: its streams, its signals and its exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from pipeplan.cli.answers import tell
from pipeplan.cli.signals import Terminated, ended_by_signals
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
        return _run(list(arguments))
    code = _run(sys.argv[1:])
    _leave_kernels(code)
    return code


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
            from pipeplan.cli.app import answered  # takes a while to load: a signal then ends the command as later

            code = answered(given, signals.require_none)
            signals.require_none()
            sys.stdout.flush()
            if answer is None or answer.failure is None:
                return code
            tell(f"pipeplan: the answer cannot be written: {_reason(answer.failure)}")
            return 2
    except KeyboardInterrupt:
        return 130
    except Terminated as end:
        return end.code


def _reason(failure: OSError) -> str:
    if failure.errno == errno.EBADF:
        return "standard output is closed, or only to be read"
    return (failure.strerror or str(failure)).lower()
