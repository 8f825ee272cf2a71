"""A verdict for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pipeplan.api.checks import Verdict
from pipeplan.checking import marked_grid


def verdict_parts(verdict: Verdict) -> Iterator[str]:
    """The problems with the first faulty op marked, or the shape of what is right; then the notes."""
    schedule = verdict.schedule
    if verdict.problems:
        yield f"{verdict.name} has {len(verdict.problems)} problem(s):"
        for problem in verdict.problems:
            yield f"  {problem}"
        if schedule is not None and verdict.problems[0].position is not None:
            yield ""
            yield marked_grid(schedule, verdict.problems[0].position)
    elif schedule is not None:
        yield (
            f"{verdict.name} is right: {schedule.ranks} ranks, {schedule.stages} stages ({schedule.placement.name}), "
            f"{schedule.microbatches} microbatches, {len(schedule)} ops"
        )
    for note in verdict.notes:
        yield f"note: {note}"
