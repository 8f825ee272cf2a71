"""A command whose memory is limited, watched by a process that does nothing else.

Libraries in C do not raise where memory ends: they abort, or leave with an exit code of their own that would be taken for an
answer. No handler within the process can turn that into a sentence. So a limited command works in a child.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from pipeplan.cli.answers import tell
from pipeplan.cli.shortage import memory_limit, sentence_for
from pipeplan.cli.streams import standard_streams

_PR_SET_PDEATHSIG = 1

_MOST_NOISE = 1 << 16
"""Bytes of what libraries wrote to standard error by themselves that are handed on."""


def watched(work: Callable[[], int], *, debug: bool = False) -> int:
    """The exit code of ``work``, or 2 and a sentence where its process died of too little memory.

    Without a limit on memory, or where output goes to somewhere else than the process's own streams, it works right here.

    Parameters
    ----------
    work
        The command.
    debug
        Whether what libraries in C said is shown in any case; else a command that failed has said why in a sentence.
    """
    own = sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__
    alone = threading.current_thread() is threading.main_thread()
    if sys.platform != "linux" or memory_limit() is None or not (own and alone):
        return work()
    try:
        noise, (report, told) = os.memfd_create("stderr"), os.pipe()
        with _signals_wait():
            parent, child = os.getpid(), os.fork()
            if child:
                status = _ended(child)
    except OSError:  # the system gives neither files nor processes: unwatched, then
        return work()
    if not child:
        _work(work, parent, told, noise)
    os.close(told)
    said = os.read(report, 16)
    os.close(report)
    code = int(said) if said else _code_of_death(status)
    if debug or code < 2:
        _hand_on(noise)
    os.close(noise)
    return code


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Signals are looked at one by one; a child that ends is not forgotten."""
    reaping = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_HANDED_ON, signal.SIGCHLD})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, reaping)


_HANDED_ON = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def _ended(child: int) -> int:
    """How the child has ended. What was sent to this process alone is sent on; a terminal tells both by itself."""
    while True:
        number, sent = os.waitpid(child, os.WNOHANG)
        if number:
            return sent
        info = signal.sigwaitinfo({*_HANDED_ON, signal.SIGCHLD})
        if info.si_signo in _HANDED_ON and info.si_code <= 0:
            with suppress(ProcessLookupError):
                os.kill(child, info.si_signo)


def _code_of_death(status: int) -> int:
    """The exit code for a process that could not say its own, and the sentence where that needs one."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in _HANDED_ON:
        return 128 + os.WTERMSIG(status)
    with standard_streams():
        tell(f"pipeplan: {sentence_for('memory')}")
    return 2


def _hand_on(noise: int) -> None:
    """What libraries said, without a newline at its end being lost or anything raised."""
    with standard_streams():
        text = os.pread(noise, _MOST_NOISE, 0).decode(errors="replace")
        sys.stderr.write(text)


def _work(work: Callable[[], int], parent: int, told: int, noise: int) -> NoReturn:
    """What the child does: messages of ours go where they always go, what libraries in C say is kept apart."""
    code = 2
    try:
        _die_with(parent)
        if sys.stderr is not None:
            own = os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding, errors="backslashreplace", buffering=1)
            sys.stderr = sys.__stderr__ = own  # type: ignore[misc]
        os.dup2(noise, 2)
        code = work()
        os.write(told, b"%d" % code)
        atexit._run_exitfuncs()
    except BaseException:
        os.write(noise, traceback.format_exc().encode(errors="replace"))
    finally:
        os._exit(code)


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent is killed, so that nothing is left."""
    with suppress(OSError, MemoryError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
