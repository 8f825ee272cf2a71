"""Decisions of a search in addition to the order of the ops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from pipeplan.foundation.errors import InputError, UnknownNameError

Choice = Literal["split", "overlap", "weight-order", "recompute", "offload"]

CHOICES: tuple[Choice, ...] = get_args(Choice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Decisions of a search, each of which can be switched off.

    Attributes
    ----------
    split
        The split of each backward: into I and W, or a full B. Some frameworks cannot split: then all are full.
    overlap
        Pairs of forwards and backwards that overlap, where the costs say what a pair takes.
    weight_order
        The stage whose owed weight backward a rank runs first; without it the one that has waited longest.
    recompute
        Microbatches that each stage computes again before their backward, instead of keeping what it needs.
    offload
        Microbatches that each stage copies to the host's memory, and when it begins to fetch them.
    """

    split: bool = True
    overlap: bool = True
    weight_order: bool = True
    recompute: bool = False
    offload: bool = False

    def __contains__(self, name: object) -> bool:
        return name in CHOICES and bool(getattr(self, _field_of(str(name))))

    @property
    def names(self) -> tuple[Choice, ...]:
        """Decisions that are left to the search, in the order of ``CHOICES``."""
        return tuple(name for name in CHOICES if name in self)

    @property
    def frees_memory(self) -> bool:
        """True if a microbatch may free memory between its forward and its backward."""
        return self.recompute or self.offload

    @classmethod
    def of(cls, decide: Iterable[str] = (), leave: Iterable[str] = ()) -> Choices:
        """Return the default choices, with the names of ``decide`` and without those of ``leave``.

        Raises
        ------
        UnknownNameError
            For a name that is not a choice.
        InputError
            For a name in both.
        """
        decide, leave = list(decide), list(leave)
        for field, names in (("decide", decide), ("leave", leave)):
            for name in names:
                if name not in CHOICES:
                    raise UnknownNameError("choice", name, CHOICES, field=field)
        both = [name for name in decide if name in leave]
        if both:
            raise InputError(f"{both[0]} is in both decide and leave: keep only one", field="leave")
        changes = {_field_of(name): True for name in decide} | {_field_of(name): False for name in leave}
        return replace(cls(), **changes)


USUAL = Choices()
"""Default decisions of a search."""


def _field_of(name: str) -> str:
    return name.replace("-", "_")
