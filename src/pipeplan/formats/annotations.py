"""The names by which a training run marks its pipeline ops for a profiler, and what they say.

* ``PP:2F0``: PyTorch's runtime for schedules with several stages a rank, or with a CSV; a run of pipeplan; anybody's own
  ``with torch.profiler.record_function(f"PP:{stage}F{microbatch}")``. Behind ``PP:`` stands an op in the text notation.
* ``Forward 3``, ``Backward 3``: PyTorch's ``ScheduleGPipe``. They say no stage: it follows from the rank.

PyTorch's ``Schedule1F1B`` marks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pipeplan.errors import FormatError, NotationError
from pipeplan.model import Kind, Op, parse_cell

PREFIX = "PP:"

_UNNUMBERED = re.compile(r"(Forward|Backward) (0|[1-9][0-9]{0,8})")

_KINDS = {"Forward": Kind.F, "Backward": Kind.B}

REMEDY = (
    "mark every op with: with torch.profiler.record_function(f'PP:{stage}F{microbatch}'), or give PyTorch the schedule as a "
    "CSV (pipeplan export --to torch-csv), whose runtime does it"
)
"""What to do about a run that marked no ops."""


RESOLUTION = 1e-3
"""The shortest time that a profiler's clock can tell, in microseconds."""


class Span(NamedTuple):
    """Something that the host did: its name, from when to when in microseconds, and on which thread."""

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
        In the text notation; without a number of its stage, it has number 0.
    ops
        The one op that the cell stands for, or the two of an overlapped pair.
    span
        When the host was at it.
    numbered
        Whether the annotation says its stage.
    """

    cell: str
    ops: tuple[Op, ...]
    span: Span
    numbered: bool

    @property
    def computes(self) -> bool:
        """Whether any of its ops does."""
        return any(op.kind.is_compute for op in self.ops)


def is_mark(name: str) -> bool:
    """Whether this is the name of an annotated op."""
    return name.startswith(PREFIX) or _UNNUMBERED.fullmatch(name) is not None


def marks_of(source: str, spans: Iterable[Span]) -> list[AnnotatedOp]:
    """The ops that annotations mark, in order of their starts.

    Where some of them have a stage's number, others without one are something else's.

    Parameters
    ----------
    source
        What the annotations are from, for messages.
    spans
        Annotations of any sort.

    Raises
    ------
    FormatError
        Without any; for times that are none, a name that is no op, an annotation within another.
    """
    found = sorted((span for span in spans if is_mark(span.name)), key=lambda span: span.start)
    found = [span for span in found if span.name.startswith(PREFIX)] or found
    if not found:
        raise FormatError(f"{source}: no annotation of a pipeline ('{PREFIX}2F0') in it; {REMEDY}")
    _require_times(source, found)
    cells = {span.name: _cell_of(source, number, span.name) for number, span in enumerate(found)}
    ops = {name: parse_cell(cell) for name, cell in cells.items()}
    return [AnnotatedOp(cells[span.name], ops[span.name], span, span.name.startswith(PREFIX)) for span in found]


def _require_times(source: str, spans: Sequence[Span]) -> None:
    largest = float("inf")
    for span in spans:
        if not -largest < span.start <= span.end < largest:
            raise FormatError(f"{source}: {span.name} has no time, or ends before it starts")
    for outer, inner in pairwise(sorted(spans, key=lambda span: (str(span.thread), span.start))):
        if inner.thread == outer.thread and inner.start < outer.end - RESOLUTION:
            raise FormatError(
                f"{source}: {inner.name} starts within {outer.name}; annotate every op once, one after the other"
            )


def _cell_of(source: str, number: int, name: str) -> str:
    unnumbered = _UNNUMBERED.fullmatch(name)
    cell = name.removeprefix(PREFIX) if unnumbered is None else f"0{_KINDS[unnumbered[1]].name}{unnumbered[2]}"
    try:
        parse_cell(cell)
    except NotationError as error:
        raise FormatError(
            f"{source}: annotation {number}, {name!r}: {error}; name an annotation PP: and the op, as in PP:2F0"
        ) from None
    return cell


def with_stage(cell: str, stage: int) -> str:
    """A cell without a number of its stage, with it."""
    return f"{stage}{cell[1:]}"
