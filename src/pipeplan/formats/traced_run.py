"""A run as its ranks' profilers recorded it: the measured timeline of every step, and of every replica.

All ranks are put on one clock, that of their hosts. Ranks that ran the same ops are replicas: data-parallel or
tensor-parallel peers. The k-th of each such group, in the order of the processes' ranks, make the k-th replica of the
pipeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeplan.errors import FormatError, InvalidScheduleError, NotationError, ShapeError
from pipeplan.formats.annotations import PREFIX
from pipeplan.formats.rank_trace import RankTrace, joined
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
    """What was measured of a run.

    Attributes
    ----------
    timelines
        One a step and replica of the pipeline.
    steps, replicas
        How many.
    files
        How many files it is from.
    pauses
        Milliseconds from the last end of a step's compute ops to the first start of the next one's, where steps follow each
        other.
    left_out
        Files of its folder that hold no times.
    copies_timed
        Whether the times of copies to the host and back are theirs: a trace's annotations say when the rank turned to one.
    """

    timelines: tuple[Timeline, ...]
    steps: int
    replicas: int
    files: int
    pauses: tuple[float, ...] = ()
    left_out: tuple[str, ...] = ()
    copies_timed: bool = True

    @property
    def typical(self) -> Timeline:
        """The timeline of median length."""
        return median_step(self.timelines)

    def __str__(self) -> str:
        counts = ((self.steps, "step"), (self.replicas, "replica"), (self.files, "file"))
        steps, replicas, files = (f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
        return f"{steps}{f' of {replicas}' if self.replicas > 1 else ''}, from {files}"


def median_step(steps: Sequence[Timeline]) -> Timeline:
    """The step of median length; of an even number, the shorter one in the middle."""
    return sorted(steps, key=lambda step: step.makespan)[(len(steps) - 1) // 2]


def traced_run(recordings: Sequence[RankTrace]) -> MeasuredRun:
    """The measured timelines of a run, in milliseconds from the first start of each.

    Parameters
    ----------
    recordings
        Of every rank; several of one rank are of different steps.

    Raises
    ------
    FormatError
        Without any; for two recordings of one rank and time, recordings of different runs or steps, ranks without one, and
        ops that make no schedule.
    """
    if not recordings:
        raise FormatError("a run's timeline needs a trace of every rank, and there is none")
    by_rank = defaultdict(list)
    for each in recordings:
        by_rank[each.rank].append(each)
    ranks = [joined(by_rank[rank]) for rank in sorted(by_rank)]
    _require_one_run(ranks)
    pipelines = _replicas(_numbered(ranks))
    _require_whole_pipelines(pipelines, ranks[0].world_size)
    steps = len(ranks[0].steps)
    found = [[_timeline(pipeline, step) for pipeline in pipelines] for step in range(steps)]
    beginnings = frozenset[int]().union(*(each.beginnings for each in ranks))
    pauses = [
        _pause(before, after)
        for step in range(1, steps)
        if step not in beginnings
        for before, after in zip(found[step - 1], found[step], strict=True)
    ]
    _require_not_alone(pipelines, ranks[0].world_size)
    timelines = tuple(timeline for row in found for timeline, _ in row)
    return MeasuredRun(timelines, steps, len(pipelines), len(recordings), tuple(pauses), copies_timed=False)


def _pause(before: tuple[Timeline, float], after: tuple[Timeline, float]) -> float:
    """Return milliseconds from the last compute op of a step to the first of the next one."""
    ended, started = (each[0] for each in (before, after))
    ends, starts = (among(each.schedule.columns.kind, COMPUTE_KINDS) for each in (ended, started))
    return float(after[1] + started.start[starts].min() - before[1] - ended.end[ends].max())


def _require_one_run(ranks: Sequence[RankTrace]) -> None:
    first = ranks[0]
    for other in ranks:
        if other.world_size != first.world_size:
            raise FormatError(
                f"{first.name} and {other.name} are traces of different runs: of {first.world_size} and of "
                f"{other.world_size} processes"
            )
        if other.numbered != first.numbered:
            raise FormatError(
                f"{first.name} and {other.name} are traces of different runs: the ops of only one of them are annotated "
                f"with their stages ('{PREFIX}2F0')"
            )
    if len({len(each.steps) for each in ranks}) > 1:
        counts = ", ".join(f"{each.name} {len(each.steps)}" for each in ranks)
        raise FormatError(
            f"these are traces of different runs or steps: they hold different numbers of steps: {counts}; give those of "
            "the same steps of every rank"
        )


def _numbered(ranks: Sequence[RankTrace]) -> list[RankTrace]:
    """The ranks with the numbers of their stages: where no annotation says them, the place of the rank in its pipeline.

    A pipeline is a process group in whose forwards one rank receives nothing, and one sends nothing.
    """
    if ranks[0].numbered:
        return list(ranks)
    known = {each.rank: each for each in ranks}
    numbered = []
    for each in ranks:
        groups = {tuple(sorted(group)) for group in each.groups | {tuple(known)} if each.rank in group}
        pipelines = [group for group in groups if _is_pipeline([known.get(rank) for rank in group])]
        if len(pipelines) != 1:
            raise FormatError(
                f"{each.name}: its stage cannot be told, because traces of its pipeline's other ranks are missing or "
                "its process groups unknown; give the trace of every rank, or annotate ops with their stages "
                f"('{PREFIX}2F0')"
            )
        numbered.append(each.of_stage(pipelines[0].index(each.rank)))
    return numbered


def _is_pipeline(group: Sequence[RankTrace | None]) -> bool:
    found = [each for each in group if each is not None]
    firsts, lasts = ([getattr(each, does) for each in found].count(False) for does in ("receives", "sends"))
    return len(found) == len(group) and firsts == lasts == 1


def _replicas(ranks: Sequence[RankTrace]) -> list[list[RankTrace]]:
    """Return the pipelines, each with a rank of every group of ranks that ran the same ops, in order."""
    peers = defaultdict(list)
    for each in ranks:
        peers[frozenset(each.cells)].append(each)
    groups = list(peers.values())
    if len({len(group) for group in groups}) > 1:
        most, least = max(groups, key=len), min(groups, key=len)
        raise FormatError(
            f"{len(most)} traces hold the ops of {most[0].name}, and {len(least)} those of {least[0].name}: give the trace "
            "of every rank, or those of one replica of the pipeline"
        )
    if len(groups) == 1 and ranks[0].talks:
        raise FormatError(
            f"{ranks[0].name}: it sends or receives, but the traces of its pipeline's other ranks are missing; give the "
            "trace of every rank"
        )
    return [sorted(pipeline, key=lambda each: each.rank) for pipeline in map(list, zip(*groups, strict=True))]


def _require_whole_pipelines(pipelines: Sequence[Sequence[RankTrace]], world_size: int) -> None:
    """Where not every process has a trace, the ranks of a pipeline are those of a process group, as far as these are known.

    Ops alone do not show it: those of the first stages of a pipeline are a schedule of a shorter one.
    """
    if sum(map(len, pipelines)) == world_size:
        return
    for pipeline in pipelines:
        ranks = {each.rank for each in pipeline}
        if len(ranks) > 1 and all(
            each.groups and not any(set(group) == ranks for group in each.groups) for each in pipeline
        ):
            names = ", ".join(each.name for each in pipeline)
            raise FormatError(
                f"{names}: no process group is of just these ranks, so they are a part of a pipeline, or of several; give "
                f"the trace of each of the {world_size} processes, or those of one replica of the pipeline"
            )


def _require_not_alone(pipelines: Sequence[Sequence[RankTrace]], world_size: int) -> None:
    """Refuse a rank whose ops are a whole schedule, unless a group says that it is a pipeline or all traces are there."""
    if sum(map(len, pipelines)) == world_size:
        return
    for first, *others in pipelines:
        if not others and (first.rank,) not in first.groups:
            raise FormatError(
                f"{first.name}: it is of rank {first.rank} of {world_size:,} processes, and nothing says that this rank "
                "is a pipeline of its own: give the trace of every rank"
            )


def _timeline(recorded: list[RankTrace], step: int) -> tuple[Timeline, float]:
    """Return one step of all ranks of a pipeline on one clock, and the zero of the step on that clock in milliseconds."""
    picks = [each.steps[step] for each in recorded]
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
    _require_order(schedule, names)
    end = received_when_needed(schedule, start, end)
    _require_cause_before_effect(schedule, start, end, recorded)
    zero = start.min()
    return Timeline(schedule, (start - zero) / 1e3, (end - zero) / 1e3, "ms", "measured"), float(zero) / 1e3


def _require_all_ranks(schedule: Schedule, names: str) -> None:
    """Refuse messages to or from a stage that no trace has: a trace is missing."""
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
                f"these are traces of different runs, or of a part of the ranks: {op} waits for an op that no trace has"
            )


def _require_order(schedule: Schedule, names: str) -> None:
    try:
        require_order(schedule, dependencies(schedule))
    except InvalidScheduleError as error:
        raise FormatError(f"{names}: {error}: no rank can have run this") from None


def _require_cause_before_effect(schedule: Schedule, start: Floats, end: Floats, recorded: list[RankTrace]) -> None:
    """Refuse ops that end before an op of another rank whose result they need has started."""
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
            f"{'' if there.host == here.host else clocks}these are traces of different runs or steps; give "
            "those of the same steps of every rank"
        )
