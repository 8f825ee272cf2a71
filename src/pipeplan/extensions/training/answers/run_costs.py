"""Costs in the traces of a run, or in one timeline: times of stages over steps and microbatches, and between ops.

Times are medians, so that a slow first step or a microbatch that met another job's noise does not count.

Between the end of an op and the start of the next one of its rank lie, where the rank waits for nothing, the gap before an
op and what the messages in between take from the rank: those that the first op sends, and those that the second receives.
Where it waits, between the two ops of a message lie what the message takes from both ranks, the transfer and the gap. So
gaps without messages tell the first, gaps with messages the second, and what is then left of the waits is the transfer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeplan.answers.sources import in_unit
from pipeplan.costs import SETTINGS, Settings, Spread
from pipeplan.extensions.training.answers.run_segments import RunSegments, run_segments
from pipeplan.extensions.training.traces import MeasuredRun, read_run
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.readable import TIME_UNITS, change, units_in
from pipeplan.model import HOST_KINDS, Floats, Schedule, Timeline, among, crosses_ranks, dependencies
from pipeplan.simulation import TIMED_KINDS, compute_only, simulate, timed_only

UNIT = "ms"

_TOO_LONG = 0.1
"""By how much more than a measured step a predicted one may take, as a share, before its op times are doubted."""

_NOISE = 0.01
"""Largest negative time attributed to noise, as a share of the step."""

PAIR = "F+B"
"""Name of an overlapped forward and backward."""

COPY = "copy"
"""Name of copies to the host and back."""

Times = Mapping[str, Spread]
"""Measured times of a stage, by the name of the kind, or ``PAIR``."""


@dataclass(frozen=True, slots=True)
class RunGaps:
    """Time between ops, each part None if no op reveals it.

    Attributes
    ----------
    transfer
        Time from the end of an op until another rank has its result, without the time that either rank is occupied.
    op
        Overhead of a rank before each op.
    message
        Overhead of a message, paid by both ranks.
    """

    transfer: Spread | None
    op: Spread | None
    message: Spread | None


@dataclass(frozen=True, kw_only=True, eq=False)
class RunCosts:
    """Measured op times of a run, in milliseconds.

    Attributes
    ----------
    source
        The file or the folder that the run is from.
    run
        Measured timelines of the run.
    schedule
        Schedule of every step, without messages.
    stages
        The times of each stage by the name of the kind (``F``, ``B``, ``I``, ``W``, ``R``), of overlapped pairs (``F+B``)
        by the stage of the forward, and of copies to the host and back (``copy``); kinds that it did not run are left out.
    gaps
        Time between ops.
    step_time
        From the last op of a step to the first one of the next; None if no step follows another.
    measured_steps
        From the first op's start to the last one's end, of every step and replica.
    segments
        Segments of its ops.
    """

    source: str
    run: MeasuredRun
    schedule: Schedule
    stages: tuple[Times, ...]
    gaps: RunGaps
    step_time: Spread | None
    measured_steps: Spread
    segments: RunSegments

    def settings(self) -> Settings:
        """Return the costs and the run's shape as a config file holds them."""
        placement = self.schedule.placement
        held = set(placement.chunks_on.tolist())
        return Settings(
            ranks=placement.ranks,
            chunks=held.pop() if len(held) == 1 else None,
            microbatches=self.schedule.microbatches,
            slices=self.schedule.slices if self.schedule.slices > 1 else None,
            p2p_time=_at_least_0(self.gaps.transfer) or 0.0,
            op_gap=_at_least_0(self.gaps.op),
            message_time=_at_least_0(self.gaps.message),
            step_time=_at_least_0(self.step_time),
            time_unit=UNIT,
            **(_times(self.stages) | self.segments.settings()),
        )

    @property
    def predicted_step(self) -> float:
        """Step time of the run's schedule simulated on these costs, in milliseconds; compared with measured steps."""
        return _length(simulate(self.schedule, self.settings().costs(self.schedule.placement)).timeline)

    def doubts(self) -> list[str]:
        """Return one sentence per contradiction in these times: they count waiting as work, or clocks differ.

        By noise alone a time that is 0 may be a little below: what counts is a share of the step, and both quartiles.
        """
        noise = _NOISE * self.measured_steps.median
        reasons = [
            f"{words}: {spread} ms is negative and counts as 0; op times may include waiting, or ranks' clocks may differ"
            for words, spread in self.between()
            if spread is not None and spread.high < 0 and spread.median < -noise
        ]
        if self.predicted_step > self.measured_steps.high * (1 + _TOO_LONG):
            reasons.append(
                f"the op times of a step add up to {self.predicted_step:.4g} ms, more than it took "
                f"({self.measured_steps.high:.4g} ms); some of them may include waiting"
            )
        return reasons

    def provenance(self) -> list[str]:
        """Return the origin of the numbers, in lines."""
        schedule = self.schedule
        shape = f"{schedule.ranks} ranks, {schedule.stages} stages, {schedule.microbatches} microbatches"
        return [
            f"{Path(self.source).name}: {self.run}; {shape}",
            self.check(),
            *(f"warning: {reason}" for reason in self.doubts()),
            "milliseconds, medians (quartiles):",
            *(
                f"stage {number}, " + ", ".join(f"{kind} {times[kind]}" for kind in times)
                for number, times in enumerate(self.stages)
            ),
            *(f"{words} {spread}" for words, spread in self.between() if spread is not None),
            *self.segments.remarks,
        ]

    def check(self) -> str:
        """Return a sentence that compares the measured steps with the predicted one."""
        predicted = f"{self.predicted_step:.4g} ms ({change(self.error)})"
        return f"step: measured {self.measured_steps} ms, with these costs {predicted}"

    @property
    def error(self) -> float:
        """By how much the predicted step differs from the median measured one, as a share of that."""
        return self.predicted_step / self.measured_steps.median - 1

    def microbatch_seconds(self) -> list[float]:
        """Return the seconds that each stage computes for one microbatch."""
        return [
            units_in(UNIT, "s") * _microbatch({kind: spread.median for kind, spread in times.items()})
            for times in self.stages
        ]

    def rows(self) -> list[dict[str, float | None]]:
        """Return a row per stage: median times by the names of the settings, None for kinds that it did not run."""
        names = {kind.name: name.removesuffix("_times") for kind, name in TIMED_KINDS.items()} | {
            PAIR: "overlap",
            COPY: "offload",
        }
        shown = [kind for kind in names if any(kind in times for times in self.stages)]
        return [
            {"stage": number} | {names[kind]: times[kind].median if kind in times else None for kind in shown}
            for number, times in enumerate(self.stages)
        ]

    def between(self) -> Iterator[tuple[str, Spread | None]]:
        """Yield the measured times besides op times, each with its name."""
        yield "transfer between ranks", self.gaps.transfer
        yield "gap before every op", self.gaps.op
        yield "a message takes from a rank", self.gaps.message
        yield "end of a step", self.step_time


def _microbatch(times: Mapping[str, float]) -> float:
    """Return the time that a stage computes for one microbatch."""
    if "F" not in times and PAIR in times:
        return times[PAIR] + times.get("W", 0.0)
    backward = times.get("B", times.get("I", 0.0) + times.get("W", 0.0))
    return times.get("F", 0.0) + times.get("R", 0.0) + backward


def _at_least_0(spread: Spread | None) -> float | None:
    return None if spread is None else max(spread.median, 0.0)


def read_run_costs(source: str | os.PathLike[str]) -> RunCosts:
    """Read the costs of a run: the folder of its traces, one trace, or a measured timeline."""
    return run_costs(read_run(source), os.fspath(source))


def settings_of_timeline(timeline: Timeline) -> Settings:
    """Return the costs of one measured timeline in its own unit, without the time that a step adds."""
    settings = run_costs(MeasuredRun((timeline,), 1, 1, 1), "the timeline").settings().replace(step_time=None)
    scale = units_in(UNIT, timeline.unit) if timeline.unit in TIME_UNITS else 1.0
    times: dict[str, Any] = {
        name: tuple(part * scale for part in value) if isinstance(value, tuple) else value * scale
        for name, value in settings.changed.items()
        if SETTINGS[name].timing and isinstance(value, float | tuple)
    }
    return settings.replace(**times, time_unit=timeline.unit)


def run_costs(run: MeasuredRun, source: str) -> RunCosts:
    """Return the costs of a run, whose name is ``source``."""
    if run.timelines[0].source != "measured":
        raise InputError(f"{source} is a simulated timeline; costs need a run's traces or its measured timeline")
    timed = timed_only if run.copies_timed else compute_only
    timelines = [timed(in_unit(timeline, UNIT)) for timeline in run.timelines]
    schedule = timelines[0].schedule
    if any(timeline.schedule != schedule for timeline in timelines):
        raise InputError(f"{source} holds steps of different schedules; pass the traces of one run")
    stages = _stages(timelines)
    return RunCosts(
        source=source,
        run=run,
        schedule=schedule,
        stages=stages,
        gaps=gaps_of([compute_only(timeline) for timeline in timelines]),
        step_time=Spread.of(run.pauses) if run.pauses else None,
        measured_steps=Spread.of(map(_length, timelines)),
        segments=run_segments(run, timelines, stages),
    )


def _length(timeline: Timeline) -> float:
    return float(timeline.end.max() - timeline.start.min())


def _stages(timelines: Sequence[Timeline]) -> tuple[Times, ...]:
    schedule = timelines[0].schedule
    columns, second = schedule.columns, schedule.joined
    first = np.append(second[1:], False)
    durations = np.stack([timeline.end - timeline.start for timeline in timelines])
    stages = []
    for stage in range(schedule.stages):
        times: dict[str, Spread] = {}
        for kind in TIMED_KINDS:
            here = (columns.kind == kind) & (columns.stage == stage)
            alone = here & ~(first | second)
            if alone.any():
                times[kind.name] = Spread.of(durations[:, alone].ravel())
            elif here.any():
                times[kind.name] = Spread.of(durations[:, here].ravel() / 2)
        if (pairs := first & (columns.stage == stage)).any():
            times[PAIR] = Spread.of(durations[:, pairs].ravel())
        if (copies := among(columns.kind, HOST_KINDS) & (columns.stage == stage)).any():
            times[COPY] = Spread.of(durations[:, copies].ravel())
        stages.append(times)
    return tuple(stages)


def _times(stages: Sequence[Times]) -> dict[str, Any]:
    """Return the settings of the kinds whose time is known, or follows from others, on every stage."""
    medians = [_with_halves({kind: spread.median for kind, spread in times.items()}) for times in stages]
    by_setting: dict[str, Any] = {
        name: tuple(times[kind.name] for times in medians)
        for kind, name in TIMED_KINDS.items()
        if all(kind.name in times for times in medians) and any(kind.name in times for times in stages)
    }
    if all(PAIR in times for times in medians):
        # A pair takes at least as long as its longer half.
        by_setting["overlap_times"] = tuple(max(times[PAIR], times["F"], times.get("B", 0.0)) for times in medians)
    if copies := [times[COPY] for times in medians if COPY in times]:
        by_setting["offload_times"] = tuple(times.get(COPY, max(copies)) for times in medians)
    return by_setting


def _with_halves(times: dict[str, float]) -> dict[str, float]:
    """Return a stage's times, completed with what follows for a backward and its halves."""
    full, inputs, weights = (times.get(kind) for kind in "BIW")
    if full is None and inputs is not None and weights is not None:
        return times | {"B": inputs + weights}
    if full is not None and inputs is None and weights is None:
        return times | {"I": full / 2, "W": full / 2}
    return times


def gaps_of(timelines: Sequence[Timeline]) -> RunGaps:
    """Return the time between the ops of timelines of compute ops."""
    cells = [_cells(timeline) for timeline in timelines]
    table = np.concatenate(cells) if cells else np.empty((0, 5))
    gap, waited, ready, before, after = table.T
    # A message is known to have been there only if it would have been in time even at the usual pace.
    waits = np.isfinite(waited) & (waited <= gap)
    pace = float(np.median(waited[waits])) if waits.any() else 0.0
    free = np.isfinite(gap) & (ready >= pace)
    messages = before + after
    op = _spread(gap[free & (messages == 0)])
    own = 0.0 if op is None else max(op.median, 0.0)
    busy = free & (messages > 0)
    # What ranks do in a gap may pass while they would wait: both ends together take no more than a wait shows.
    message = _spread(np.minimum((gap[busy] - own) / messages[busy], max(pace - own, 0.0) / 2))
    per_message = 0.0 if message is None else max(message.median, 0.0)
    return RunGaps(_spread(waited[waits] - own - per_message * (1 + after[waits])), op, message)


def _spread(times: Floats) -> Spread | None:
    return Spread.of(times) if len(times) else None


def _cells(timeline: Timeline) -> NDArray[np.float64]:
    """Return a row for each op except an idle rank's first; an overlapped pair is one op.

    It holds the time since the op before it on its rank ended; the time since the op whose message it needs ended; how long
    before the former the latter was; how many messages the op before it sends, and how many it receives. Infinite where
    there is none.
    """
    schedule = timeline.schedule
    arrival = dependencies(schedule).arrival
    crossing = np.flatnonzero(crosses_ranks(schedule, arrival))
    cell = np.cumsum(~schedule.joined) - 1
    count = int(cell[-1]) + 1 if len(cell) else 0
    sent, received = np.zeros(count), np.zeros(count)
    np.add.at(sent, cell[arrival[crossing]], 1)
    np.add.at(received, cell[crossing], 1)
    sender_end = np.full(count, -np.inf)
    np.maximum.at(sender_end, cell[crossing], timeline.end[arrival[crossing]])
    first = np.flatnonzero(~schedule.joined)
    start, end, rank = timeline.start[first], timeline.end[first], schedule.rank[first]
    begins = np.append(True, rank[1:] != rank[:-1])[:count]
    before = np.where(begins, -np.inf, np.append(-np.inf, end[:-1])[:count])
    sends = np.where(begins, 0, np.append(0, sent[:-1])[:count])
    with np.errstate(invalid="ignore"):
        ready = before - sender_end
    return np.column_stack([start - before, start - sender_end, ready, sends, received])
