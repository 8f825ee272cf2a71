"""What a user can have done to a schedule's order before it is written: backwards split or merged, weights retimed."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.errors import InputError, ShapeError
from pipeplan.model import Kind, Schedule, require_flags
from pipeplan.passes.backward import merge_backward, split_backward
from pipeplan.passes.retime import retime


@dataclass(frozen=True, slots=True, kw_only=True)
class Rearrangement:
    """The passes that are wanted, applied in this order.

    Attributes
    ----------
    split_backward
        Every full backward becomes one for the inputs and, right behind it, one for the weights.
    retime
        Weight gradients move into idle steps before them; see :func:`~pipeplan.passes.retime.retime`.
    merge_backward
        A backward for the inputs and the one for the weights right behind it become one full backward.

    Raises
    ------
    InputError
        For what is neither True nor False; for splitting and merging at once, without anything between them that would
        tell the two apart.
    """

    split_backward: bool = False
    retime: bool = False
    merge_backward: bool = False

    def __post_init__(self) -> None:
        require_flags(split_backward=self.split_backward, retime=self.retime, merge_backward=self.merge_backward)
        if self.split_backward and self.merge_backward and not self.retime:
            raise InputError("split_backward and merge_backward undo each other: ask for one of them")

    def __bool__(self) -> bool:
        return bool(self.split_backward or self.retime or self.merge_backward)

    def __call__(self, schedule: Schedule) -> Schedule:
        """The schedule rearranged.

        Raises
        ------
        ShapeError
            For retiming a schedule whose backwards are all full: it has no weight gradients to move.
        DeadlockError
            For retiming one whose ranks wait for each other.
        """
        if self.split_backward:
            schedule = split_backward(schedule)
        if self.retime:
            if not schedule.has(Kind.W):
                raise ShapeError(
                    f"{schedule.name or 'this schedule'} has no weight gradients apart to move: split its backwards too"
                )
            schedule = retime(schedule)
        return merge_backward(schedule) if self.merge_backward else schedule
