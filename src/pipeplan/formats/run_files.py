"""What was measured of a run, from its files: the traces of its ranks, or what ``pipeplan run`` has written."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pipeplan.errors import FormatError, InputError, PipeplanError
from pipeplan.files import MEBIBYTE, files_below, path_of, read_text
from pipeplan.formats.kineto import parse_rank
from pipeplan.formats.nsys import ENDING as NSYS_ENDING
from pipeplan.formats.nsys import parse_nsys
from pipeplan.formats.rank_trace import RankTrace
from pipeplan.formats.reading import FilePath, parse, read_schedule_or_timeline, unpacked_name
from pipeplan.formats.traced_run import MeasuredRun, traced_run
from pipeplan.model import Timeline

SIZE_LIMIT = 2048 * MEBIBYTE
"""No trace that can be read here is larger than this, in bytes."""


def read_timelines(path: FilePath) -> tuple[Timeline, ...]:
    """The timelines that a file holds, or a folder with the traces of a run: one a step.

    See :func:`read_run` for what a folder can hold, and for errors.
    """
    return read_run(path).timelines


def holds_run(path: Path) -> bool:
    """Whether this can only be a run: a folder, or an export of Nsight Systems."""
    return os.path.isdir(path) or path.suffix.lower() == NSYS_ENDING  # of what is closed, reading says so


def read_run(path: FilePath) -> MeasuredRun:
    """Return what was measured of a run, from a file or a folder.

    In a folder, and in the folders in it, the ``.json`` files count, packed by gzip or not: traces of PyTorch's profiler, of
    every rank and of one step or several; or timelines that ``pipeplan run`` has measured. So do the ``.sqlite`` files that
    Nsight Systems exports.

    Raises
    ------
    InputError
        If something cannot be read, or the file holds a schedule, which has no times.
    PipeplanError
        For what :func:`read_file` and :func:`~pipeplan.formats.traced_run.traced_run` raise it.
    """
    path = path_of(path, "the run")
    if not os.path.exists(path) and not path.suffix:
        raise InputError(f"cannot read the run {path}: there is no such file or folder")
    if os.path.isdir(path):
        return _run_in(path)
    if path.suffix.lower() == NSYS_ENDING:
        return traced_run(parse_nsys([path]))
    if unpacked_name(path.name).lower().endswith(".json") and _is_trace(text := _trace_text(path)):
        return traced_run([parse_rank(str(path), text)])
    found = read_schedule_or_timeline(path)
    if not isinstance(found, Timeline):
        raise InputError(f"{path} holds a schedule, which has no times; a timeline or the traces of a run have them")
    return MeasuredRun((found,), steps=1, replicas=1, files=1)


def _run_in(folder: Path) -> MeasuredRun:
    names = sorted(file for file in files_below(folder) if not _is_no_file(file))
    files = [file for file in names if unpacked_name(file.name).lower().endswith(".json")]
    traces: list[RankTrace] = []
    timelines: dict[str, Timeline] = {}
    left_out: list[str] = []
    for file in files:
        text = _trace_text(file)
        if _is_trace(text):
            traces.append(parse_rank(str(file), text))
        elif (timeline := _measured(text, file.name)) is not None:
            timelines[str(file)] = timeline
        else:
            left_out.append(str(file))
    reports = [file for file in names if file.name.endswith(NSYS_ENDING)]
    if reports and not traces:
        return replace(traced_run(parse_nsys(reports)), left_out=(*left_out, *timelines))
    if traces:
        return replace(traced_run(traces), left_out=(*left_out, *timelines))
    if not timelines:
        raise FormatError(
            f"{folder} holds no times of a run: neither a trace of PyTorch's profiler nor a timeline of pipeplan run "
            "(.json, .json.gz), nor an export of Nsight Systems (.sqlite); name the folder of one run"
        )
    return MeasuredRun(tuple(timelines.values()), len(timelines), 1, len(timelines), left_out=tuple(left_out))


def _is_no_file(path: Path) -> bool:
    """Whether a path is a folder, a pipe or a device; a link that leads nowhere is a missing file."""
    return os.path.exists(path) and not os.path.isfile(path)


def _measured(text: str, name: str) -> Timeline | None:
    """Return the measured timeline that a text holds; None for another content."""
    try:
        found = parse(text, name)
    except PipeplanError:
        return None
    return found if isinstance(found, Timeline) and found.source == "measured" else None


def _is_trace(text: str) -> bool:
    return '"traceEvents"' in text


def _trace_text(path: Path) -> str:
    return read_text(path, limit=SIZE_LIMIT, what="trace")
