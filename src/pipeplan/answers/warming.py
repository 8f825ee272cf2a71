"""``pipeplan warm``: compile all kernels ahead of time, by small jobs that run each of them once."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from logging.handlers import BufferingHandler
from typing import TYPE_CHECKING

from pipeplan.answers.answers import AnswerRecord
from pipeplan.answers.comparing.compare import compare
from pipeplan.answers.explaining.explanation import explain
from pipeplan.answers.parts import facts
from pipeplan.answers.parts import warnings as sentences_of
from pipeplan.answers.simulating.simulate import simulate
from pipeplan.costs import Settings
from pipeplan.foundation.extensions import service
from pipeplan.foundation.kernels import compiled_at_once

if TYPE_CHECKING:
    from pipeplan.answers.parts import Part


class WarmKernels(AnswerRecord, frozen=True, kw_only=True):
    """Kernels that are compiled and stored.

    Attributes
    ----------
    kernels
        Number of kernels.
    folder
        Folder with their machine code; None if none could be stored.
    cpu
        Processor that the machine code is for, as LLVM names it.
    seconds
        Time that it took.
    warnings
        Reason why machine code could not be stored.
    """

    kernels: int
    folder: str | None
    cpu: str
    seconds: float
    warnings: tuple[str, ...] = ()

    @property
    def stored(self) -> bool:
        """Return whether another process finds all of them."""
        return self.folder is not None and not self.warnings

    def _table(self) -> Iterable[Part]:
        """Return their number, and where they are."""
        rows = {
            "kernels": f"{self.kernels}, compiled or found in {self.seconds:.1f} s",
            "folder": self.folder or "none: nothing is stored",
            "processor": self.cpu,
        }
        yield facts(rows.items())
        yield from sentences_of(self.warnings)


_SMALL = Settings(ranks=4, microbatches=8, p2p_time=0.1)

_JOBS: tuple[tuple[str, Callable[[], object]], ...] = (
    ("simulation", lambda: compare(settings=_SMALL)),
    ("simulation with messages that meet", lambda: simulate("zbv", communication="blocking", settings=_SMALL)),
    ("simulation with messages on streams", lambda: simulate("zbv", communication="streams", settings=_SMALL)),
    ("idle reasons", lambda: explain("zbv", settings=_SMALL)),
)
"""Small jobs that run every kernel of the core, each with a description."""


def jobs() -> tuple[tuple[str, Callable[[], object]], ...]:
    """Return the small jobs that together run every kernel, also those of the search."""
    return (*_JOBS, *(service("search", "kernel_jobs") or ()))


def warm(progress: Callable[[float, str], None] = lambda share, description: None) -> WarmKernels:
    """Compile all kernels and store their machine code, so that no later process on such a processor waits for it.

    Numba's variables apply: ``NUMBA_CACHE_DIR`` is the folder, and ``NUMBA_CPU_NAME=generic`` with an empty
    ``NUMBA_CPU_FEATURES`` compiles for any processor of the architecture.
    """
    from pipeplan.foundation.numba_internals import processor

    begin = time.monotonic()
    failures = BufferingHandler(capacity=1000)
    log = logging.getLogger("pipeplan.foundation.kernels")
    log.addHandler(failures)
    try:
        with compiled_at_once() as compiled:
            every = jobs()
            for done, (description, job) in enumerate(every):
                progress(done / len(every), f"compiling: {description}")
                job()
    finally:
        log.removeHandler(failures)
    folders = [folder for _, folder in compiled if folder is not None]
    return WarmKernels(
        kernels=len(compiled),
        folder=os.path.commonpath(folders) if len(folders) == len(compiled) > 0 else None,
        cpu=processor(),
        seconds=time.monotonic() - begin,
        warnings=tuple(record.getMessage() for record in failures.buffer),
    )
