"""Measured run from the traces of its ranks: the timeline of every step and replica.

All ranks are put on one clock, that of their hosts. Ranks that ran the same ops are replicas: data-parallel or
tensor-parallel peers. The k-th rank of each such group, in the order of the processes' ranks, belongs to the k-th
replica of the pipeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeplan.extensions.training.traces.annotations import PREFIX
from pipeplan.extensions.training.traces.pieces import OpPieces
from pipeplan.extensions.training.traces.rank_trace import RankTrace, joined
from pipeplan.foundation.errors import FormatError, InvalidScheduleError, NotationError, ShapeError
from pipeplan.model import (
    COMPUTE_KINDS,
    MISSING,
    Floats,
    Kind,
    Schedule,
    Timeline,
    among,
    crosses_ranks,
    dependencies,
    parse_cell,
    received_when_needed,
    require_order,
    schedule_from_cells,
)


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """Measurements of a run.

    Attributes
    ----------
    timelines
        One timeline per step and replica of the pipeline.
    steps, replicas
        Their numbers.
    files
        Number of files that were read.
    pauses
        Milliseconds from the last end of a step's compute ops to the first start of the next step's, for consecutive
        steps.
    left_out
        Files of the folder without times.
    copies_timed
        True if ops that copy to the host and back have the times of the copies. In traces of annotations they do not.
    pieces
        Pieces of all ops that ran alone, by kind and stage; without those of ranks whose traces have no kernels.
    exposed
        Milliseconds in which each rank communicates inside ops and does not compute, for each timeline. None for a rank
        whose trace has no kernels; empty if no op of any rank is known to communicate.
    """

    timelines: tuple[Timeline, ...]
    steps: int
    replicas: int
    files: int
    pauses: tuple[float, ...] = ()
    left_out: tuple[str, ...] = ()
    copies_timed: bool = True
    pieces: Mapping[tuple[Kind, int], Sequence[OpPieces]] = field(default_factory=dict)
    exposed: tuple[tuple[float | None, ...], ...] = ()

    @property
    def typical(self) -> Timeline:
        """Timeline of median length."""
        return median_step(self.timelines)

    @property
    def typical_exposed(self) -> tuple[float | None, ...]:
        """Exposed communication of each rank in the timeline of median length; empty if unknown."""
        return self.exposed[self.timelines.index(self.typical)] if self.exposed else ()

    def __str__(self) -> str:
        counts = ((self.steps, "step"), (self.replicas, "replica"), (self.files, "file"))
        steps, replicas, files = (f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
        return f"{steps}{f' of {replicas}' if self.replicas > 1 else ''}, from {files}"


def median_step(steps: Sequence[Timeline]) -> Timeline:
    """Return the step of median length; of an even number, the shorter one in the middle."""
    return sorted(steps, key=lambda step: step.makespan)[(len(steps) - 1) // 2]


def traced_run(recordings: Sequence[RankTrace]) -> MeasuredRun:
    """Return the measured timelines of a run, in milliseconds from the first start of each.

    Parameters
    ----------
    recordings
        Traces of every rank; several of one rank are of different steps.
    """
    if not recordings:
        raise FormatError("a run needs a trace of every rank, but there is none")
    by_rank = defaultdict(list)
    for trace in recordings:
        by_rank[trace.rank].append(trace)
    ranks = [joined(by_rank[rank]) for rank in sorted(by_rank)]
    _require_one_run(ranks)
    pipelines = _replicas(_numbered(ranks))
    _require_whole_pipelines(pipelines, ranks[0].world_size)
    steps = len(ranks[0].steps)
    by_step = [[_timeline(pipeline, step) for pipeline in pipelines] for step in range(steps)]
    beginnings = frozenset[int]().union(*(trace.beginnings for trace in ranks))
    pauses = [
        pause(before, after)
        for step in range(1, steps)
        if step not in beginnings
        for before, after in zip(by_step[step - 1], by_step[step], strict=True)
    ]
    _require_not_alone(pipelines, ranks[0].world_size)
    timelines = tuple(timeline for row in by_step for timeline, _ in row)
    return MeasuredRun(
        timelines,
        steps,
        len(pipelines),
        len(recordings),
        tuple(pauses),
        copies_timed=False,
        pieces=_pieces_alone([trace for pipeline in pipelines for trace in pipeline]),
        exposed=_exposed(pipelines, steps),
    )


def _pieces_alone(ranks: Sequence[RankTrace]) -> Mapping[tuple[Kind, int], Sequence[OpPieces]]:
    """Return the pieces of the ops that ran alone, by kind and stage."""
    alone = defaultdict(list)
    for trace in ranks:
        ops = {cell: parse_cell(cell) for cell in trace.cells}
        for cell, pieces in zip(trace.cells, trace.pieces, strict=True):
            first, *others = ops[cell]
            if pieces is not None and not others:
                alone[first.kind, first.stage].append(pieces)
    return alone


def _exposed(pipelines: Sequence[Sequence[RankTrace]], steps: int) -> tuple[tuple[float | None, ...], ...]:
    """Return the exposed communication of each rank in milliseconds, for each step and replica.

    It is not known of a run whose ops show none at all: kernels that communicate may have other names.
    """
    pieces = (part for pipeline in pipelines for trace in pipeline for part in trace.pieces)
    if not any(part is not None and part.lanes for part in pieces):
        return ()

    def of_rank(trace: RankTrace, step: int) -> float | None:
        known = [part.exposed for number in trace.steps[step] if (part := trace.pieces[number]) is not None]
        return sum(known) / 1e3 if known else None

    return tuple(tuple(of_rank(trace, step) for trace in ranks) for step in range(steps) for ranks in pipelines)


def pause(before: tuple[Timeline, float], after: tuple[Timeline, float]) -> float:
    """Return the milliseconds from the last compute op of a step to the first of the next one.

    A step is its timeline, and the time of that timeline's zero.
    """
    ended, started = before[0], after[0]
    ends, starts = (among(timeline.schedule.columns.kind, COMPUTE_KINDS) for timeline in (ended, started))
    return float(after[1] + started.start[starts].min() - before[1] - ended.end[ends].max())


def _require_one_run(ranks: Sequence[RankTrace]) -> None:
    first = ranks[0]
    for other in ranks:
        if other.world_size != first.world_size:
            raise FormatError(
                f"{first.name} and {other.name} are traces of different runs, with {first.world_size} and "
                f"{other.world_size} processes"
            )
        if other.numbered != first.numbered:
            raise FormatError(
                f"{first.name} and {other.name} are traces of different runs: only one of them annotates ops with their "
                f"stages ('{PREFIX}2F0')"
            )
    if len({len(trace.steps) for trace in ranks}) > 1:
        counts = ", ".join(f"{trace.name} {len(trace.steps)}" for trace in ranks)
        raise FormatError(
            f"these are traces of different runs or steps, with different numbers of steps: {counts}; pass those of the "
            "same steps of every rank"
        )


def _numbered(ranks: Sequence[RankTrace]) -> list[RankTrace]:
    """Return the traces with stages. If annotations have none, a rank's stage is its place in its pipeline.

    A pipeline is a process group in whose forwards exactly one rank receives nothing and exactly one sends nothing.
    """
    if ranks[0].numbered:
        return list(ranks)
    by_rank = {trace.rank: trace for trace in ranks}
    numbered = []
    for trace in ranks:
        groups = {tuple(sorted(group)) for group in trace.groups | {tuple(by_rank)} if trace.rank in group}
        pipelines = [group for group in groups if _is_pipeline([by_rank.get(rank) for rank in group])]
        if len(pipelines) != 1:
            raise FormatError(
                f"{trace.name}: its stage is unknown, because traces of its pipeline's other ranks or its process groups "
                "are missing; pass the trace of every rank, or annotate ops with their stages "
                f"('{PREFIX}2F0')"
            )
        numbered.append(trace.of_stage(pipelines[0].index(trace.rank)))
    return numbered


def _is_pipeline(group: Sequence[RankTrace | None]) -> bool:
    traces = [trace for trace in group if trace is not None]
    firsts, lasts = ([getattr(trace, does) for trace in traces].count(False) for does in ("receives", "sends"))
    return len(traces) == len(group) and firsts == lasts == 1


def _replicas(ranks: Sequence[RankTrace]) -> list[list[RankTrace]]:
    """Return the pipelines, each with one rank of every group of ranks that ran the same ops, in order."""
    peers = defaultdict(list)
    for trace in ranks:
        peers[frozenset(trace.cells)].append(trace)
    groups = list(peers.values())
    if len({len(group) for group in groups}) > 1:
        most, least = max(groups, key=len), min(groups, key=len)
        raise FormatError(
            f"{len(most)} traces have the ops of {most[0].name}, but {len(least)} those of {least[0].name}: pass the trace "
            "of every rank, or those of one replica of the pipeline"
        )
    if len(groups) == 1 and ranks[0].talks:
        raise FormatError(
            f"{ranks[0].name} sends or receives, but the traces of its pipeline's other ranks are missing; pass the trace "
            "of every rank"
        )
    return [sorted(pipeline, key=lambda trace: trace.rank) for pipeline in map(list, zip(*groups, strict=True))]


def _require_whole_pipelines(pipelines: Sequence[Sequence[RankTrace]], world_size: int) -> None:
    """Check that the ranks of each pipeline are a process group, if not every process has a trace and groups are known.

    The ops alone do not show a missing trace: those of the first stages of a pipeline are a schedule of a shorter one.
    """
    if sum(map(len, pipelines)) == world_size:
        return
    for pipeline in pipelines:
        ranks = {trace.rank for trace in pipeline}
        if len(ranks) > 1 and all(
            trace.groups and not any(set(group) == ranks for group in trace.groups) for trace in pipeline
        ):
            names = ", ".join(trace.name for trace in pipeline)
            raise FormatError(
                f"{names}: no process group has exactly these ranks, so they are not a whole pipeline; pass the trace of "
                f"each of the {world_size} processes, or those of one replica of the pipeline"
            )


def _require_not_alone(pipelines: Sequence[Sequence[RankTrace]], world_size: int) -> None:
    """Reject a single rank with a whole schedule, unless its process group or the number of traces confirms it is alone."""
    if sum(map(len, pipelines)) == world_size:
        return
    for first, *others in pipelines:
        if not others and (first.rank,) not in first.groups:
            raise FormatError(
                f"{first.name}: this is rank {first.rank} of {world_size:,} processes, and its process groups do not show "
                "that it is a whole pipeline: pass the trace of every rank"
            )


def _timeline(recorded: list[RankTrace], step: int) -> tuple[Timeline, float]:
    """Return one step of all ranks of a pipeline on one clock, and the start of the step on that clock in milliseconds."""
    picks = [trace.steps[step] for trace in recorded]
    names = ", ".join(trace.name for trace in recorded)
    rows = [[trace.cells[number] for number in pick] for trace, pick in zip(recorded, picks, strict=True)]
    try:
        schedule = schedule_from_cells(rows)
        counts = [[len(parse_cell(cell)) for cell in row] for row in rows]
    except (NotationError, ShapeError) as error:
        raise FormatError(f"{names}: {error}") from None
    except InvalidScheduleError as error:
        raise FormatError(
            f"{names}: {error}; a timeline needs one trace of every pipeline rank of one replica"
        ) from None
    earliest = min(trace.base for trace in recorded)
    start, end = (
        np.concatenate(
            [
                np.repeat(getattr(trace, side)[pick] + (trace.base - earliest) / 1e3, count)
                for trace, pick, count in zip(recorded, picks, counts, strict=True)
            ]
        )
        for side in ("start", "end")
    )
    _require_all_ranks(schedule, names)
    _require_complete(schedule)
    _require_order(schedule, names)
    end = received_when_needed(schedule, start, end)
    _require_cause_before_effect(schedule, start, end, recorded)
    zero = start.min()
    return Timeline(schedule, (start - zero) / 1e3, (end - zero) / 1e3, "ms", "measured"), float(zero) / 1e3


def _require_all_ranks(schedule: Schedule, names: str) -> None:
    """Raise an error for messages to or from a stage without a trace."""
    columns = schedule.columns
    onward = among(columns.kind, (Kind.SEND_F, Kind.RECV_B)) & (columns.stage == schedule.stages - 1)
    if onward.any():
        op = schedule.op(int(np.flatnonzero(onward)[0]))
        raise FormatError(f"{names}: {op} implies a stage {op.stage + 1}, but the trace of its rank is missing")


def _require_complete(schedule: Schedule) -> None:
    for sources in dependencies(schedule).all:
        if (lost := np.flatnonzero(sources == MISSING)).size:
            op = schedule.place(int(lost[0]))
            raise FormatError(
                f"these are traces of different runs, or of only some ranks: {op} waits for an op that is in no trace"
            )


def _require_order(schedule: Schedule, names: str) -> None:
    try:
        require_order(schedule, dependencies(schedule))
    except InvalidScheduleError as error:
        raise FormatError(f"{names}: {error}; no run can have this order") from None


def _require_cause_before_effect(schedule: Schedule, start: Floats, end: Floats, recorded: list[RankTrace]) -> None:
    """Raise an error for ops that end before an op of another rank has started whose result they need."""
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
            f"{'' if there.host == here.host else clocks}these are traces of different runs or steps; pass "
            "those of the same steps of every rank"
        )
