"""Too little of what a system gives: memory, files, threads. It shows as errors of many kinds, and is one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from pipeplan.errors import MissingExtraError, PipeplanError

_WORDS = {
    "cannot allocate": "memory",
    "can't allocate": "memory",
    "cannot apply additional memory": "memory",
    "failed to map segment": "memory",
    "out of memory": "memory",
    "bad_alloc": "memory",
    "unable to allocate": "memory",
    "can't start new thread": "threads",
    "thread creation failed": "threads",
    "too many open files": "files",
    "no usable temporary directory": "temporary",
}
"""What libraries and the linker write, in small letters, into errors of whatever kind."""

_NUMBERS = {
    errno.ENOMEM: "memory",
    errno.EAGAIN: "threads",
    errno.EMFILE: "files",
    errno.ENFILE: "files",
}


def shortage(error: BaseException) -> str | None:
    """What there is too little of and what helps, as a sentence; None where an error is about something else.

    What pipeplan says on purpose stays, but for a library that is said to be missing and could not be loaded.
    """
    if isinstance(error, PipeplanError) and not isinstance(error, MissingExtraError):
        return None
    kinds = [kind for each in _chain(error) if (kind := _kind(each)) is not None]
    return sentence_for(kinds[-1]) if kinds else None


def sentence_for(kind: str) -> str:
    """What is said where there is too little of ``memory``, ``threads`` ``files`` or ``temporary`` folders."""
    limit = memory_limit()
    if kind == "memory" or (kind == "threads" and limit is not None):
        if limit is None:
            return "this does not fit into this machine's memory; make the shape smaller"
        return (
            f"this does not fit into the {limit / 1e6:,.0f} MB of memory that it may take; "
            "raise the limit (ulimit -v), or make the shape smaller"
        )
    if kind == "threads":
        return "the system gives no more threads or processes; raise the limit (ulimit -u), or take fewer workers"
    if kind == "temporary":
        return "no folder for temporary files can be written; set TMPDIR to one that can"
    return "too many files are open; raise the limit (ulimit -n)"


def memory_limit() -> int | None:
    """The bytes of addresses or data that this process may have at most; None where nothing limits it."""
    try:
        import resource
    except ImportError:  # no such limits on this system
        return None
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it came of."""
    seen: list[BaseException] = []
    while error is not None and not any(error is each for each in seen):
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__


def _kind(error: BaseException) -> str | None:
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return _NUMBERS[error.errno]
    if isinstance(error, SystemError) and memory_limit() is not None:
        return "memory"  # an extension that failed and could not even say so
    said = str(error).lower()
    return next((kind for words, kind in _WORDS.items() if words in said), None)
