"""Annealing of an order by steps that are timed whole, or as far as they change anything, which pays on long schedules."""

from __future__ import annotations

import numpy as np

from pipeplan.extensions.search.candidate import Encoder
from pipeplan.extensions.search.engines.annealing import OPS_BETWEEN_LOOKS
from pipeplan.extensions.search.kernels.annealing_kernel import anneal
from pipeplan.extensions.search.kernels.arrays import SearchWalk, StepOptions
from pipeplan.extensions.search.kernels.marks_kernel import Marks, Stretch, Touched, Trials
from pipeplan.extensions.search.kernels.resuming_kernel import anneal_locally
from pipeplan.extensions.search.moves import Move, moves_for
from pipeplan.extensions.search.moves import decision_kernel as decision
from pipeplan.extensions.search.moves import shift_kernel as shift
from pipeplan.extensions.search.moves.outside import run_with
from pipeplan.foundation.kernels import Argument, Kernel, Output

_ANNEAL = Kernel(anneal)
_ANNEAL_LOCALLY = Kernel(anneal_locally)

LONG = 256
"""Number of positions from which on timing a part of the schedule is faster than timing it whole."""

LOCAL = (shift.apply, decision.force)
"""``apply`` functions of moves that note all places that they change."""

POSITIONS_PER_MARK = 2
"""Distance of two marks in classes: about as many ops as two microbatches have."""


def local_moves(encoder: Encoder, moves: tuple[Move, ...]) -> tuple[Move, ...]:
    """Return the moves to anneal by if steps can be timed in part and that pays; else none.

    Where pairs may overlap or full backwards gain, and on wide problems, schedules are timed whole.
    """
    # Parts can be timed if moves note the places that they change, and nothing couples ops beyond their row and source.
    gaining = moves_for(encoder, moves)
    plain = not (encoder.has_pairs or encoder.is_wide)
    local = all(move.apply in LOCAL for move in gaining)
    return gaining if plain and local and encoder.positions >= LONG else ()


class WholeSteps:
    """An annealing in progress, each step of which times the whole candidate.

    Parameters
    ----------
    encoder, moves, options
        The problem, the moves that a step may make, and how it steps.
    walk
        The current candidate and the best one; changed.
    """

    def __init__(self, encoder: Encoder, moves: tuple[Move, ...], options: StepOptions, walk: SearchWalk) -> None:
        self.walk, self.kernel = walk, run_with(_ANNEAL, moves)
        self._inputs, self._work = (encoder.flat, options), encoder.positions
        self._outputs = (walk, encoder.empty_timing())

    def arguments(self, steps: int) -> tuple[tuple[Argument, ...], tuple[Output, ...]]:
        """Return the kernel's inputs and outputs for this many steps."""
        return (*self._inputs, steps), self._outputs

    def make(self, steps: int, most: int = OPS_BETWEEN_LOOKS) -> int:
        """Make this many search steps, or fewer once ``most`` places of ops were timed; return how many were made."""
        steps = min(max(most // self._work, 1), steps)
        self.kernel(*self.arguments(steps))
        return steps


class LocalSteps:
    """An annealing in progress, each step of which is timed as far as it changes anything; see :class:`WholeSteps`."""

    def __init__(self, encoder: Encoder, moves: tuple[Move, ...], options: StepOptions, walk: SearchWalk) -> None:
        self.walk, self.kernel = walk, run_with(_ANNEAL_LOCALLY, moves)
        self._inputs, self._work = (encoder.flat, options), encoder.positions
        ranks, positions = len(encoder.flat.work), encoder.positions
        # Timings and marks are there twice, for the current candidate and for the trial. Where a step is taken back, only
        # what it has changed is copied from one to the other.
        self._trials = Trials(
            touched=Touched(*(np.zeros(size, np.int64) for size in (1, ranks, ranks, ranks))),
            stretch=Stretch(np.zeros(3, np.int64), np.zeros(1, np.int64)),
            indices=np.zeros(positions, np.int64),
            base=empty_marks(encoder),
            current=encoder.empty_timing(),
            marks=empty_marks(encoder),
            timing=encoder.empty_timing(),
        )

    @property
    def visits(self) -> int:
        """Number of places that the last steps have timed."""
        return int(self._trials.stretch.visits[0])

    def arguments(self, steps: int, most: int = OPS_BETWEEN_LOOKS) -> tuple[tuple[Argument, ...], tuple[Output, ...]]:
        """Return the kernel's inputs and outputs for this many steps."""
        return (*self._inputs, steps, most), (self.walk, self._trials)

    def make(self, steps: int, most: int = OPS_BETWEEN_LOOKS) -> int:
        """Make this many search steps, or fewer once ``most`` places of ops were timed; return how many were made."""
        return int(self.kernel(*self.arguments(steps, most)))


def empty_marks(encoder: Encoder) -> Marks:
    """Return empty marks, the first and the last one included."""
    # With more marks a step begins and ends closer to its change, but a comparison at a mark takes as long as some ops.
    marks = max(encoder.positions // (POSITIONS_PER_MARK * encoder.classes), 1) + 1
    ranks, classes = len(encoder.flat.work), encoder.classes
    valid, done = np.zeros(marks, np.int64), np.zeros(marks * classes, np.int64)
    cursor, pending, owed = np.zeros((3, marks * ranks), np.int64)
    clock, held, left, begin = np.zeros((4, marks * ranks))
    return Marks(valid, cursor, pending, owed, clock, held, left, begin, done)
