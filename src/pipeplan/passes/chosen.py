"""Which microbatches on which stages a pass is asked for: whole stages, or single (stage, microbatch) pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import ShapeError
from pipeplan.model import BACKWARD_KINDS, HOST_KINDS, Bools, Kind, Schedule

Saved = Iterable[int | tuple[int, int]] | None
"""Stages, or (stage, microbatch) pairs, or both; None: all of them."""


def chosen_backwards(schedule: Schedule, what: Saved, *, verb: str, field: str) -> tuple[NDArray[np.intp], Bools]:
    """Positions of the backwards (B or I) of what is meant, and whether each is meant by itself, not by its stage.

    Those that are recomputed or offloaded already are left out.

    Parameters
    ----------
    verb, field
        What the pass does with them, and its setting: for the error.

    Raises
    ------
    ShapeError
        For a stage or a microbatch that the schedule does not have.
    """
    backwards = schedule.where(*BACKWARD_KINDS)
    saved = schedule.key[schedule.where(Kind.R, *HOST_KINDS)]
    backwards = backwards[~np.isin(schedule.key[backwards], saved)]
    if what is None:
        return backwards, np.zeros(len(backwards), np.bool_)
    asked = list(what)
    stages = [each for each in asked if not isinstance(each, tuple)]
    pairs = [each for each in asked if isinstance(each, tuple)]
    _require(schedule.stages, "stage", [*stages, *(stage for stage, _ in pairs)], verb, field)
    _require(schedule.microbatches, "microbatch", [microbatch for _, microbatch in pairs], verb, field)
    columns = schedule.columns
    whole, single = np.zeros(schedule.stages, np.bool_), np.zeros((schedule.stages, schedule.microbatches), np.bool_)
    whole[stages] = True
    if pairs:
        single[tuple(np.array(pairs).T)] = True
    by_stage = whole[columns.stage[backwards]]
    by_itself = single[columns.stage[backwards], columns.microbatch[backwards]]
    meant = by_stage | by_itself
    return backwards[meant], by_itself[meant]


def _require(count: int, noun: str, numbers: list[int], verb: str, field: str) -> None:
    if numbers and not 0 <= min(numbers) <= max(numbers) < count:
        shown = sorted(set(numbers))
        ending = "es" if noun.endswith("ch") else "s"
        raise ShapeError(
            f"cannot {verb} {noun}{ending} {shown}: this schedule has {noun}{ending} 0 to {count - 1}", field=field
        )
