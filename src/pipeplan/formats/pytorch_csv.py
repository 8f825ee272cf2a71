"""PyTorch's schedule CSV: a line a rank, cells apart by commas, no header; an empty cell is a bubble.

This is what ``torch.distributed.pipelining`` reads with ``_load_csv`` and writes with ``_dump_csv``, in both of its forms:
compute only, and with communication. Read strictly: nothing is skipped but empty cells. The forms of all releases are read.
Writing numbers microbatches in the order of their losses (:func:`~pipeplan.passes.in_order_of_losses`), and adds the ops
that wait where the release of PyTorch requires them (:data:`TORCH_RELEASES`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeplan.errors import FormatError, InputError, NotationError
from pipeplan.formats.format import Format
from pipeplan.formats.rows import schedule_of_cells
from pipeplan.model import (
    HOST_KINDS,
    STAGE_WIDE_KINDS,
    Kind,
    Schedule,
    among,
    format_cells,
    one_line,
    parse_cell,
)
from pipeplan.passes import in_order_of_losses, lower_for_torch, without_communication

TORCH_RELEASES = ("2.13", "2.14", "2.15")
"""Releases whose pipeline runtime is known, the oldest first."""

_FIRST_WITH_WAITS = (2, 15)


def torch_release(name: str | None = None) -> str:
    """Return the minor release of PyTorch that a schedule is for.

    Parameters
    ----------
    name
        As the user writes it, such as ``2.14`` or ``2.15.0+cpu``. None: that of the installed PyTorch, which need not be
        known; without one the newest known release.

    Raises
    ------
    InputError
        For a name that is not one of a known release.
    """
    if name is None:
        return _installed() or TORCH_RELEASES[-1]
    release = _minor(name)
    if release not in TORCH_RELEASES:
        raise InputError(
            f"unknown release of PyTorch {one_line(name)!r}: expected one of {', '.join(TORCH_RELEASES)}",
            field="trainer_version",
        )
    return release


def has_waits(release: str) -> bool:
    """Return whether the runtime of a release requires an op that waits for every SEND and every REDUCE_GRAD.

    Earlier releases refuse such ops.
    """
    major, minor = map(int, release.split("."))
    return (major, minor) >= _FIRST_WITH_WAITS


def _installed() -> str:
    from importlib.metadata import PackageNotFoundError, version  # takes longer to load than what most commands do

    try:
        return _minor(version("torch"))
    except PackageNotFoundError:
        return ""


def _minor(name: str) -> str:
    """Return ``2.15`` of ``2.15.0+cpu``; empty for what is no version."""
    match = re.fullmatch(r"([0-9]{1,3}\.[0-9]{1,3})((\.|a|b|rc|\+)[.+0-9a-z]*)?", name)
    return match[1] if match else ""


def parse_torch_csv(text: str, *, name: str = "", keep_duplicates: bool = False) -> Schedule:
    """The schedule that the text of a CSV holds.

    Parameters
    ----------
    text
        A line a rank; lines may be of different length.
    name
        What to call the schedule, also in messages.
    keep_duplicates
        Whether an op that stands twice is left for the checker to report.

    Raises
    ------
    FormatError
        For a header, a line without ops, or a cell that is no op; the message names the line and the cell. For numbers
        that are too large to be planned.
    InvalidScheduleError
        For ranks or stages that hold nothing.
    """
    cells: list[list[str]] = []
    for number, line in enumerate(_lines(text), start=1):
        if not line.strip(", \t\r"):
            raise FormatError(f"{name}: line {number} is blank; every line is a rank's ops")
        cells.append(line.split(","))
    if not any(_is_op(cell) for cell in cells[0] if cell.strip()):
        start = text[:60].partition("\n")[0]
        raise FormatError(f"{name}: line 1 holds no op; it starts with rank 0's ops, without a header: {start!r}")
    return schedule_of_cells(cells, name, keep_duplicates)


def _lines(text: str) -> Iterator[str]:
    """Yield one line after the other, so that a file of nothing but line ends is refused at its first."""
    start, end = 0, len(text.removesuffix("\n"))
    while start <= end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        yield text[start:stop].removesuffix("\r")
        start = stop + 1


def _is_op(cell: str) -> bool:
    try:
        parse_cell(cell.strip())
    except NotationError:
        return False
    return True


def torch_csv(schedule: Schedule) -> str:
    """The text of a schedule's CSV, with the communication that it holds.

    Raises
    ------
    FormatError
        For what PyTorch's notation has no word for: slices of a sequence, recomputation, copies to the host.
    """
    if schedule.slices > 1:
        raise FormatError("PyTorch's CSV has no slices of a sequence; pipeplan's JSON has them")
    if schedule.has(Kind.R):
        raise FormatError("PyTorch's CSV has no recomputation; pipeplan's JSON has it")
    if not schedule.kinds.isdisjoint(HOST_KINDS):
        raise FormatError("PyTorch's CSV has no copies to the host and back; pipeplan's JSON has them")
    return "".join(",".join(format_cells(row)) + "\n" for row in schedule)


def torch_csv_compute(schedule: Schedule) -> str:
    """Return the text of a schedule's CSV with its compute ops alone.

    Raises
    ------
    FormatError
        As :func:`torch_csv`.
    """
    compute = without_communication(schedule)
    return torch_csv(in_order_of_losses(compute.keep(~among(compute.columns.kind, STAGE_WIDE_KINDS))))


def torch_csv_comms(schedule: Schedule, release: str | None = None) -> str:
    """Return the text of a schedule's CSV with communication, for a release of PyTorch; None: the installed one.

    Raises
    ------
    FormatError
        As :func:`torch_csv`.
    ShapeError, DeadlockError
        As :func:`~pipeplan.passes.lower_for_torch`.
    InputError
        For an unknown release.
    """
    lowered = lower_for_torch(schedule, waits=has_waits(torch_release(release)))
    return torch_csv(in_order_of_losses(lowered))


def torch_csv_warnings(schedule: Schedule) -> tuple[str, ...]:
    """Return what the user must know of a schedule that is written as CSV: whether its microbatches are renumbered."""
    if in_order_of_losses(schedule) is schedule:
        return ()
    return (
        "microbatches are numbered in the order in which the last stage runs their forwards, since PyTorch takes the k-th "
        "loss for microbatch k; train with this CSV and compare runs with it, not with the schedule that it was made from",
    )


def _read(text: str, name: str, keep_duplicates: bool) -> Schedule:
    return parse_torch_csv(text, name=name, keep_duplicates=keep_duplicates)


FORMATS = (
    Format(
        name="torch-csv",
        title="PyTorch CSV",
        help="The order of compute ops, as torch.distributed.pipelining and torchtitan read it.",
        ending=".csv",
        media="text/csv; charset=utf-8",
        write_schedule=torch_csv_compute,
        convert_schedule=lambda schedule: torch_csv(in_order_of_losses(schedule)),
        warnings=torch_csv_warnings,
        read=_read,
    ),
    Format(
        name="torch-csv-comms",
        title="PyTorch CSV with communication",
        help=(
            "Compute ops with sends, receives and sharding, as PyTorch's runtime executes them: of the release that "
            f"--trainer-version names, else of the installed one, else of {TORCH_RELEASES[-1]}."
        ),
        ending=".comms.csv",
        media="text/csv; charset=utf-8",
        write_schedule=torch_csv_comms,
        write_for_release=torch_csv_comms,
        warnings=torch_csv_warnings,
        read=_read,
    ),
)
