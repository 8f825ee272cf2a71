"""NVIDIA Nsight Systems: the pipeline ops that NVTX ranges mark in a report exported to SQLite.

``nsys export --type sqlite`` exports a report. The ranges are named like PyTorch's annotations (``PP:2F0``), whether by
``torch.cuda.nvtx.range`` or by ``torch.autograd.profiler.emit_nvtx``, which emits the names of ``record_function``. The
correlation of a launch inside a range identifies its kernel. NVIDIA, "Nsight Systems: SQLite Export Schema Reference".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipeplan.extensions.training.traces.activities import GpuWork, gpu_activities
from pipeplan.extensions.training.traces.annotations import Span, is_mark, marks_of
from pipeplan.extensions.training.traces.op_times import Recorded, moves_data, moves_in
from pipeplan.extensions.training.traces.rank_trace import RankTrace, rank_trace
from pipeplan.foundation.errors import FormatError

if TYPE_CHECKING:
    from sqlite3 import Connection

ENDING = ".sqlite"

_RANGES = (
    "SELECT n.start, n.end, COALESCE(n.text, s.value), n.globalTid FROM NVTX_EVENTS n "
    "LEFT JOIN StringIds s ON s.id = n.textId WHERE n.end IS NOT NULL"
)
_LAUNCHES = "SELECT globalTid, correlationId, start FROM CUPTI_ACTIVITY_KIND_RUNTIME"
_KERNELS = (
    "SELECT k.globalPid, k.correlationId, k.streamId, k.start, k.end, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k "
    "LEFT JOIN StringIds s ON s.id = k.shortName"
)
_COPIES = "SELECT globalPid, correlationId, streamId, start, end, NULL FROM CUPTI_ACTIVITY_KIND_MEM{}"
_CLOCK = "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME"
_HOST = "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'"

_PROCESS = 24
"""Number of low bits in a global thread id that identify the thread; the higher bits identify the process."""


def parse_nsys(paths: Sequence[Path]) -> list[RankTrace]:
    """Return the trace of every process that marked ops in the reports of one run.

    A report does not contain ranks, so processes are numbered by their lowest stage.

    Raises FormatError if a file is not such an export, no process has marked ops, or marks are invalid.
    """
    processes = [trace for path in paths for trace in _processes(path)]
    processes.sort(
        key=lambda trace: (min(int(mark.ops[0].stage) for mark in trace.recorded.marks), trace.host, trace.name)
    )
    return [
        rank_trace(
            process.name, process.recorded, rank=rank, world_size=len(processes), host=process.host, base=process.base
        )
        for rank, process in enumerate(processes)
    ]


@dataclass(frozen=True, slots=True)
class _Process:
    name: str
    host: str
    base: int
    recorded: Recorded


def _processes(path: Path) -> Iterator[_Process]:
    import sqlite3  # not every build of Python has it

    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            spans = _spans(database)
            work = _work(database)
            base = int(next(iter(_rows(database, _CLOCK)), (0,))[0])
            host = str(next(iter(_rows(database, _HOST)), ("",))[0])
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise FormatError(
            f"{path} is not an SQLite export of Nsight Systems: {error}; create one with: nsys export --type sqlite REPORT"
        ) from None
    marking = [process for process, ranges in spans.items() if any(is_mark(span.name) for span in ranges)]
    if not marking:
        marks_of(str(path), [])
    for process in marking:
        name = str(path) if len(marking) == 1 else f"{path}, process {process & 0xFFFFFF}"
        yield _Process(name, host, base, _recorded(name, spans[process], work[process]))


def _rows(database: Connection, query: str) -> Iterable[tuple[Any, ...]]:
    """Return the rows of a query; none if its table is missing, because exports have tables only for recorded data."""
    table = query.partition(" FROM ")[2].partition(" ")[0]
    exists = database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    return database.execute(query) if exists else []


def _spans(database: Connection) -> dict[int, list[Span]]:
    """Return the ranges of each process in microseconds, without the arguments that ``emit_nvtx`` adds after a comma."""
    spans = defaultdict(list)
    for start, end, name, thread in _rows(database, _RANGES):
        text = str(name).partition(", ")[0]
        if is_mark(text) or moves_data(text):
            spans[int(thread) >> _PROCESS].append(Span(text, _micro(start), _micro(end), int(thread)))
    return spans


def _work(database: Connection) -> dict[int, list[GpuWork]]:
    launched = {
        (int(thread) >> _PROCESS, correlation): _micro(start)
        for thread, correlation, start in _rows(database, _LAUNCHES)
    }
    work = defaultdict(list)
    for query in (_KERNELS, _COPIES.format("CPY"), _COPIES.format("SET")):
        for process, correlation, stream, start, end, name in _rows(database, query):
            key = int(process) >> _PROCESS
            if (launch := launched.get((key, correlation))) is not None:
                work[key].append(GpuWork(int(stream), launch, _micro(start), _micro(end), str(name or "")))
    return work


def _micro(nanoseconds: Any) -> float:
    return int(nanoseconds) / 1e3


def _recorded(name: str, spans: Sequence[Span], work: Sequence[GpuWork]) -> Recorded:
    marks = marks_of(name, (span for span in spans if is_mark(span.name)))
    kernels, messages = gpu_activities(work, marks)
    moves = moves_in((span.name, span.start, span.end) for span in spans)
    return Recorded(marks=marks, kernels=kernels, messages=messages, moves=moves)
