"""Branch and bound over all legal configurations: the most promising first, until nothing left can be better.

A frame (degrees, microbatch size) is priced once and stands for all of its variants (chunks and schedule); a variant stands for
all that could save memory. Each is bounded before it is opened, and what a bound rules out is never simulated. Of what saves
memory a variant takes the first set that fits, in the order of the time that it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

from pipeplan.planner.bounds import Bounds, Least
from pipeplan.planner.candidates import as_configuration, frames, savings, variants
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.pricing import Pricing
from pipeplan.planner.question import Question

SLACK = 1.03
"""What is at most so much slower than the best is estimated, too: runners-up are compared by estimates, not by bounds."""

Value = Callable[[Question, float], float]
"""What is minimised, of a question and seconds of a step; it grows with the seconds."""


@dataclass(slots=True, eq=False)
class Space:
    """The legal configurations of one question (one number of GPUs), with their bounds."""

    question: Question
    bounds: Bounds
    legal: int = 0
    over_memory: int = 0
    opened: int = 0
    _variants: dict[tuple[Any, ...], list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, question: Question, calibration: Any = None) -> Space:
        """With nothing priced yet."""
        return cls(question, Bounds(Pricing(question.model, question.cluster, calibration)))

    def frames(self) -> Iterator[dict[str, Any]]:
        """All of them, those that split the model the least first: they are the likeliest to be good."""
        return iter(sorted(frames(self.question), key=_likely))

    def orders(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        """Chunks, schedules, groups and layouts that are legal with a frame."""
        key = tuple(frame[name] for name in ("pipeline", "data", "microbatch_size", "software"))
        known = self._variants.get(key)
        if known is None:
            known = [
                {name: draft[name] for name in ("chunks", "schedule", "group_size", "layers")}
                for draft in variants(self.question, frame)
            ]
            self._variants[key] = known
        return known

    def savings(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        """What can save memory, the quickest first."""
        plain = {"schedule": "1f1b", "chunks": 1}
        found = []
        for draft in savings(self.question, frame):
            saving = {name: draft[name] for name in ("recompute", "offload")}
            least = self.bounds.of_frame(self.configuration(frame, plain, saving))
            found.append((least.seconds, saving["offload"], len(found), saving))
        return [each[-1] for each in sorted(found, key=lambda each: each[:3])]

    def configuration(self, frame: dict[str, Any], order: dict[str, Any], saving: dict[str, Any]) -> Configuration:
        """Of the three parts."""
        return as_configuration(self.question, {**frame, **order, **saving})


def _likely(frame: dict[str, Any]) -> tuple[int, ...]:
    split = frame["tensor"] * frame["context"] * frame["expert_tensor"]
    return split * frame["pipeline"], split, frame["microbatch_size"], frame["expert"], frame["zero"]


@dataclass(slots=True, eq=False)
class Group:
    """One variant of a frame, and what could save its memory, from the next to be tried on."""

    space: Space
    frame: dict[str, Any]
    order: dict[str, Any]
    savings: Sequence[dict[str, Any]]
    next: int = 0
    least: Least = Least(0.0, 0.0)

    @property
    def configuration(self) -> Configuration:
        """With the saving that is to be tried."""
        return self.space.configuration(self.frame, self.order, self.savings[self.next])

    def settle(self, limit: float) -> bool:
        """Go on to the first saving whose bound fits into a limit; False where none does."""
        while self.next < len(self.savings):
            self.least = self.space.bounds.of(self.configuration)
            if self.least.bytes <= limit:
                return True
            self.next += 1
        return False


class Branching:
    """What is to be estimated next, given what has been.

    Parameters
    ----------
    spaces
        One for each number of GPUs.
    value
        What is minimised.
    limit
        Bytes of a GPU.

    Attributes
    ----------
    best
        The least value of an estimate within the limit.
    exhausted
        Whether nothing is left that could be within :data:`SLACK` of the best.
    """

    def __init__(self, spaces: Sequence[Space], value: Value, limit: float) -> None:
        self.best = inf
        self.exhausted = False
        self.too_slow = 0
        self._value, self._limit = value, limit
        self._numbers = count()
        self._heap: list[tuple[float, int, Group | tuple[Space, dict[str, Any]]]] = []
        self._frames = ((space, frame) for space in spaces for frame in space.frames())
        self._priced_all = False

    def price(self, most: int) -> bool:
        """Bound up to so many more frames; whether any were left."""
        for _ in range(most):
            found = next(self._frames, None)
            if found is None:
                self._priced_all = True
                return False
            self._price(*found)
        return True

    def _price(self, space: Space, frame: dict[str, Any]) -> None:
        orders = space.orders(frame)
        if not orders:
            return
        choices = list(savings(space.question, frame))
        space.legal += len(orders) * len(choices)
        plain = {"schedule": "1f1b", "chunks": 1}
        first = {name: choices[0][name] for name in ("recompute", "offload")}
        least = space.bounds.of_frame(space.configuration(frame, plain, first))
        if least.bytes > self._limit:
            space.over_memory += len(orders) * len(choices)
            return
        heappush(self._heap, (self._value(space.question, least.seconds), next(self._numbers), (space, frame)))

    def round(self, most: int) -> list[Group]:
        """Up to so many groups to estimate, the most promising first; none: nothing left could be better."""
        taken: list[Group] = []
        while self._heap and len(taken) < most:
            if self._heap[0][0] > SLACK * self.best:
                break
            _, _, node = heappop(self._heap)
            if isinstance(node, Group):
                taken.append(node)
            else:
                self._open(*node)
        self.exhausted = self._priced_all and not taken
        return taken

    def _open(self, space: Space, frame: dict[str, Any]) -> None:
        choices = space.savings(frame)
        for order in space.orders(frame):
            group = Group(space, frame, order, choices)
            if group.settle(self._limit):
                self._push(group)
            space.over_memory += group.next

    def _push(self, group: Group) -> None:
        heappush(self._heap, (self._value(group.space.question, group.least.seconds), next(self._numbers), group))

    def learn(self, group: Group, estimate: Estimate | None) -> None:
        """Take the estimate of a group; where it does not fit, the group's next saving is to be tried."""
        group.space.opened += 1
        if estimate is not None and estimate.peak_bytes <= self._limit:
            self.best = min(self.best, self._value(group.space.question, estimate.step_time))
            return
        group.next += 1
        if group.settle(self._limit):
            self._push(group)

    @property
    def left(self) -> int:
        """Groups and frames that were bounded and not opened."""
        return len(self._heap)
