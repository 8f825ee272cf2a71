"""Requirements of a schedule on the model and the trainer, beyond those of a plain pipeline."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from pipeplan.model.op import Kind

if TYPE_CHECKING:
    from pipeplan.model.schedule import Schedule

Need: TypeAlias = Literal["slices", "copies", "recompute"]
"""``slices``: attention over earlier slices of a sequence, and the loss of each slice; ``copies``: every rank holds parts of
two copies of the model; ``recompute``: activations are recomputed before their backward."""

NEEDS: tuple[Need, ...] = get_args(Need)

NEED_WORDS: dict[Need, str] = {
    "slices": "sequence slices",
    "copies": "two copies of the model",
    "recompute": "recomputation",
}


def needs_of(schedule: Schedule) -> tuple[Need, ...]:
    """Return what a schedule needs, wherever it comes from: a strategy, a search or a file."""
    needs: dict[Need, bool] = {
        "slices": schedule.slices > 1,
        "copies": schedule.placement.copies > 1,
        "recompute": schedule.has(Kind.R),
    }
    return tuple(name for name in NEEDS if needs[name])


def needs_in_words(needs: Collection[Need]) -> str:
    """Return needs in words: ``sequence slices and recomputation``; ``nothing`` without any."""
    return " and ".join(NEED_WORDS[name] for name in NEEDS if name in needs) or "nothing"
