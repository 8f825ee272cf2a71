"""``pipeplan warm``: compile all kernels ahead of time, by small jobs that run each of them once."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pipeplan.answers.answers import AnswerRecord
from pipeplan.answers.comparing.compare import compare
from pipeplan.answers.explaining.explanation import explain
from pipeplan.answers.parts import facts
from pipeplan.answers.parts import warnings as sentences_of
from pipeplan.answers.simulating.simulate import simulate
from pipeplan.costs import Settings
from pipeplan.extensions.search.answers.replanning import Replanner
from pipeplan.extensions.search.answers.searches import search
from pipeplan.extensions.search.layouts import LaidLayer, LayerOption, best_layout
from pipeplan.foundation.kernels import compiled_at_once
from pipeplan.strategies import Shape

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


def _searched(**options: Any) -> Callable[[], object]:
    shape: dict[str, Any] = {"ranks": 4, "microbatches": 8, "evaluations": 2000, "workers": 1}
    return lambda: search(**shape | options)


_LAYER = LaidLayer(
    options=(
        LayerOption(
            name="none",
            forward=1.0,
            backward_input=1.0,
            backward_weight=1.0,
            activation_bytes=1.0,
            weight_activation_bytes=1.0,
        ),
    ),
    count=4,
)

_FULL: dict[str, Any] = {
    "forward_times": 1,
    "backward_times": 1.8,
    "backward_input_times": 1,
    "backward_weight_times": 1,
}
"""Costs for which a full backward takes less time than its halves: the search decides on them."""

_SMALL = Settings(ranks=4, microbatches=8, p2p_time=0.1)

_FACTORS = [1, 2.3, 0.7, 3.1, 1.2, 2, 1, 0.4]

_JOBS: tuple[tuple[str, Callable[[], object]], ...] = (
    ("simulation", lambda: compare(settings=_SMALL)),
    ("simulation with messages that meet", lambda: simulate("zbv", communication="blocking", settings=_SMALL)),
    ("simulation with messages on streams", lambda: simulate("zbv", communication="streams", settings=_SMALL)),
    ("idle reasons", lambda: explain("zbv", settings=_SMALL)),
    ("search", _searched()),
    ("search under a memory limit", _searched(memory_limit="3act")),
    ("search of long schedules", _searched(memory_limit="3act", placement="v", microbatches=64)),
    ("search with overlap", _searched(placement="v", overlap_times=2.5)),
    ("search with full backwards", _searched(placement="v", **_FULL)),
    ("search with both", _searched(placement="v", overlap_times=2.5, **_FULL)),
    ("search with recomputation", _searched(placement="v", memory_limit="2act", decide="recompute")),
    ("search with offload", _searched(placement="v", memory_limit="2act", decide="offload", offload_times=0.5)),
    ("search with messages on streams", _searched(placement="v", p2p_time=0.1, communication="streams")),
    (
        "search with microbatches that differ",
        _searched(placement="linear", memory_limit="6act", microbatch_factors=_FACTORS),
    ),
    ("order of microbatches", lambda: Replanner("1f1b", settings=_SMALL)([900, 4000, 500, 2000, 100, 300, 700, 50])),
    ("layouts", lambda: best_layout([_LAYER], "1f1b", Shape(ranks=2, microbatches=4))),
)
"""Small jobs that together run every kernel, each with a description."""


def warm(progress: Callable[[float, str], None] = lambda share, description: None) -> WarmKernels:
    """Compile all kernels and store their machine code, so that no later process on such a processor waits for it.

    Numba's variables apply: ``NUMBA_CACHE_DIR`` is the folder, and ``NUMBA_CPU_NAME=generic`` with an empty
    ``NUMBA_CPU_FEATURES`` compiles for any processor of the architecture.
    """
    from pipeplan.foundation.numba_internals import processor

    begin = time.monotonic()
    failures = _Messages()
    log = logging.getLogger("pipeplan.foundation.kernels")
    log.addHandler(failures)
    try:
        with compiled_at_once() as compiled:
            for done, (description, job) in enumerate(_JOBS):
                progress(done / len(_JOBS), f"compiling: {description}")
                job()
    finally:
        log.removeHandler(failures)
    folders = [folder for _, folder in compiled if folder is not None]
    return WarmKernels(
        kernels=len(compiled),
        folder=os.path.commonpath(folders) if len(folders) == len(compiled) > 0 else None,
        cpu=processor(),
        seconds=time.monotonic() - begin,
        warnings=tuple(failures.messages),
    )


class _Messages(logging.Handler):
    """Collects the messages of a logger."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.messages.append(record.getMessage())
