"""What PyTorch's profiler (Kineto) recorded of a pipeline run: a trace a rank in, a measured timeline a step out.

``distributedInfo`` says whose trace it is, and ``baseTimeNanoseconds`` ties all traces to one clock, that of their hosts.
What an op's times are is told in :mod:`pipeplan.formats.kineto_rank`; a receive lasts until the op that needs it starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from pipeplan.errors import FormatError, InvalidScheduleError, NotationError, ShapeError
from pipeplan.files import MEBIBYTE
from pipeplan.formats.format import Format
from pipeplan.formats.kineto_rank import PREFIX, RankTrace, occurrences, parse_rank
from pipeplan.model import (
    MISSING,
    PASS_KINDS,
    RECEIVE_KINDS,
    Floats,
    Kind,
    Schedule,
    Timeline,
    among,
    crosses_ranks,
    dependencies,
    parse_cell,
    schedule_from_cells,
)

SIZE_LIMIT = 2048 * MEBIBYTE
"""No trace that can be read here is larger than this, in bytes."""


def parse_kineto(traces: Mapping[str, str]) -> tuple[Timeline, ...]:
    """The measured timeline of every step that the traces hold, in milliseconds from its first start.

    Parameters
    ----------
    traces
        The traces' text by their names, which are used in messages: one of every pipeline rank. Ranks are numbered in the
        order of the processes' ranks; of data-parallel replicas, give one.

    Raises
    ------
    FormatError
        For text that is no trace or is cut off, a trace without pipeline annotations or with a part of a step, two traces
        of one rank, replicas of a stage, traces of different runs, a rank without its trace.
    """
    if not traces:
        raise FormatError("a run's timeline needs a trace of every rank, and there is none")
    recorded = sorted((parse_rank(name, text) for name, text in traces.items()), key=lambda each: each.rank)
    _require_one_run(recorded)
    steps = {each.name: _steps(each) for each in recorded}
    if len({len(found) for found in steps.values()}) > 1:
        counts = ", ".join(f"{name} {len(found)}" for name, found in steps.items())
        raise FormatError(f"these are traces of different runs: they hold different numbers of steps: {counts}")
    return tuple(_timeline(recorded, picks) for picks in zip(*steps.values(), strict=True))


def _require_one_run(recorded: list[RankTrace]) -> None:
    for before, after in pairwise(recorded):
        if before.rank == after.rank:
            raise FormatError(
                f"{before.name} and {after.name} are both of rank {after.rank}; give one trace of every rank"
            )
        if before.world_size != after.world_size:
            raise FormatError(
                f"{before.name} and {after.name} are traces of different runs: of {before.world_size} and of "
                f"{after.world_size} processes"
            )


def _steps(recorded: RankTrace) -> list[list[int]]:
    """The numbers of the cells of each step: an op's k-th occurrence belongs to the k-th step."""
    keys = occurrences(recorded.cells)
    steps: list[list[int]] = [[] for _ in range(1 + max(turn for _, turn in keys))]
    for number, (_, turn) in enumerate(keys):
        steps[turn].append(number)
    if len({len(step) for step in steps}) > 1:
        rare, times = Counter(recorded.cells).most_common()[-1]
        raise FormatError(
            f"{recorded.name}: {PREFIX}{rare} occurs {times} time(s), other ops {len(steps)} times; record whole steps"
        )
    return steps


def _timeline(recorded: list[RankTrace], picks: Sequence[list[int]]) -> Timeline:
    """One step of all ranks on one clock."""
    names = ", ".join(each.name for each in recorded)
    rows = [[each.cells[number] for number in pick] for each, pick in zip(recorded, picks, strict=True)]
    try:
        schedule = schedule_from_cells(rows)
        counts = [[len(parse_cell(cell)) for cell in row] for row in rows]
    except (NotationError, ShapeError) as error:
        raise FormatError(f"{names}: {error}") from None
    except InvalidScheduleError as error:
        raise FormatError(
            f"{names}: {error}; a timeline needs one trace of every pipeline rank of one replica"
        ) from None
    earliest = min(each.base for each in recorded)
    start, end = (
        np.concatenate(
            [
                np.repeat(getattr(each, side)[pick] + (each.base - earliest) / 1e3, count)
                for each, pick, count in zip(recorded, picks, counts, strict=True)
            ]
        )
        for side in ("start", "end")
    )
    _require_all_ranks(schedule, names)
    _require_complete(schedule)
    end = _received_when_needed(schedule, start, end)
    _require_cause_before_effect(schedule, start, end, recorded)
    zero = start.min()
    return Timeline(schedule, (start - zero) / 1e3, (end - zero) / 1e3, "ms", "measured")


def _require_all_ranks(schedule: Schedule, names: str) -> None:
    """A message to or from a stage that no trace has shows that a trace is missing."""
    columns = schedule.columns
    onward = among(columns.kind, (Kind.SEND_F, Kind.RECV_B)) & (columns.stage == schedule.stages - 1)
    if onward.any():
        op = schedule.op(int(np.flatnonzero(onward)[0]))
        raise FormatError(f"{names}: {op} implies a stage {op.stage + 1}, but the trace of its rank is missing")


def _require_complete(schedule: Schedule) -> None:
    for sources in dependencies(schedule).all:
        if (lost := np.flatnonzero(sources == MISSING)).size:
            op = schedule.place(int(lost[0]))
            raise FormatError(f"these are traces of different runs: {op} waits for an op that no trace has")


def _require_cause_before_effect(schedule: Schedule, start: Floats, end: Floats, recorded: list[RankTrace]) -> None:
    """No op may end before the op of another rank whose result it needs has started."""
    arrival = dependencies(schedule).arrival
    later = np.flatnonzero(crosses_ranks(schedule, arrival))
    wrong = later[end[later] < start[arrival[later]]]
    if wrong.size:
        op, source = int(wrong[0]), int(arrival[wrong[0]])
        there, here = recorded[int(schedule.rank[source])], recorded[int(schedule.rank[op])]
        clocks = f"the clocks of {there.host} and {here.host} differ by at least that, or "
        raise FormatError(
            f"{schedule.place(op)} ({here.name}) ends {(start[source] - end[op]) / 1e3:.6g} ms before "
            f"{schedule.op(source)} ({there.name}), whose result it needs, starts: "
            f"{'' if there.host == here.host else clocks}these are traces of different runs"
        )


def _received_when_needed(schedule: Schedule, start: Floats, end: Floats) -> Floats:
    """Receives last until the op that needs them starts."""
    arrival = dependencies(schedule).arrival
    needy = np.flatnonzero((arrival >= 0) & among(schedule.columns.kind, PASS_KINDS))
    needy = needy[among(schedule.columns.kind[arrival[needy]], RECEIVE_KINDS)]
    until = end.copy()
    until[arrival[needy]] = np.maximum(end[arrival[needy]], start[needy])
    return until


def _median_step(text: str, name: str, keep_duplicates: bool) -> Timeline:
    """The timeline of the step of median length."""
    steps = sorted(parse_kineto({name: text}), key=lambda step: step.makespan)
    return steps[(len(steps) - 1) // 2]


FORMATS = (
    Format(
        name="kineto",
        title="PyTorch profiler trace",
        help="What PyTorch's profiler recorded of a run of one rank: its step of median length. Of more ranks, a folder.",
        ending=".json",
        media="application/json",
        read=_median_step,
        recognises=lambda text: '"traceEvents"' in text,
    ),
)
