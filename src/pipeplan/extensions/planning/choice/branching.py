"""Branch and bound over all valid configurations, the most promising first (Land and Doig 1960).

The tree has four levels. A family of frames (degrees) is bounded with one large microbatch. A frame (degrees, microbatch
size) is priced once for all of its variants (chunks and schedule); a variant represents all savings of memory. A node is
bounded before it is opened, and what a bound rules out is never simulated. Among its savings of memory, a variant takes the
first one that fits, in the order of their cost in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import chain, count, islice
from math import inf, lcm
from typing import Any

from pipeplan.extensions.planning.choice.bounds import Bounds, Least, Pricing
from pipeplan.extensions.planning.choice.candidates import (
    FRAME_FIELDS,
    SAVING_FIELDS,
    VARIANT_FIELDS,
    as_configuration,
    frames,
    savings,
    variants,
)
from pipeplan.extensions.planning.choice.choice import INDISTINGUISHABLE
from pipeplan.extensions.planning.choice.legality import excludes
from pipeplan.extensions.planning.choice.request import PlanRequest, Value
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.stages import format_peak
from pipeplan.extensions.planning.results import Estimate
from pipeplan.extensions.planning.workload import token_flops

SLACK = 1 + INDISTINGUISHABLE
"""Factor on the best value within which configurations are still estimated: simpler ones could be chosen."""

STARTS = 256
"""Maximum number of frames in the starting part of a space."""

GAIN = 0.01
"""Minimum fraction of the step that a larger microbatch saves in computation; otherwise still larger ones are not tried."""

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
    _families: list[list[dict[str, Any]]] | None = None
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

    def restricted(self, **fixed: tuple[Any, ...]) -> Space:
        """Return the part of the space with these values of fields; it shares prices and bounds with this space."""
        return replace(
            self, request=replace(self.request, fixed={**self.request.fixed, **fixed}), _families=None, _orders={}
        )

    def sensible_part(self) -> Space:
        """Return the starting part, which shares prices and bounds with this space."""
        return replace(self, sensible=True, _families=None, _orders={})

    @property
    def floor(self) -> float:
        """Seconds of a step at the peak FLOP/s of every GPU: no configuration takes less."""
        request = self.request
        tokens = request.global_batch * request.sequence
        flops = token_flops(request.model, request.sequence).training * tokens
        formats = request.fixed.get("precision") or FRAME_FIELDS["precision"](request, {})
        return flops / (request.gpus * max(format_peak(request.cluster.gpu, precision) for precision in formats))

    def families(self) -> list[list[dict[str, Any]]]:
        """Return frames that differ only in the microbatch size, the smallest first.

        Families that split the model least come first, because they are likely to be good. The starting part has only the
        smallest microbatch of each.
        """
        if self._families is None:
            self._families = self._all_families()
        return self._families

    def _all_families(self) -> list[list[dict[str, Any]]]:
        families: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for frame in frames(self.request):
            others = tuple(value for name, value in frame.items() if name != "microbatch_size")
            families.setdefault(others, []).append(frame)
        likely = sorted(families.values(), key=lambda family: _likely(family[0]))
        if not self.sensible:
            return likely
        limit = self.request.memory_limit
        return list(islice(([family[0]] for family in likely if self.bounds(family[0]).state <= limit), STARTS))

    def frames(self) -> Iterator[dict[str, Any]]:
        """Yield all frames."""
        return chain.from_iterable(self.families())

    def orders(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the combinations of chunks, schedule, group size and layout that are valid for a frame."""
        key = tuple(frame[name] for name in ("pipeline", "data", "microbatch_size", "software", "expert"))
        if key not in self._orders:
            orders = [{name: draft[name] for name in VARIANT_FIELDS} for draft in variants(self.request, frame)]
            self._orders[key] = _with_few_chunks(orders) if self.sensible else orders
        return self._orders[key]

    def savings(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the valid savings of memory with a frame, the fastest first.

        They depend on its software, and their order is that of the first frame: it hardly depends on the degrees, and
        bounding all savings of every frame would take most of the search.
        """
        key = frame["software"]
        if key not in self._savings:
            bounds = self.bounds(frame)
            choices = [{name: draft[name] for name in SAVING_FIELDS} for draft in savings(self.request, frame)]
            choices.sort(key=lambda one: (bounds.of_saving(one["recompute"], one["offload"]).seconds, one["offload"]))
            self._savings[key] = choices
        return self._savings[key]

    def may_fit(self, frame: dict[str, Any], limit: float) -> bool:
        """Return False if a frame exceeds a memory limit even with whole layers recomputed, which keeps the least."""
        whole = [saving for saving in self.savings(frame) if "full" in saving["recompute"]]
        return not whole or any(self.bounds(frame).of_saving(**saving).bytes <= limit for saving in whole)

    def laid_orders(self, frame: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the orders that are valid for a frame, each with the layouts that are tried with it."""
        return chain.from_iterable(self.laid(frame, order) for order in self.orders(frame))

    def laid(self, frame: dict[str, Any], order: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield an order with the layouts that are tried with it: equal stages and shorter ends, unless one is fixed."""
        yield order
        if order["layers"] is None and frame["pipeline"] > 1:
            layers = self.bounds(frame).balanced(frame["pipeline"] * order["chunks"])
            if layers is not None:
                yield {**order, "layers": layers}

    def bound(self, configuration: Configuration) -> Least:
        """Return the bounds on a configuration of the space."""
        return self.bounds({name: getattr(configuration, name) for name in FRAME_FIELDS}).of(configuration)

    def layouts(self, configuration: Configuration) -> Iterator[Configuration]:
        """Yield a configuration of the space with the layouts that are tried with it."""
        frame = {name: getattr(configuration, name) for name in FRAME_FIELDS}
        order = {name: getattr(configuration, name) for name in VARIANT_FIELDS}
        return (replace(configuration, layers=laid["layers"]) for laid in self.laid(frame, order))

    def of_family(self, family: Sequence[dict[str, Any]]) -> float:
        """Return the bound on a step of any frame of a family."""
        size = lcm(*(frame["microbatch_size"] for frame in family))
        return self.bounds({**family[0], "microbatch_size": size}).of_sizes()

    def bounds(self, frame: dict[str, Any]) -> Bounds:
        """Return the bounds for a frame's configurations."""
        key = tuple(frame.values())
        if key not in self._bounds:
            self._bounds[key] = Bounds(self.pricing, as_configuration(self.request, frame))
        return self._bounds[key]


def _likely(frame: dict[str, Any]) -> tuple[int, ...]:
    """Return the sort key of a frame: those that split the model least come first."""
    split = frame["tensor"] * frame["context"] * frame["expert_tensor"]
    return split * frame["pipeline"], split, frame["microbatch_size"], frame["expert"], frame["zero"]


def _with_few_chunks(orders: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[str, set[int]] = defaultdict(set)
    for order in orders:
        if len(kept[order["schedule"]]) < START_CHUNKS:
            kept[order["schedule"]].add(order["chunks"])
    return [order for order in orders if order["chunks"] in kept[order["schedule"]]]


@dataclass(slots=True, eq=False)
class VariantGroup:
    """Variant of a frame, with the saving of memory to try next."""

    space: Space
    frame: dict[str, Any]
    order: dict[str, Any]
    next: int = 0
    seconds: float = 0.0
    settled: bool = False

    @property
    def configuration(self) -> Configuration:
        """Configuration with the saving to try next."""
        saving = self.space.savings(self.frame)[self.next]
        return as_configuration(self.space.request, {**self.frame, **self.order, **saving})

    def settle(self, limit: float) -> bool:
        """Advance to the first saving whose memory bound is within a limit; return False if there is none."""
        bounds = self.space.bounds(self.frame)
        for saving in self.space.savings(self.frame)[self.next :]:
            fits = bounds.of_saving(**saving).bytes <= limit and bounds.bytes(self.order, **saving) <= limit
            if fits and not excludes(self.order["schedule"], saving["recompute"]):
                self.seconds, self.settled = bounds.seconds(self.order, **saving), True
                return True
            self.next += 1
        return False


Node = VariantGroup | tuple[Space, dict[str, Any]] | tuple[Space, list[dict[str, Any]]]
"""Node of the search: a variant, or a frame or a family of frames with its space."""


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
    comfort
        Bytes per GPU beyond which a peak is tight: a configuration that saves more memory is estimated, too.

    Attributes
    ----------
    best
        The least value of an estimate within the limit.
    exhausted
        Whether nothing is left that could be within the slack of the best.
    legal, over_memory, estimated
        Numbers of configurations that are valid, that memory bounds ruled out, and that were estimated.
    priced
        Number of frames that were bounded.
    """

    def __init__(
        self,
        spaces: Sequence[Space],
        value: Value,
        limit: float,
        *,
        slack: float = SLACK,
        best: float = inf,
        comfort: float = inf,
    ) -> None:
        self.best = best
        self.exhausted = False
        self.legal = self.over_memory = self.estimated = self.priced = 0
        self._value, self._limit, self._slack, self._comfort = value, limit, slack, comfort
        self._floor = min((value(space.request, space.floor) for space in spaces), default=inf)
        self._under_way: dict[VariantGroup, float] = {}
        self._numbers = count()
        self._heap: list[tuple[float, int, Node]] = []
        self._families = ((space, family) for space in spaces for family in space.families())
        self._priced_all = False

    def price(self, most: int) -> bool:
        """Bound at most this many more families of frames; return whether any were left."""
        for _ in range(most):
            family = next(self._families, None)
            if family is None:
                self._priced_all = True
                return False
            self._bound(*family)
        return True

    def _bound(self, space: Space, family: Sequence[dict[str, Any]]) -> None:
        numbers = [len(space.orders(frame)) * len(space.savings(frame)) for frame in family]
        self.legal += sum(numbers)
        if space.bounds(family[0]).state > self._limit:
            self.over_memory += sum(numbers)
            return
        frames = [frame for frame, number in zip(family, numbers, strict=True) if number]
        if frames:
            self.priced += 1
            self._push(self._value(space.request, space.of_family(frames)), (space, frames))

    def _price(self, space: Space, frames: Sequence[dict[str, Any]]) -> None:
        powers = {size: frame for frame in frames if (size := frame["microbatch_size"]) & (size - 1) == 0}
        best = self._price_sizes(space, powers.values())
        # Other sizes only beside the best power of two.
        self._price_sizes(
            space,
            (
                frame
                for frame in frames
                if (size := frame["microbatch_size"]) not in powers and size > best / 2
                if size < 2 * best or 2 * best not in powers
            ),
        )

    def _price_sizes(self, space: Space, frames: Iterable[dict[str, Any]]) -> int:
        """Bound frames of growing microbatches while these compute faster; return the fastest size."""
        least, best = inf, 1
        for frame in frames:
            self.priced += 1
            value = self._value(space.request, space.bounds(frame).of_orders(space.orders(frame)))
            self._push(value, (space, frame))
            if value > (1 - GAIN) * least:
                break
            least, best = value, frame["microbatch_size"]
        return best

    def round(self, most: int, families: float = inf) -> list[VariantGroup]:
        """Return at most this many groups to estimate, the most promising first, after opening as many frames.

        At most ``families`` families are opened. A round may be empty although later ones are not: ``exhausted`` says
        whether nothing left could be better.
        """
        taken: list[VariantGroup] = []
        opened = 0
        # Best-first: a family is replaced by its frames when it reaches the top of the heap, a frame by its variants, and a
        # variant is bounded again with a saving that fits.
        while self._promising and len(taken) < most and opened < most:
            bound, _, node = heappop(self._heap)
            if isinstance(node, VariantGroup):
                if node.settled:
                    taken.append(node)
                    self._under_way[node] = bound
                else:
                    self._go_on(node, bound)
                continue
            space, frame = node
            if isinstance(frame, list):
                families -= 1
                self._price(space, frame)
                if families <= 0:
                    break
                continue
            opened += 1
            if not space.may_fit(frame, self._limit):
                self.over_memory += len(space.orders(frame)) * len(space.savings(frame))
                continue
            for order in space.laid_orders(frame):
                least = self._value(space.request, space.bounds(frame).of_orders([order]))
                self._push(max(bound, least), VariantGroup(space, frame, order))
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

    def _go_on(self, group: VariantGroup, bound: float = 0.0) -> None:
        before = group.next
        if group.settle(self._limit):
            self._push(max(bound, self._value(group.space.request, group.seconds)), group)
        # Layouts of one configuration count once.
        if group.order["layers"] is None or "layers" in group.space.request.fixed:
            self.over_memory += group.next - before

    def _push(self, value: float, node: Node) -> None:
        heappush(self._heap, (value, next(self._numbers), node))

    def learn(self, group: VariantGroup, estimate: Estimate | None) -> None:
        """Record the estimate of a group; if it does not fit in comfort, queue the group with its next saving."""
        self.estimated += 1
        self._under_way.pop(group, None)
        if estimate is not None and estimate.peak_bytes <= self._limit:
            self.best = min(self.best, self._value(group.space.request, estimate.step_time))
            if estimate.peak_bytes <= self._comfort:
                return
        group.next += 1
        self._go_on(group)
