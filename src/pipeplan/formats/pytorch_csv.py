"""PyTorch's schedule CSV: one line per rank, cells separated by commas, no header; an empty cell is a bubble.

``torch.distributed.pipelining`` reads it with ``_load_csv`` and writes it with ``_dump_csv``, in two forms: compute
only, and with communication. Parsing is strict and skips only empty cells; the forms of all releases are supported. The
writer numbers microbatches in the order of their losses (:func:`~pipeplan.passes.in_order_of_losses`), and adds the ops
that wait if the release of PyTorch requires them (:data:`TORCH_RELEASES`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeplan.formats.format import Format
from pipeplan.formats.rows import is_printed_by_torch, parse_rows, schedule_of_cells
from pipeplan.foundation.errors import FormatError, InputError, NotationError
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
"""Supported releases of PyTorch's pipeline runtime, the oldest first."""

_FIRST_WITH_WAITS = (2, 15)


def torch_release(name: str | None = None) -> str:
    """Return the minor release of PyTorch that a schedule is for.

    Parameters
    ----------
    name
        Release as the user writes it, such as ``2.14`` or ``2.15.0+cpu``. None: that of the installed PyTorch, even if
        it is not supported, or without PyTorch the newest supported release.
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
    """Return True if a release requires an op that waits for every SEND and every REDUCE_GRAD.

    Earlier releases reject such ops.
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
    """Return ``2.15`` for ``2.15.0+cpu``; empty for anything that is not a version."""
    match = re.fullmatch(r"([0-9]{1,3}\.[0-9]{1,3})((\.|a|b|rc|\+)[.+0-9a-z]*)?", name)
    return match[1] if match else ""


def parse_torch_csv(text: str, *, name: str = "", keep_duplicates: bool = False) -> Schedule:
    """Return the schedule in the text of a CSV."""
    cells: list[list[str]] = []
    for number, line in enumerate(_lines(text), start=1):
        if not line.strip(", \t\r"):
            raise FormatError(f"{name}: line {number} is blank; expected the ops of rank {number - 1}")
        cells.append([_QUOTED.sub(r"\1", cell.strip()) for cell in line.split(",")])
    if not any(_is_op(cell) for cell in cells[0] if cell.strip()):
        start = text[:60].splitlines()[0]
        if separator := _other_separator(start):
            raise FormatError(f"{name}: line 1 has {separator} between ops; separate them with commas")
        raise FormatError(f"{name}: line 1 has no op; expected rank 0's ops without a header, not {start!r}")
    return schedule_of_cells(cells, name, keep_duplicates)


def _other_separator(line: str) -> str | None:
    """Return the separator of spreadsheets and tables that a line has in place of commas."""
    plain = re.sub(r"\([^)]*\)", "", line)  # an overlapped pair has a semicolon of its own
    if "," in plain:
        return None
    return next(
        (noun for sign, noun in {";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}.items() if sign in plain),
        None,
    )


def _lines(text: str) -> Iterator[str]:
    """Yield lines one by one, so that a huge file of line ends fails at its first line."""
    start, end = 0, len(text.removesuffix("\n"))
    while start <= end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        yield text[start:stop].removesuffix("\r")
        start = stop + 1


_QUOTED = re.compile(r'"([^"]*)"')
"""A cell as spreadsheets may write it."""


def _is_op(cell: str) -> bool:
    try:
        parse_cell(cell.strip())
    except NotationError:
        return False
    return True


def torch_csv(schedule: Schedule) -> str:
    """Return the text of a schedule's CSV, including its communication.

    Raises FormatError if PyTorch's notation cannot express the schedule: sequence slices, recomputation, host copies.
    """
    if schedule.slices > 1:
        raise FormatError("PyTorch's CSV does not support sequence slices; use pipeplan's JSON")
    if schedule.has(Kind.R):
        raise FormatError("PyTorch's CSV does not support recomputation; use pipeplan's JSON")
    if not schedule.kinds.isdisjoint(HOST_KINDS):
        raise FormatError("PyTorch's CSV does not support copies to the host; use pipeplan's JSON")
    return "".join(",".join(format_cells(row)) + "\n" for row in schedule)


def torch_csv_compute(schedule: Schedule) -> str:
    """Return the text of a schedule's CSV with only its compute ops. Raises FormatError as :func:`torch_csv` does."""
    compute = without_communication(schedule)
    return torch_csv(in_order_of_losses(compute.keep(~among(compute.columns.kind, STAGE_WIDE_KINDS))))


def torch_csv_comms(schedule: Schedule, release: str | None = None) -> str:
    """Return the text of a schedule's CSV with communication, for a release of PyTorch; None: the installed one."""
    lowered = lower_for_torch(schedule, waits=has_waits(torch_release(release)))
    return torch_csv(in_order_of_losses(lowered))


def torch_csv_warnings(schedule: Schedule) -> tuple[str, ...]:
    """Return a warning if the CSV of a schedule has renumbered microbatches."""
    if in_order_of_losses(schedule) is schedule:
        return ()
    return (
        "microbatches are renumbered in the order of the last stage's forwards, because PyTorch uses the k-th loss for "
        "microbatch k; train with this CSV and compare runs with it, not with the original schedule",
    )


def _read(text: str, name: str, keep_duplicates: bool) -> Schedule:
    parse = parse_rows if is_printed_by_torch(text) else parse_torch_csv
    return parse(text, name=name, keep_duplicates=keep_duplicates)


FORMATS = (
    Format(
        name="torch-csv",
        title="PyTorch CSV",
        help="Order of the compute ops, as torch.distributed.pipelining and torchtitan read it.",
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
            "Compute ops with sends, receives and sharding, as PyTorch's runtime executes them, for the release in "
            f"--trainer-version (default: the installed one, or {TORCH_RELEASES[-1]})."
        ),
        ending=".comms.csv",
        media="text/csv; charset=utf-8",
        write_schedule=torch_csv_comms,
        write_for_release=torch_csv_comms,
        warnings=torch_csv_warnings,
        read=_read,
    ),
)
