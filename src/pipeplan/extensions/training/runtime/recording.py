"""Measured steps: start, end and wait of each op on one rank, and the recording of all ranks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from pipeplan.extensions.training.runtime.clocks import Clock, Nanoseconds
from pipeplan.extensions.training.runtime.offloading import Copy
from pipeplan.extensions.training.runtime.progress import Phase, Places
from pipeplan.formats import TimelineContent, formats
from pipeplan.foundation.errors import InputError, UnknownNameError
from pipeplan.foundation.files import replacing
from pipeplan.model import COMPUTE_KINDS, HOST_KINDS, Floats, Kind, Schedule, Timeline, among, received_when_needed


@dataclass(frozen=True, slots=True, eq=False)
class OpTimes:
    """Times of one rank's ops, or of all ops: arrays of shape (ops,) in nanoseconds of the first rank's monotonic clock.

    Attributes
    ----------
    start, end
        Times of an op. A compute op lasts while it computes; a SEND or an op of a whole stage, while it is handed over; a
        RECV, from its posting until it is handed over; an OFFLOAD or RELOAD, while its copy runs.
    wait
        Time that the rank waited at the op before it could compute, for a message or the GPU; at an OFFLOAD, for the copy.
    """

    start: Nanoseconds
    end: Nanoseconds
    wait: Nanoseconds


class Recorder:
    """Observer of one rank: it always records the rank's place, and takes times while ``recording``.

    Parameters
    ----------
    schedule
        Schedule that the rank runs.
    rank
        Number of the rank.
    clock
        Clock that takes the times.
    places
        Record of what each rank is doing.
    """

    def __init__(self, schedule: Schedule, rank: int, clock: Clock, places: Places) -> None:
        begin, stop = schedule.offsets[rank : rank + 2].tolist()
        row = schedule.row(rank)
        self._compute = np.flatnonzero(among(row.kind, COMPUTE_KINDS))
        copies = np.flatnonzero(among(row.kind, HOST_KINDS))
        keys = zip(*(column[copies].tolist() for column in (row.kind, row.stage, row.microbatch)), strict=True)
        self._copy_of = dict(zip(keys, copies.tolist(), strict=True))
        self._offloads = np.flatnonzero(row.kind == Kind.OFFLOAD)
        # Both ops of an overlapped pair are one cell of the row.
        joined = schedule.joined[begin:stop]
        self._cell = np.cumsum(~joined) - 1
        self._second = np.flatnonzero(joined)
        self._rank, self._clock, self._places = rank, clock, places
        self.recording = False
        self._step = -1
        self._position = 0
        self._forget()

    def _forget(self) -> None:
        self._turns: list[Any] = []
        self._starts: list[Any] = []
        self._ends: list[Any] = []
        self._copies: list[tuple[int, Copy]] = []

    def begin_step(self) -> None:
        """Forget the step before."""
        self._step += 1
        self._forget()
        if self.recording:
            self._clock.restart()

    def turn(self, position: int) -> None:
        """Record that the rank turns to a cell of its row."""
        self._position = position
        if self.recording:
            self._turns.append(self._clock.mark())
        self._places.tell(self._rank, self._step, position, Phase.WAITING)

    def op_started(self) -> None:
        """Record that the inputs of the op have arrived."""
        self._places.tell(self._rank, self._step, self._position, Phase.COMPUTING)
        if self.recording:
            self._starts.append(self._clock.mark())

    def op_ended(self) -> None:
        """Record the end of the op that started last. A later call replaces it, for an op that goes on."""
        if self.recording:
            self._ends[len(self._starts) - 1 :] = [self._clock.mark()]

    def mark(self) -> Any:
        """Return a mark of the current time, for copies that overlap compute."""
        return self._clock.mark() if self.recording else None

    def copied(self, kind: Kind, stage: int, microbatch: int, copy: Copy) -> None:
        """Record a copy to the host or back."""
        if self.recording:
            self._copies.append((self._copy_of[kind, stage, microbatch], copy))

    def between_steps(self) -> None:
        """Record that the rank has finished the step."""
        self._places.tell(self._rank, self._step, self._position, Phase.BETWEEN_STEPS)

    def times(self, offset: int) -> OpTimes:
        """Return times of the step's ops, in the order of the rank's row; ``offset`` nanoseconds are added to the clock."""
        turns, starts, ends = (self._clock.times(marks) for marks in (self._turns, self._starts, self._ends))
        # By default an op lasts from its turn to the next one; compute ops and copies have their own marks.
        start, end = turns[self._cell] + offset, turns[self._cell + 1] + offset
        wait = np.zeros(len(start), np.int64)
        start[self._compute], end[self._compute] = starts + offset, ends + offset
        wait[self._compute] = starts - turns[self._cell[self._compute]]
        wait[self._offloads] = (end - start)[self._offloads]
        if self._copies:
            ops, marks = zip(*((op, copy.marks()) for op, copy in self._copies), strict=True)
            copied = self._clock.times([mark for pair in marks for mark in pair]) + offset
            start[list(ops)], end[list(ops)] = copied[::2], copied[1::2]
        # PyTorch runs the two ops of a pair one after the other: both get the pair's start and end.
        first, second = self._second - 1, self._second
        wait[second] = start[second] - end[first]
        start[second], end[first] = start[first], end[second]
        return OpTimes(start, end, wait)


def measured_timeline(schedule: Schedule, rows: list[OpTimes], zero: float | None = None) -> tuple[Timeline, Floats]:
    """Return all ranks' times as a timeline in milliseconds, and each op's wait, shape (ops,).

    A RECV ends where the op that needs it found it there. ``zero`` is the time of the timeline's zero in nanoseconds; None:
    the first start.
    """
    start, end, wait = (
        np.concatenate([getattr(row, name) for row in rows]).astype(np.float64) for name in ("start", "end", "wait")
    )
    end = received_when_needed(schedule, start, end)
    zero = start.min() if zero is None else zero
    return Timeline(schedule, (start - zero) / 1e6, (end - zero) / 1e6, "ms", "measured"), wait / 1e6


def step_nanoseconds(rows: list[OpTimes]) -> int:
    """Return the time from the first start on any rank to the last end on any."""
    return int(max(row.end.max() for row in rows) - min(row.start.min() for row in rows))


class Recording:
    """Measured steps of a block of :meth:`Pipeline.record`, available when the block ends.

    All ranks of the pipeline have the same recording.
    """

    def __init__(self, schedule: Schedule, *, first_rank: bool) -> None:
        self._schedule, self._first_rank = schedule, first_rank
        self._steps: tuple[list[OpTimes], ...] = ()

    def fill(self, rows: Sequence[Sequence[OpTimes]]) -> None:
        """Store every rank's times of every step."""
        self._steps = tuple(list(step) for step in zip(*rows, strict=True))

    def __len__(self) -> int:
        """Return the number of recorded steps."""
        return len(self._steps)

    @property
    def step_seconds(self) -> tuple[float, ...]:
        """Return the seconds of every step, from the first start to the last end of an op on any rank, without optimizer."""
        return tuple(step_nanoseconds(step) / 1e9 for step in self._steps)

    @property
    def median_step_seconds(self) -> float:
        """Return the median of the steps, in seconds."""
        self._require_steps()
        return median(self.step_seconds)

    @property
    def steps(self) -> tuple[Timeline, ...]:
        """Return the timeline of every step, in milliseconds from its first start."""
        return tuple(measured_timeline(self._schedule, step)[0] for step in self._steps)

    def on_one_clock(self) -> tuple[Timeline, ...]:
        """Return the timeline of every step, in milliseconds from the first start of the first step."""
        self._require_steps()
        zero = float(min(row.start.min() for row in self._steps[0]))
        return tuple(measured_timeline(self._schedule, step, zero)[0] for step in self._steps)

    @property
    def timeline(self) -> Timeline:
        """Return the timeline of the step of median length, in milliseconds from its first start on any rank.

        A compute op lasts while it computes; a SEND, until it is handed over; a RECV, from its posting until the op that
        needs it finds its data. Both ops of an overlapped pair have the pair's time.

        Raises
        ------
        InputError
            If no step was recorded, or the block of the recording has not ended.
        """
        return self._median()[0]

    @property
    def wait(self) -> Floats:
        """Return the wait at each op of :attr:`timeline` before it could compute, in milliseconds, shape (ops,)."""
        return self._median()[1]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :attr:`timeline` as ``.json`` with the times of all steps, or as ``.trace.json`` for Perfetto.

        ``pipeplan profile --from`` takes the costs of all steps in the JSON file; other commands use the timeline.
        The first rank of the pipeline writes; the others do nothing. Pipelines of the same job need different files.

        Raises
        ------
        UnknownNameError
            If no format of timelines has this suffix.
        InputError
            If no step was recorded, or the file cannot be written.
        """
        path = Path(path)
        writers = {form.ending: form.write_timeline for form in formats().values() if form.write_timeline is not None}
        fitting = [ending for ending in writers if path.name.lower().endswith(ending)]
        if not fitting:
            raise UnknownNameError("format of timelines", path.suffix or path.name, writers)
        text = writers[max(fitting, key=len)](TimelineContent(timeline=self.timeline, steps=self.on_one_clock()))
        if self._first_rank:
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="")

    def _median(self) -> tuple[Timeline, Floats]:
        self._require_steps()
        lengths = self.step_seconds
        # The lower median: a step that was measured, not the mean of two.
        middle = sorted(range(len(lengths)), key=lengths.__getitem__)[(len(lengths) - 1) // 2]
        return measured_timeline(self._schedule, self._steps[middle])

    def _require_steps(self) -> None:
        if not self._steps:
            raise InputError("no step was recorded: first call step() inside 'with pipeline.record() as recording'")
