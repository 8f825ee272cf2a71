"""Names of the annotations that mark pipeline ops for a profiler.

* ``PP:2F0``: PyTorch's runtime for schedules with several stages per rank or with a CSV, ``pipeplan run``, or a user's own
  ``with torch.profiler.record_function(f"PP:{stage}F{microbatch}")``. An op in the text notation follows ``PP:``.
* ``Forward 3``, ``Backward 3``: PyTorch's ``ScheduleGPipe``. The stage is not part of the name; it follows from the rank.

PyTorch's ``Schedule1F1B`` marks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pipeplan.foundation.errors import FormatError, NotationError
from pipeplan.model import Kind, Op, parse_cell

PREFIX = "PP:"

_UNNUMBERED = re.compile(r"(Forward|Backward) (0|[1-9][0-9]{0,8})")

_KINDS = {"Forward": Kind.F, "Backward": Kind.B}

REMEDY = (
    "mark every op with: with torch.profiler.record_function(f'PP:{stage}F{microbatch}'), or pass the schedule to PyTorch's "
    "runtime, which does it, as a CSV (pipeplan export --to torch-csv)"
)
"""Advice for a run without annotated ops."""


RESOLUTION = 1e-3
"""Resolution of a profiler's clock in microseconds."""


class Span(NamedTuple):
    """Activity of the host: its name, its start and end in microseconds, and its thread."""

    name: str
    start: float
    end: float
    thread: int | str


@dataclass(frozen=True, slots=True)
class AnnotatedOp:
    """An annotated op.

    Attributes
    ----------
    cell
        Cell in the text notation, with stage 0 if the annotation has no stage.
    ops
        The op in the cell, or the two ops of an overlapped pair.
    span
        Time of the annotation on the host.
    numbered
        True if the annotation has a stage.
    """

    cell: str
    ops: tuple[Op, ...]
    span: Span
    numbered: bool

    @property
    def computes(self) -> bool:
        """True if any of its ops is a compute op."""
        return any(op.kind.is_compute for op in self.ops)


def is_mark(name: str) -> bool:
    """Return True if an annotation of this name marks an op."""
    return name.startswith(PREFIX) or _UNNUMBERED.fullmatch(name) is not None


def marks_of(source: str, spans: Iterable[Span]) -> list[AnnotatedOp]:
    """Return the ops that annotations mark, in the order of their starts.

    If some marks have a stage, those without one belong to something else and are ignored.
    """
    marks = sorted((span for span in spans if is_mark(span.name)), key=lambda span: span.start)
    marks = [span for span in marks if span.name.startswith(PREFIX)] or marks
    if not marks:
        raise FormatError(f"{source} has no annotated pipeline ops (such as '{PREFIX}2F0'); {REMEDY}")
    _require_times(source, marks)
    cells = {span.name: _cell_of(source, number, span.name) for number, span in enumerate(marks)}
    ops = {name: parse_cell(cell) for name, cell in cells.items()}
    return [AnnotatedOp(cells[span.name], ops[span.name], span, span.name.startswith(PREFIX)) for span in marks]


def _require_times(source: str, spans: Sequence[Span]) -> None:
    largest = float("inf")
    for span in spans:
        if not -largest < span.start <= span.end < largest:
            raise FormatError(f"{source}: {span.name} has no finite time or ends before it starts")
    for outer, inner in pairwise(sorted(spans, key=lambda span: (str(span.thread), span.start))):
        if inner.thread == outer.thread and inner.start < outer.end - RESOLUTION:
            raise FormatError(
                f"{source}: {inner.name} starts inside {outer.name}; annotate every op once, one after the other"
            )


def _cell_of(source: str, number: int, name: str) -> str:
    unnumbered = _UNNUMBERED.fullmatch(name)
    cell = name.removeprefix(PREFIX) if unnumbered is None else f"0{_KINDS[unnumbered[1]].name}{unnumbered[2]}"
    try:
        parse_cell(cell)
    except NotationError as error:
        raise FormatError(
            f"{source}: annotation {number}, {name!r}: {error}; annotations must be PP: and an op, such as PP:2F0"
        ) from None
    return cell


def with_stage(cell: str, stage: int) -> str:
    """Return a cell with its stage, which it lacks."""
    return f"{stage}{cell[1:]}"
