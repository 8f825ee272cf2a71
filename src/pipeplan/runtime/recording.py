"""Measured steps: each op's start, end and wait on one rank, and the recording of all ranks that a user gets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import replacing
from pipeplan.formats import TimelineContent, formats
from pipeplan.model import COMPUTE_KINDS, HOST_KINDS, Floats, Kind, Schedule, Timeline, among, received_when_needed
from pipeplan.runtime.clocks import Clock, Nanoseconds
from pipeplan.runtime.offloading import Copy
from pipeplan.runtime.progress import Phase, Places


@dataclass(frozen=True, slots=True, eq=False)
class OpTimes:
    """Times of one rank's ops, or of all ops: arrays of shape (ops,) in nanoseconds of the first rank's monotonic clock.

    Attributes
    ----------
    start, end
        Of a compute op: of its computation. Of a SEND or an op of a whole stage: of handing it over. Of a RECV: from when
        it was posted to when it was handed over. Of an OFFLOAD or RELOAD: of its copy.
    wait
        How long the rank waited at the op before it could compute: for a message, or for the GPU. At an OFFLOAD: for the
        copy's end.
    """

    start: Nanoseconds
    end: Nanoseconds
    wait: Nanoseconds


class Recorder:
    """An observer of one rank: it tells at any time where the rank is, and takes times while ``recording``.

    Parameters
    ----------
    schedule
        What the rank runs.
    rank
        Which one it is.
    clock
        By which to take times.
    places
        Told where the rank is.
    """

    def __init__(self, schedule: Schedule, rank: int, clock: Clock, places: Places) -> None:
        begin, stop = schedule.offsets[rank : rank + 2].tolist()
        row = schedule.row(rank)
        self._compute = np.flatnonzero(among(row.kind, COMPUTE_KINDS))
        copies = np.flatnonzero(among(row.kind, HOST_KINDS))
        keys = zip(*(column[copies].tolist() for column in (row.kind, row.stage, row.microbatch)), strict=True)
        self._copy_of = dict(zip(keys, copies.tolist(), strict=True))
        self._offloads = np.flatnonzero(row.kind == Kind.OFFLOAD)
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
        """Note that the rank turns to a cell of its row."""
        self._position = position
        if self.recording:
            self._turns.append(self._clock.mark())
        self._places.tell(self._rank, self._step, position, Phase.WAITING)

    def start(self) -> None:
        """Note that what the op waited for is there."""
        self._places.tell(self._rank, self._step, self._position, Phase.COMPUTING)
        if self.recording:
            self._starts.append(self._clock.mark())

    def end(self) -> None:
        """The op that started last is done; told again if it turned out to go on."""
        if self.recording:
            self._ends[len(self._starts) - 1 :] = [self._clock.mark()]

    def mark(self) -> Any:
        """Return the time, for what runs beside compute."""
        return self._clock.mark() if self.recording else None

    def copied(self, kind: Kind, stage: int, microbatch: int, copy: Copy) -> None:
        """Note a copy to the host or back."""
        if self.recording:
            self._copies.append((self._copy_of[kind, stage, microbatch], copy))

    def between_steps(self) -> None:
        """The rank is done with the step, and goes on to something else."""
        self._places.tell(self._rank, self._step, self._position, Phase.BETWEEN_STEPS)

    def times(self, offset: int) -> OpTimes:
        """Times of the step's ops, in the order of the rank's row; ``offset`` nanoseconds are added to the clock."""
        turns, starts, ends = (self._clock.times(marks) for marks in (self._turns, self._starts, self._ends))
        start, end = turns[self._cell] + offset, turns[self._cell + 1] + offset
        wait = np.zeros(len(start), np.int64)
        start[self._compute], end[self._compute] = starts + offset, ends + offset
        wait[self._compute] = starts - turns[self._cell[self._compute]]
        wait[self._offloads] = (end - start)[self._offloads]
        if self._copies:
            ops, marks = zip(*((op, copy.marks()) for op, copy in self._copies), strict=True)
            copied = self._clock.times([mark for pair in marks for mark in pair]) + offset
            start[list(ops)], end[list(ops)] = copied[::2], copied[1::2]
        # PyTorch runs the two ops of a pair one after the other: both get the time of the pair.
        first, second = self._second - 1, self._second
        wait[second] = start[second] - end[first]
        start[second], end[first] = start[first], end[second]
        return OpTimes(start, end, wait)


def measured_timeline(schedule: Schedule, rows: list[OpTimes]) -> tuple[Timeline, Floats]:
    """Return all ranks' times as a timeline in milliseconds from the first start, and each op's wait, shape (ops,).

    A RECV ends where the op that needs it found it there.
    """
    start, end, wait = (
        np.concatenate([getattr(row, name) for row in rows]).astype(np.float64) for name in ("start", "end", "wait")
    )
    end = received_when_needed(schedule, start, end)
    zero = start.min()
    return Timeline(schedule, (start - zero) / 1e6, (end - zero) / 1e6, "ms", "measured"), wait / 1e6


def step_nanoseconds(rows: list[OpTimes]) -> int:
    """Return the time from the first start on any rank to the last end on any."""
    return int(max(row.end.max() for row in rows) - min(row.start.min() for row in rows))


class Recording:
    """The steps between entering and leaving :meth:`Pipeline.record`, measured; filled when it is left.

    All ranks of the pipeline have the same recording.
    """

    def __init__(self, schedule: Schedule, *, first_rank: bool) -> None:
        self._schedule, self._first_rank = schedule, first_rank
        self._steps: tuple[list[OpTimes], ...] = ()

    def fill(self, rows: Sequence[Sequence[OpTimes]]) -> None:
        """Take every rank's times of every step."""
        self._steps = tuple(list(step) for step in zip(*rows, strict=True))

    def __len__(self) -> int:
        """The number of recorded steps."""
        return len(self._steps)

    @property
    def step_seconds(self) -> tuple[float, ...]:
        """Every step, from the first start of an op to the last end on any rank: forwards and backwards, no optimizer."""
        return tuple(step_nanoseconds(step) / 1e9 for step in self._steps)

    @property
    def median_step_seconds(self) -> float:
        """The median of the steps, in seconds."""
        self._require_steps()
        return median(self.step_seconds)

    @property
    def steps(self) -> tuple[Timeline, ...]:
        """Every step's timeline, in milliseconds from its first start."""
        return tuple(measured_timeline(self._schedule, step)[0] for step in self._steps)

    @property
    def timeline(self) -> Timeline:
        """The step of median length, in milliseconds from its first start on any rank.

        A compute op lasts as long as it computes; a SEND, as long as it takes to hand it over; a RECV, from its posting
        until the op that needs it found it there. Both ops of an overlapped pair have the pair's time.

        Raises
        ------
        InputError
            If no step was recorded, or the recording goes on.
        """
        return self._median()[0]

    @property
    def wait(self) -> Floats:
        """How long the rank waited at each op of :attr:`timeline` before it could compute, in ms, shape (ops,)."""
        return self._median()[1]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :attr:`timeline`: ``.json`` (what ``pipeplan diff`` and ``explain`` take) or ``.trace.json`` (Perfetto).

        The pipeline's first rank writes, the others do nothing. Of several pipelines side by side, give each its own file.

        Raises
        ------
        UnknownNameError
            For an ending that no format of timelines has.
        InputError
            If no step was recorded, or the file cannot be written.
        """
        path = Path(path)
        written = {each.ending: each.write_timeline for each in formats().values() if each.write_timeline is not None}
        fitting = [ending for ending in written if path.name.lower().endswith(ending)]
        if not fitting:
            raise UnknownNameError("format of timelines", path.suffix or path.name, written)
        text = written[max(fitting, key=len)](TimelineContent(timeline=self.timeline))
        if self._first_rank:
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="")

    def _median(self) -> tuple[Timeline, Floats]:
        self._require_steps()
        lengths = self.step_seconds
        middle = sorted(range(len(lengths)), key=lengths.__getitem__)[(len(lengths) - 1) // 2]
        return measured_timeline(self._schedule, self._steps[middle])

    def _require_steps(self) -> None:
        if not self._steps:
            raise InputError("nothing is recorded: call step() inside 'with pipeline.record() as recording', then look")
