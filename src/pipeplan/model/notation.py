"""PyTorch's text notation for ops, parsed and written strictly.

``2F0`` is the forward of stage 2 on microbatch 0. ``(0F7;7B3)OVERLAP_F_B`` is an overlapped pair. ``0SEND_F1`` and
``1RECV_F1`` are the two ends of a transfer, and ``3UNSHARD`` is an op of a whole stage. A schedule has one row per
rank; blanks separate cells. Three forms are extensions of pipeplan: sequence slices after a point (``2F0.1``), ``2R0``
(recompute), and ``2OFFLOAD0`` and ``2RELOAD0`` (copies to the host and back).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from pipeplan.foundation.errors import InvalidScheduleError, NotationError
from pipeplan.model.columns import from_ops
from pipeplan.model.op import BACKWARD_KINDS, NO_GROUP, NO_MICROBATCH, STAGE_WIDE_KINDS, Kind, Op
from pipeplan.model.placement import Placement
from pipeplan.model.schedule import Schedule

# At most nine digits, so that every number fits into an int32 column; no leading zeros, so that an op has one spelling.
_NUMBER = "(0|[1-9][0-9]{0,8})"
# The longest kinds come first: SEND_F must not be read as a shorter kind followed by junk.
_OP = re.compile(
    rf"{_NUMBER}({'|'.join(sorted(Kind.__members__, key=len, reverse=True))})(?:{_NUMBER}(?:\.{_NUMBER})?)?"
)
_OVERLAP = re.compile(r"\(([^();]*);([^();]*)\)OVERLAP_F_B")


def parse_cell(text: str) -> tuple[Op, ...]:
    """Return the op in a cell, or the two ops of an overlapped pair (both in group 0).

    Raises
    ------
    NotationError
        If the cell is anything else: trailing characters, an unknown kind, a nested or three-part overlap.
    """
    pair = _OVERLAP.fullmatch(text)
    if pair is None:
        return (_parse_op(text),)
    first, second = (_parse_op(part) for part in pair.groups())
    if first.kind != Kind.F or second.kind not in BACKWARD_KINDS:
        raise NotationError(f"'{text}': an overlapped pair is one forward and one backward, in that order: (0F7;7B3)")
    return tuple(replace(op, group=0) for op in (first, second))


def _parse_op(text: str) -> Op:
    match = _OP.fullmatch(text)
    if match is None:
        expected = "expected stage, kind, microbatch, as in 2F0 (or (0F7;7B3)OVERLAP_F_B)"
        if re.fullmatch(r"\d+[A-Z_]+\d*(?:[;|]+\d+[A-Z_]+\d*)+", text):
            expected = "separate ops with blanks or commas"
        raise NotationError(f"'{text}' is not an op: {expected}")
    stage, kind, microbatch, part = match.groups()
    if Kind[kind].is_stage_wide != (microbatch is None):
        rule = "belongs to a whole stage and takes no microbatch" if microbatch else "needs a microbatch"
        raise NotationError(f"'{text}': {kind} {rule}")
    return Op(Kind[kind], int(stage), NO_MICROBATCH if microbatch is None else int(microbatch), int(part or 0))


def format_cells(row: Iterable[Op]) -> list[str]:
    """Return a rank's ops as cells; an overlapped pair is one cell.

    Raises
    ------
    NotationError
        If the notation cannot express the row: overlapped ops that are not a forward followed by one backward, or an op
        without its microbatch.
    """
    cells: list[str] = []
    pending: Op | None = None
    paired = NO_GROUP
    for op in row:
        if pending is not None:
            if op.group != pending.group or pending.kind != Kind.F or op.kind not in BACKWARD_KINDS:
                raise _invalid_overlap(pending)
            cells.append(f"({_format_op(pending)};{_format_op(op)})OVERLAP_F_B")
            pending, paired = None, op.group
        elif op.group == NO_GROUP:
            cells.append(_format_op(op))
            paired = NO_GROUP
        elif op.group == paired:
            raise _invalid_overlap(op)
        else:
            pending = op
    if pending is not None:
        raise _invalid_overlap(pending)
    return cells


def _format_op(op: Op) -> str:
    if (op.microbatch == NO_MICROBATCH) != (op.kind in STAGE_WIDE_KINDS):
        rule = "belongs to a whole stage and has no microbatch" if op.kind in STAGE_WIDE_KINDS else "needs a microbatch"
        raise NotationError(f"{op} cannot be written: {op.kind.name} {rule}")
    return str(op)


def _invalid_overlap(op: Op) -> NotationError:
    return NotationError(
        f"{op} cannot be written: it overlaps, and an overlapped pair is one forward and one backward, in that order"
    )


def format_schedule(schedule: Schedule) -> str:
    """Return the schedule as text: one line per rank, cells separated by one blank."""
    return "\n".join(" ".join(format_cells(row)) for row in schedule)


def parse_schedule(
    text: str,
    *,
    placement: Placement | None = None,
    microbatches: int | None = None,
    slices: int | None = None,
    name: str = "",
    keep_duplicates: bool = False,
) -> Schedule:
    """Return the schedule in the text of :func:`format_schedule`; parameters as in :func:`schedule_from_cells`."""
    rows = [line.split() for line in text.strip().splitlines()]
    return schedule_from_cells(
        rows,
        placement=placement,
        microbatches=microbatches,
        slices=slices,
        name=name,
        keep_duplicates=keep_duplicates,
    )


def schedule_from_cells(
    rows: Sequence[Sequence[str]],
    *,
    placement: Placement | None = None,
    microbatches: int | None = None,
    slices: int | None = None,
    name: str = "",
    keep_duplicates: bool = False,
) -> Schedule:
    """Return the schedule with these cells, one row per rank.

    Omitted arguments are inferred from the ops: the placement from the ranks of the stages, the numbers of microbatches
    and slices from the largest index. Empty cells are bubbles and are skipped. An op that occurs twice is an error,
    unless ``keep_duplicates`` leaves it for the checker to report.

    Raises
    ------
    NotationError
        If a cell is not an op (the message has its rank and cell), an op occurs twice, or there are no ops.
    InvalidScheduleError
        If a rank or stage holds nothing, or an op is out of the given ranges.
    """
    parsed = [_parse_row(rank, cells) for rank, cells in enumerate(rows)]
    ops = [op for row in parsed for op in row]
    if not ops:
        raise NotationError("the schedule has no ops")
    if not keep_duplicates:
        _reject_duplicates(parsed)
    microbatches = microbatches or max(1, *(op.microbatch + 1 for op in ops))
    slices = slices or 1 + max(op.slice for op in ops)
    placement = placement or infer_placement(parsed, microbatches)
    if len(parsed) != placement.ranks:
        raise InvalidScheduleError(f"a schedule of {placement.ranks} ranks needs as many rows, not {len(parsed)}")
    return Schedule.from_rows(placement, microbatches, [from_ops(row) for row in parsed], slices=slices, name=name)


def _parse_row(rank: int, cells: Sequence[str]) -> list[Op]:
    row: list[Op] = []
    for number, cell in enumerate(cells):
        if not (text := cell.strip()):
            continue
        try:
            parts = parse_cell(text)
        except NotationError as error:
            raise NotationError(f"rank {rank}, cell {number}: {error}") from None
        row += parts if len(parts) == 1 else [replace(op, group=len(row)) for op in parts]
    return row


def _reject_duplicates(rows: Sequence[Sequence[Op]]) -> None:
    seen: dict[tuple[Kind, int, int, int], int] = {}
    for rank, row in enumerate(rows):
        for op in row:
            if op.kind.is_stage_wide:
                continue
            work = (op.kind, op.stage, op.microbatch, op.slice)
            if work in seen:
                raise NotationError(f"duplicate: {op} is on rank {seen[work]} and again on rank {rank}")
            seen[work] = rank


def infer_placement(rows: Sequence[Sequence[Op]], microbatches: int) -> Placement:
    """Return the placement that these rows imply: each stage is on the rank whose row has its ops.

    A stage on two ranks implies two copies of the model, each for half of the microbatches.

    Raises
    ------
    InvalidScheduleError
        If no rank holds some stage, or no such placement exists.
    """
    table = np.array([(rank, op.stage, op.microbatch) for rank, row in enumerate(rows) for op in row], np.int64)
    rank, stage, microbatch = table.T
    stages = int(stage.max()) + 1
    absent = sorted(set(range(min(stages, len(table) + 1))) - set(stage.tolist()))
    if absent:
        raise InvalidScheduleError(f"no rank holds stage {absent[0]}, but the stages go up to {stages - 1}")
    late = np.where(microbatch == NO_MICROBATCH, 0, 2 * microbatch // microbatches)
    first = _holders(rank, stage, stages)
    if np.array_equal(first[stage], rank):
        return Placement.of(tuple(first.tolist()))
    copies = [_holders(rank[late == copy], stage[late == copy], stages) for copy in (0, 1)]
    agree = (np.array_equal(copies[copy][stage[late == copy]], rank[late == copy]) for copy in (0, 1))
    if all(agree) and min(int(holders.min()) for holders in copies) >= 0:
        return Placement.of(*(tuple(holders.tolist()) for holders in copies))
    wrong = int(np.flatnonzero(first[stage] != rank)[0])
    raise InvalidScheduleError(
        f"stage {stage[wrong]} is on rank {first[stage[wrong]]} and on rank {rank[wrong]}; "
        "a stage must be on one rank, or on one rank for each half of the microbatches"
    )


def _holders(rank: np.ndarray, stage: np.ndarray, stages: int) -> np.ndarray:
    """Return the first rank on which each stage occurs, -1 for none."""
    holders = np.full(stages, -1, np.int64)
    holders[stage[::-1]] = rank[::-1]
    return holders
