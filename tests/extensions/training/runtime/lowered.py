"""Lowered orders of different releases of PyTorch, made comparable."""

from itertools import groupby

from pipeplan.model import RECEIVE_KINDS, Kind, Op, Schedule, among, from_ops
from pipeplan.passes import without_waits


def in_order(row: list[Op]) -> list[Op]:
    """Return a row with the stages that are given back at one time in ascending order, as until PyTorch 2.14."""
    parts = [list(part) for _, part in groupby(row, key=lambda op: op.kind == Kind.RESHARD)]
    return [op for part in parts for op in (sorted(part) if part[0].kind == Kind.RESHARD else part)]


def comparable(schedule: Schedule) -> tuple[Schedule, Schedule, Schedule]:
    """Return the receives of a lowered order, its RESHARDs, and all of its other ops but waits, each in order.

    From PyTorch 2.15 on, ops that wait take a turn of their own when the rows are merged, so that some receives and
    RESHARDs change places with ops next to them.
    """
    rows = [from_ops(in_order(list(row))) for row in without_waits(schedule)]
    plain = Schedule.from_rows(schedule.placement, schedule.microbatches, rows)
    receives, reshards = among(plain.columns.kind, RECEIVE_KINDS), plain.columns.kind == Kind.RESHARD
    return plain.keep(receives), plain.keep(reshards), plain.keep(~(receives | reshards))
