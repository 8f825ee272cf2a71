"""A verdict for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.api.checks import Verdict
from pipeplan.checking import marked_grid
from pipeplan.model import counted


def verdict_parts(verdict: Verdict) -> Iterator[str]:
    """The problems with the first faulty op marked, or the shape of what is right; then the notes."""
    schedule = verdict.schedule
    if verdict.problems:
        yield f"{verdict.name} has {counted(len(verdict.problems), 'problem')}:"
        for problem in verdict.problems:
            yield f"  {problem}"
        if schedule is not None and verdict.problems[0].position is not None:
            yield ""
            yield marked_grid(schedule, verdict.problems[0].position)
    elif schedule is not None:
        yield (
            f"{verdict.name} is right: {counted(schedule.ranks, 'rank')}, {counted(schedule.stages, 'stage')} "
            f"({schedule.placement.name}), {counted(schedule.microbatches, 'microbatch')}, {counted(len(schedule), 'op')}"
        )
    for note in verdict.notes:
        yield f"note: {note}"
