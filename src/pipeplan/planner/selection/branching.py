"""Branch and bound over all valid configurations, the most promising first (Land and Doig 1960).

The tree has three levels. A frame (degrees, microbatch size) is priced once for all of its variants (chunks and schedule); a
variant represents all savings of memory. A node is bounded before it is opened, and what a bound rules out is never
simulated. Among its savings of memory, a variant takes the first one that fits, in the order of their cost in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count, islice
from math import inf
from typing import Any

from pipeplan.planner.answers import Estimate
from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimates.stages import format_peak
from pipeplan.planner.selection.bounds import Bounds, Pricing
from pipeplan.planner.selection.candidates import (
    FRAME_FIELDS,
    SAVING_FIELDS,
    VARIANT_FIELDS,
    as_configuration,
    frames,
    savings,
    variants,
)
from pipeplan.planner.selection.request import PlanRequest
from pipeplan.workload import token_flops

SLACK = 1.03
"""Factor on the best value within which configurations are still estimated, so that runners-up have estimates, not
bounds."""

STARTS = 512
"""Maximum number of frames in the starting part of a space."""

START_CHUNKS = 2
"""Maximum numbers of chunks per schedule in the starting part of a space."""


@dataclass(slots=True, eq=False)
class Space:
    """Valid configurations of one request, that is, of one number of GPUs.

    Attributes
    ----------
    request, pricing
        Request, and costs of its layers.
    sensible
        Whether to consider only a small starting part, which nearly always contains a configuration close to the best: the
        smallest microbatches, few chunks, and among the degrees whose parameters fit those that split the model least.
    """

    request: PlanRequest
    pricing: Pricing
    sensible: bool = False
    _orders: dict[tuple[Any, ...], list[dict[str, Any]]] = field(default_factory=dict)
    _savings: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _bounds: dict[tuple[Any, ...], Bounds] = field(default_factory=dict)

    @classmethod
    def of(cls, request: PlanRequest) -> Space:
        """Return the space of a request, with nothing priced yet."""
        return cls(request, Pricing(request.model, request.cluster, request.calibration))

    @classmethod
    def by_software(cls, request: PlanRequest) -> list[Space]:
        """Return the spaces of a request with each software, which together are its space."""
        names = request.fixed.get("software") or FRAME_FIELDS["software"](request, {})
        pricing = Pricing(request.model, request.cluster, request.calibration)
        return [cls(replace(request, fixed={**request.fixed, "software": (name,)}), pricing) for name in names]

    @property
    def software(self) -> str:
        """Software of all its configurations; the first one if there are several."""
        name: str = self.request.fixed["software"][0]
        return name

    def sensible_part(self) -> Space:
        """Return the starting part, which shares prices and bounds with this space."""
        return replace(self, sensible=True, _orders={})

    @property
    def floor(self) -> float:
        """Seconds of a step at the peak FLOP/s of every GPU: no configuration takes less."""
        request = self.request
        tokens = request.global_batch * request.sequence
        flops = token_flops(request.model, request.sequence).training * tokens
        formats = request.fixed.get("precision", ("bf16",))
        return flops / (request.gpus * max(format_peak(request.cluster.gpu, precision) for precision in formats))

    def frames(self) -> Iterator[dict[str, Any]]:
        """Yield all frames; those that split the model least come first, because they are likely to be good."""
        # The starting part keeps only the smallest microbatch of each frame; ``frames`` yields these first.
        every = frames(self.request)
        if not self.sensible:
            return iter(sorted(every, key=_likely))
        smallest: dict[tuple[Any, ...], dict[str, Any]] = {}
        for frame in every:
            smallest.setdefault(tuple(value for name, value in frame.items() if name != "microbatch_size"), frame)
        limit = self.request.memory_limit
        likely = sorted(smallest.values(), key=_likely)
        return islice((frame for frame in likely if self.bounds(frame).state <= limit), STARTS)

    def orders(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the combinations of chunks, schedule, group size and layout that are valid for a frame."""
        key = tuple(frame[name] for name in ("pipeline", "data", "microbatch_size", "software"))
        if key not in self._orders:
            orders = [{name: draft[name] for name in VARIANT_FIELDS} for draft in variants(self.request, frame)]
            self._orders[key] = _with_few_chunks(orders) if self.sensible else orders
        return self._orders[key]

    def savings(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the valid savings of memory with a frame; they depend on its software."""
        key = frame["software"]
        if key not in self._savings:
            self._savings[key] = [
                {name: draft[name] for name in SAVING_FIELDS} for draft in savings(self.request, frame)
            ]
        return self._savings[key]

    def bounds(self, frame: dict[str, Any]) -> Bounds:
        """Return the bounds for a frame's configurations."""
        key = tuple(frame.values())
        if key not in self._bounds:
            self._bounds[key] = Bounds(self.pricing, as_configuration(self.request, frame))
        return self._bounds[key]


def _likely(frame: dict[str, Any]) -> tuple[int, ...]:
    """Return the sort key of a frame: powers of two first, then the frames that split the model least."""
    split, size = frame["tensor"] * frame["context"] * frame["expert_tensor"], frame["microbatch_size"]
    return size & (size - 1) > 0, split * frame["pipeline"], split, size, frame["expert"], frame["zero"]


def _with_few_chunks(orders: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[str, set[int]] = defaultdict(set)
    for order in orders:
        if len(kept[order["schedule"]]) < START_CHUNKS:
            kept[order["schedule"]].add(order["chunks"])
    return [order for order in orders if order["chunks"] in kept[order["schedule"]]]


@dataclass(slots=True, eq=False)
class Opened:
    """Frame whose savings of memory are priced, the fastest first."""

    space: Space
    frame: dict[str, Any]
    bounds: Bounds
    savings: list[dict[str, Any]]

    @classmethod
    def of(cls, space: Space, frame: dict[str, Any], bounds: Bounds, limit: float) -> Opened:
        """Return the frame without the savings that do not fit with any order."""
        fitting = []
        for number, saving in enumerate(space.savings(frame)):
            # Sorted by time, then by offload, then by the order of enumeration.
            least = bounds.of_saving(saving["recompute"], saving["offload"])
            if least.bytes <= limit:
                fitting.append((least.seconds, saving["offload"], number, saving))
        return cls(space, frame, bounds, [entry[-1] for entry in sorted(fitting, key=lambda entry: entry[:3])])


@dataclass(slots=True, eq=False)
class VariantGroup:
    """Variant of a frame, with the saving of memory to try next."""

    opened: Opened
    order: dict[str, Any]
    next: int = 0
    seconds: float = 0.0
    bytes: float = 0.0

    @property
    def space(self) -> Space:
        """Space of its configurations."""
        return self.opened.space

    @property
    def configuration(self) -> Configuration:
        """Configuration with the saving to try next."""
        return as_configuration(
            self.space.request, {**self.opened.frame, **self.order, **self.opened.savings[self.next]}
        )

    def settle(self, limit: float) -> bool:
        """Advance to the first saving whose memory bound is within a limit; return False if there is none."""
        bounds = self.opened.bounds
        while self.next < len(self.opened.savings):
            saving = self.opened.savings[self.next]
            self.bytes = bounds.bytes(self.order, saving["recompute"], saving["offload"])
            if self.bytes <= limit:
                self.seconds = bounds.seconds(self.order, saving["recompute"], saving["offload"])
                return True
            self.next += 1
        return False


Frame = tuple[Space, dict[str, Any], Bounds]
"""Frame with its bounds."""

Value = Callable[[PlanRequest, float], float]
"""Objective as a function of a request and the seconds of a step; it increases with the seconds."""


class Branching:
    """Branch and bound over configurations: what to estimate next, given the estimates so far.

    Parameters
    ----------
    spaces
        Spaces, one for each number of GPUs.
    value
        Objective to minimize.
    limit
        Memory limit per GPU in bytes.
    slack
        Factor on the best value within which bounded configurations are still estimated.
    best
        Least value that is already known.

    Attributes
    ----------
    best
        The least value of an estimate within the limit.
    exhausted
        Whether nothing is left that could be within the slack of the best.
    legal, over_memory, estimated
        Numbers of configurations that are valid, that memory bounds ruled out, and that were estimated.
    """

    def __init__(
        self, spaces: Sequence[Space], value: Value, limit: float, *, slack: float = SLACK, best: float = inf
    ) -> None:
        self.best = best
        self.exhausted = False
        self.legal = self.over_memory = self.estimated = 0
        self._value, self._limit, self._slack = value, limit, slack
        self._floor = min((value(space.request, space.floor) for space in spaces), default=inf)
        self._under_way: dict[VariantGroup, float] = {}
        self._numbers = count()
        self._heap: list[tuple[float, int, VariantGroup | Frame]] = []
        self._frames = ((space, frame) for space in spaces for frame in space.frames())
        self._priced_all = False

    def price(self, most: int) -> bool:
        """Bound at most this many more frames; return whether any were left."""
        for _ in range(most):
            frame = next(self._frames, None)
            if frame is None:
                self._priced_all = True
                return False
            self._price(*frame)
        return True

    def _price(self, space: Space, frame: dict[str, Any]) -> None:
        orders, choices = space.orders(frame), space.savings(frame)
        number = len(orders) * len(choices)
        self.legal += number
        if not number:
            return
        bounds = space.bounds(frame)
        if bounds.state > self._limit:
            self.over_memory += number
            return
        self._push(self._value(space.request, bounds.of_saving((), 0.0).seconds), (space, frame, bounds))

    def round(self, most: int) -> list[VariantGroup]:
        """Return at most this many groups to estimate, the most promising first, after opening as many frames.

        A round may be empty although later ones are not: ``exhausted`` says whether nothing left could be better.
        """
        taken: list[VariantGroup] = []
        opened = 0
        # Best-first: the heap holds frames (bounded without their variants) and variants; a frame is replaced by its
        # variants when it reaches the top.
        while self._promising and len(taken) < most and opened < most:
            bound, _, node = heappop(self._heap)
            if isinstance(node, VariantGroup):
                taken.append(node)
                self._under_way[node] = bound
            else:
                opened += 1
                self._open(*node)
        self.exhausted = self._priced_all and not taken and not self._promising
        return taken

    @property
    def least(self) -> float:
        """Lower bound on the value of every configuration: the value of the best, or the bound of the unexplored rest."""
        # Whatever is still possible: nodes being estimated, the top of the heap, frames not yet priced.
        left = [self.best, *self._under_way.values()]
        if self._heap:
            left.append(self._heap[0][0])
        if not self._priced_all:
            left.append(self._floor)
        return min(left)

    @property
    def _promising(self) -> bool:
        """True if the most promising waiting node could be within the slack of the best."""
        return bool(self._heap) and self._heap[0][0] <= self._slack * self.best

    def _open(self, space: Space, frame: dict[str, Any], bounds: Bounds) -> None:
        opened = Opened.of(space, frame, bounds, self._limit)
        orders = space.orders(frame)
        self.over_memory += (len(space.savings(frame)) - len(opened.savings)) * len(orders)
        for order in orders if opened.savings else ():
            self._go_on(VariantGroup(opened, order))

    def _go_on(self, group: VariantGroup) -> None:
        before = group.next
        if group.settle(self._limit):
            self._push(self._value(group.space.request, group.seconds), group)
        self.over_memory += group.next - before

    def _push(self, value: float, node: VariantGroup | Frame) -> None:
        heappush(self._heap, (value, next(self._numbers), node))

    def learn(self, group: VariantGroup, estimate: Estimate | None) -> None:
        """Record the estimate of a group; if it does not fit, queue the group with its next saving."""
        self.estimated += 1
        self._under_way.pop(group, None)
        if estimate is not None and estimate.peak_bytes <= self._limit:
            self.best = min(self.best, self._value(group.space.request, estimate.step_time))
            return
        group.next += 1
        self._go_on(group)
