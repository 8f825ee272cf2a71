"""What is read, written and read again is the same thing."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from pipeplan.errors import PipeplanError
from pipeplan.model import Kind, Schedule, Timeline
from tests.torture.suite import Found


def judge_reading(path: Path, folder: Path) -> None:
    """Read a file in this process, and what is accepted once more through a file of our own. Raises Found."""
    import pipeplan

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            first = pipeplan.read(path)
        except PipeplanError:
            return
        for name in ("again.json", _other(first)):
            second = _again(first, folder / name)
            if isinstance(second, Schedule | Timeline) and (fault := _difference(first, second)) is not None:
                raise Found(f"{fault} of what was read is another after it was written to {name} and read again")


def _other(found: Schedule | Timeline) -> str:
    """A file of a second format that holds all of it."""
    if isinstance(found, Timeline):
        return "again.columns.json"
    messages = np.isin(found.columns.kind, (Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)).any()
    return "again.comms.csv" if messages else "again.csv"


def _again(first: Schedule | Timeline, path: Path) -> Schedule | Timeline | None:
    """What a file that we write of it holds; None where the format has no words for it."""
    import pipeplan

    try:
        pipeplan.save(first, path)
    except PipeplanError:
        return None
    try:
        return pipeplan.read(path)
    except PipeplanError as error:
        raise Found(f"what was read cannot be read after it was written to {path.name}: {error}") from None
    finally:
        path.unlink()


def _difference(first: Schedule | Timeline, second: Schedule | Timeline) -> str | None:
    """What differs, in a word or two."""
    if type(first) is not type(second):
        return "the kind"
    if isinstance(first, Timeline) and isinstance(second, Timeline):
        for name in ("start", "end"):
            if not np.array_equal(getattr(first, name), getattr(second, name)):
                return f"the {name} of an op"
        if first.unit != second.unit:
            return "the unit"
        return _difference(first.schedule, second.schedule)
    assert isinstance(first, Schedule)
    assert isinstance(second, Schedule)
    return None if first.columns == second.columns and np.array_equal(first.offsets, second.offsets) else "an op"
