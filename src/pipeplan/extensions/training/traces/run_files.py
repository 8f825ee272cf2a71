"""Measured runs from their files: traces of the ranks, or timelines that ``pipeplan run`` has written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from pipeplan.extensions.training.traces.kineto import parse_rank
from pipeplan.extensions.training.traces.nsys import ENDING as NSYS_ENDING
from pipeplan.extensions.training.traces.nsys import parse_nsys
from pipeplan.extensions.training.traces.rank_trace import RankTrace
from pipeplan.extensions.training.traces.traced_run import MeasuredRun, pause, traced_run
from pipeplan.formats import FilePath, parse, parse_steps, read_schedule_or_timeline, unpacked_name
from pipeplan.foundation.errors import FormatError, InputError, PipeplanError
from pipeplan.foundation.files import MEBIBYTE, files_below, path_of, read_text
from pipeplan.model import Timeline

SIZE_LIMIT = 2048 * MEBIBYTE
"""Maximum size of a trace in bytes."""


def holds_run(path: Path) -> bool:
    """Return True if this path can only be a run: a folder, or an export of Nsight Systems."""
    return os.path.isdir(path) or path.suffix.lower() == NSYS_ENDING  # of what is closed, reading says so


def read_run(path: FilePath) -> MeasuredRun:
    """Return the measured run in a file or a folder.

    In a folder and its subfolders, the ``.json`` files count, compressed by gzip or not: traces of PyTorch's profiler,
    of every rank and of one step or several; or timelines that ``pipeplan run`` has measured. So do ``.sqlite`` exports
    of Nsight Systems.
    """
    path = path_of(path, "the run")
    if not os.path.exists(path) and not path.suffix:
        raise InputError(f"cannot read the run {path}: no such file or folder")
    if os.path.isdir(path):
        return _run_in(path)
    if path.suffix.lower() == NSYS_ENDING:
        return traced_run(parse_nsys([path]))
    text = _trace_text(path) if unpacked_name(path.name).lower().endswith(".json") else ""
    if _is_trace(text):
        return traced_run([parse_rank(str(path), text)])
    content = read_schedule_or_timeline(path)
    if not isinstance(content, Timeline):
        raise InputError(f"{path} is a schedule without times: expected a timeline or the traces of a run")
    return _measured_run([_steps(content, text, str(path))])


def _run_in(folder: Path) -> MeasuredRun:
    names = sorted(file for file in files_below(folder) if not _is_no_file(file))
    files = [file for file in names if unpacked_name(file.name).lower().endswith(".json")]
    traces: list[RankTrace] = []
    timelines: dict[str, tuple[Timeline, ...]] = {}
    left_out: list[str] = []
    for file in files:
        text = _trace_text(file)
        if _is_trace(text):
            traces.append(parse_rank(str(file), text))
        elif (timeline := _measured(text, file.name)) is not None:
            timelines[str(file)] = _steps(timeline, text, str(file))
        else:
            left_out.append(str(file))
    reports = [file for file in names if file.name.endswith(NSYS_ENDING)]
    if reports and not traces:
        traces = parse_nsys(reports)
    if traces:
        return replace(traced_run(traces), left_out=(*left_out, *timelines))
    if not timelines:
        raise FormatError(
            f"{folder} has no measured run: expected traces of PyTorch's profiler or timelines of pipeplan run "
            "(.json, .json.gz), or exports of Nsight Systems (.sqlite)"
        )
    return replace(_measured_run(timelines.values()), left_out=tuple(left_out))


def _steps(timeline: Timeline, text: str, name: str) -> tuple[Timeline, ...]:
    """Return the steps of the file of a timeline on one clock; it may have one alone."""
    return parse_steps(text, name=name) if '"steps"' in text else (timeline,)


def _measured_run(files: Iterable[tuple[Timeline, ...]]) -> MeasuredRun:
    """Return the run of the steps in some files."""
    recordings = list(files)
    timelines = tuple(step.from_first_start() for steps in recordings for step in steps)
    pauses = [pause((before, 0.0), (after, 0.0)) for steps in recordings for before, after in pairwise(steps)]
    return MeasuredRun(timelines, len(timelines), 1, len(recordings), tuple(pauses))


def _is_no_file(path: Path) -> bool:
    """Return True for a folder, a pipe or a device. A broken link is a missing file, which reading reports."""
    return os.path.exists(path) and not os.path.isfile(path)


def _measured(text: str, name: str) -> Timeline | None:
    try:
        content = parse(text, name)
    except PipeplanError:
        return None
    return content if isinstance(content, Timeline) and content.source == "measured" else None


def _is_trace(text: str) -> bool:
    return '"traceEvents"' in text


def _trace_text(path: Path) -> str:
    return read_text(path, limit=SIZE_LIMIT, what="trace")
