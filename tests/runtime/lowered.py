"""Lowered orders of different releases of PyTorch, made comparable."""

from itertools import groupby

from pipeplan.model import Kind, Op, Schedule, from_ops
from pipeplan.passes import without_waits


def in_order(row: list[Op]) -> list[Op]:
    """Return a row with the stages that are given back at one time in ascending order, as until PyTorch 2.14."""
    parts = [list(part) for _, part in groupby(row, key=lambda op: op.kind == Kind.RESHARD)]
    return [op for part in parts for op in (sorted(part) if part[0].kind == Kind.RESHARD else part)]


def as_until_2_14(schedule: Schedule) -> Schedule:
    """Return a lowered schedule in the form that PyTorch had before it had ops that wait."""
    rows = [from_ops(in_order(list(row))) for row in without_waits(schedule)]
    return Schedule.from_rows(schedule.placement, schedule.microbatches, rows)
