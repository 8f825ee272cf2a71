"""What a user's own training steps took, op by op, on all ranks of the pipeline."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import replacing
from pipeplan.formats import Outcome, formats
from pipeplan.model import Floats, Schedule, Timeline
from pipeplan.runtime.recorder import Times, measured_timeline, step_nanoseconds


class Recording:
    """The steps between entering and leaving :meth:`Pipeline.record`, measured; filled when it is left.

    All ranks of the pipeline have the same recording.
    """

    def __init__(self, schedule: Schedule, *, first_rank: bool) -> None:
        self._schedule, self._first_rank = schedule, first_rank
        self._steps: tuple[list[Times], ...] = ()

    def fill(self, rows: Sequence[Sequence[Times]]) -> None:
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
        """The median of the steps."""
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
        text = written[max(fitting, key=len)](Outcome(timeline=self.timeline))
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
