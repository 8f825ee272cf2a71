"""Lower bounds on the makespan over all layouts of a placement, and quick bounds on that of each layout.

Every rank bounds a layout's makespan: nothing of a set of its ops can start before the set's least head, the ops run one
after the other, and the least tail follows. Heads are sums over the layers before a stage, work is a sum over its layers,
so each such bound is a sum of one term per boundary between stages::

    layers   0 1 2 | 3 4 5 6 | 7 8 9          work of the middle stage = P(7) - P(3)
                   b1        b2               its head = forwards of layers 0 to 2 = F(3)

Over all layouts, four bounds are taken:

*Work*
    Any weighted mean of the ranks' bounds is a bound, and its least layout is a shortest path over the boundaries (dynamic
    programming). The weights are improved by multiplicative updates (Lagrangian duality).
*Whole layers*
    A rank that is busy until time T has room for a whole number of layers. For every unit t, the sum of ``floor(w / t)``
    over the layers is at most the sum of ``floor(room / t)`` over the ranks (a dual feasible function of bin packing; Lueker
    1983).
*One stage per rank*
    The bound of a rank depends on its own layers alone, so the layout with the least largest bound is found exactly.
*Overlapped pairs*
    Their computation runs one piece after the other, and so does their communication. Each of the two takes the place of
    the work of ranks. With one stage per rank, n forwards run alone, and as many backwards; the others take P in pairs. The
    first backward starts no earlier than T, the first forward at H::

        makespan >= max(T, H + n F) + (m - n) P + n B      least over n from 1 on
*Memory*
    Every activation is held at least while its microbatch goes on to the last layer and back. Memory times makespan has room
    for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeplan.costs import segments_of
from pipeplan.extensions.search.joint.space import LayoutSpace
from pipeplan.extensions.search.layouts.pairs import lanes_of
from pipeplan.extensions.search.layouts.problem import Numbers
from pipeplan.model import Floats, tolerances
from pipeplan.simulation import Bound

ROUNDS = 60
"""Number of updates of the weights of ranks."""

STEP = 0.3
"""Size of the first update, relative to the largest bound of a rank."""

FAINT = 0.02
"""Weight of a bound that is not on the whole work of its rank, at first, and least weight relative to the mean one."""

PARTS_OF_UNIT = (1, 2, 3)
"""Units of whole layers: the time of each layer, divided by these."""

MOST_UNITS = 64
"""Maximum number of units of whole layers that are tried."""

_F, _I, _W = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Terms:
    """Bounds of ranks as sums of terms; arrays of shape (bounds, stages) for ``work``, (bounds,) for the others.

    Attributes
    ----------
    work
        How often the F, I and W of each stage count, shape (3, bounds, stages).
    head, tail, turn
        Stage whose head of F, tail of I, or head of I counts; -1: none.
    """

    work: Floats
    head: Numbers
    tail: Numbers
    turn: Numbers


class LeastBounds:
    """Lower bounds over the layouts of a space.

    Parameters
    ----------
    space
        The layouts.
    of_communication
        True if the work of ranks is the communication of overlapped pairs. False: their computation, and bounds of their
        communication beside it.
    """

    def __init__(self, space: LayoutSpace, *, of_communication: bool = False) -> None:
        self.space = space
        problem = space.example
        costs, slices = problem.costs, problem.slices
        sums, segments = space.sums[:, :4].copy(), costs.segments
        delayed = segments is not None and segments.delayed_weights
        self.paired = segments is not None and problem.choices.overlap
        """True if ops may overlap."""
        self.communication = LeastBounds(space, of_communication=True) if self.paired and not of_communication else None
        if delayed:
            sums[:, 3] = sums[:, 1]  # communication may hide all of W in a full backward
        times, plain = self._times(sums)
        self._plain = plain and not delayed
        alone = times
        if segments is not None and (self.paired or delayed):
            lanes = np.array([lanes_of(segments_of(layer), segments.slowdown) for layer in space.layers])
            forward, both, inputs = lanes[:, 3:].T if of_communication else lanes[:, :3].T
            whole = both if delayed else np.minimum(both, alone[1] + alone[2])
            times, _ = self._times(_sums(np.stack((forward, inputs, both - inputs, whole))).T)
        factors = costs.factors
        if factors is None:
            total, least = np.full(3, float(problem.microbatches)), np.ones(3)
        else:
            rows = (factors.forward, factors.backward_input, factors.backward_weight)
            total = np.array([row.min(axis=0).sum() for row in rows])
            least = np.array([row.min() for row in rows])
            if not problem.split_backward:
                total[1:], least[1:] = total[1:].min(), least[1:].min()
        self.times = times
        self.total = total / problem.placement.copies
        """Sum of the factors of the microbatches of a copy on F, I and W."""
        self.before = _sums(times)
        """Work of F, I and W of the layers before each one, shape (3, layers + 1)."""
        self.way = _sums(alone) * (least / slices)[:, None]
        """Times of F, I and W alone of the layers before each one, for the least slice of a microbatch."""
        self.hop = float(costs.transfer_times(slices).min())
        self.onward = problem.objective == "makespan"
        start = space.ends[0]
        self.last_weight = float(self.way[_W, start]) if self._plain else 0.0

    def _times(self, sums: Floats) -> tuple[Floats, bool]:
        """Return the least times of F, I and W of each layer, shape (3, layers), and whether I and W take those of a B.

        ``sums`` are those of F, I, W and B over the layers before each one.
        """
        forward, inputs, weights, whole = np.diff(sums, axis=0).T
        if not self.space.example.split_backward:
            return np.stack((forward, whole, np.zeros(len(whole)))), False
        # A full backward may be shorter than both halves: then it counts as I, with W after it.
        both, first = np.minimum(inputs + weights, whole), np.minimum(inputs, whole)
        plain = bool(np.allclose(both, inputs + weights, rtol=1e-12))
        return np.stack((forward, first, both - first)), plain

    @cached_property
    def hops(self) -> Floats:
        """Least number of transfers before each stage, over the copies of the model; shape (stages,)."""
        crosses = self.space.placement.crosses
        counts: Floats = np.concatenate((np.zeros((len(crosses), 1)), np.cumsum(crosses, axis=1)), axis=1).min(axis=0)
        return counts

    @cached_property
    def terms(self) -> Terms:
        """Bounds of all ranks."""
        placement = self.space.placement
        work: list[Floats] = []
        marks: list[tuple[int, int, int]] = []

        def add(stages: list[int], kinds: tuple[int, ...], head: int = -1, tail: int = -1, turn: int = -1) -> None:
            counts = np.zeros((3, placement.stages))
            for kind in kinds:
                np.add.at(counts[kind], stages, self.total[kind])
            work.append(counts)
            marks.append((head, tail, turn))

        for rank in range(placement.ranks):
            if placement.copies > 1:
                held = [stage for copy in range(placement.copies) for stage in placement.stages_on(rank, copy)]
                add(held, (_F, _I, _W))
                continue
            stages = list(placement.stages_on(rank))
            for place, stage in enumerate(stages):
                later = stages[place:]
                add(later, (_F, _I, _W), head=stage if self.onward else -1)
                if self.onward:
                    add(later, (_F, _I), head=stage, tail=stage)
                    add(stages[: place + 1], (_I, _W), turn=stage)
        head, tail, turn = np.array(marks, np.intp).T
        return Terms(np.stack(work, axis=1), head, tail, turn)

    def of(self, bounds: Numbers) -> Floats:
        """Return the quick bounds of ranks on layouts at positions of shape (layouts, stages + 1); (layouts, bounds)."""
        terms = self.terms
        values: Floats = sum(
            (self.before[kind][bounds[:, 1:]] - self.before[kind][bounds[:, :-1]]) @ terms.work[kind].T
            for kind in (_F, _I, _W)
        )
        ends = np.concatenate((bounds, bounds[:, :1]), axis=1)  # index -1 reads layer 0, whose head is 0
        values = values + self.way[_F][ends[:, terms.head]] + self._hops_of(terms.head)
        values += self.way[_I][ends[:, terms.tail]] + self._hops_of(terms.tail)
        values += np.where(terms.tail >= 0, self.last_weight, 0.0)
        return values + self._turns(bounds, terms.turn)

    def _hops_of(self, stage: Numbers) -> Floats:
        hops: Floats = np.where(stage >= 0, self.hop * self.hops[stage], 0.0)
        return hops

    def _turns(self, bounds: Numbers, turn: Numbers) -> Floats:
        """Return the heads of I: all forwards, and the backwards of the layers after the stage."""
        ends = np.concatenate((bounds[:, 1:], bounds[:, :1]), axis=1)
        heads = self.way[_F, -1] + self.way[_I, -1] - self.way[_I][ends[:, turn]]
        hops = self.hop * (2 * self.hops[-1] - self.hops[turn])
        turns: Floats = np.where(turn >= 0, heads + hops, 0.0)
        return turns

    @property
    def _memory_bounds(self) -> bool:
        """True if memory times makespan bounds the makespan: limits in bytes, and activations that all stay until W."""
        problem, limits = self.space.example, self.space.limits
        in_bytes = limits is not None and not limits.in_activations
        return (
            in_bytes
            and self._plain
            and self.onward
            and problem.costs.factors is None
            and not problem.choices.frees_memory
        )

    def of_memory(self, bounds: Numbers) -> Floats:
        """Return bounds of ranks by their memory limits, shape (layouts, ranks); 0 without limits in bytes."""
        space, problem = self.space, self.space.example
        placement, limits = space.placement, space.limits
        areas = np.zeros((len(bounds), placement.ranks))
        if limits is None or not self._memory_bounds or placement.copies > 1:
            return areas
        sums = space.sums
        share = problem.microbatches / placement.copies
        held = sums[bounds[:, 1:], 4] - sums[bounds[:, :-1], 4] + space.inputs[bounds[:, :-1]]
        freed = np.minimum(sums[bounds[:, 1:], 5] - sums[bounds[:, :-1], 5], held)
        trip = self._trips(bounds)
        weights = self.way[_W][bounds[:, 1:]] - self.way[_W][bounds[:, :-1]]
        area = share * (held * trip + freed * weights)
        static = sums[bounds[:, 1:], 6] - sums[bounds[:, :-1], 6]
        room = np.broadcast_to(limits.values, areas.shape).copy()
        for ranks in placement.table:
            for stage, rank in enumerate(ranks.tolist()):
                areas[:, rank] += area[:, stage]
                room[:, rank] -= static[:, stage]
        return np.divide(areas, room, out=np.full_like(areas, np.inf), where=room > 0)

    def _trips(self, bounds: Numbers) -> Floats:
        """Return the time from the start of F on each stage to the end of I there, shape (layouts, stages)."""
        first = bounds[:, :-1]
        hops = 2 * self.hop * (self.hops[-1] - self.hops)
        trips: Floats = self.way[_F, -1] - self.way[_F][first] + self.way[_I, -1] - self.way[_I][first] + hops
        return trips

    def quick(self, bounds: Numbers) -> Floats:
        """Return a quick lower bound of each layout, shape (layouts,)."""
        of_ranks = self.of(bounds)
        if self.space.placement.copies > 1 and self.onward:
            of_ranks = of_ranks + self._first_heads(bounds)  # a row per rank
        quick: Floats = np.maximum(of_ranks.max(axis=1), self.of_memory(bounds).max(axis=1))
        if self.has_one_stage_each and self.paired:
            stages = np.arange(self.space.stages)
            quick = np.maximum(quick, self.arcs[stages, bounds[:, :-1], bounds[:, 1:]].max(axis=1))
        return quick if self.communication is None else np.maximum(quick, self.communication.quick(bounds))

    def _first_heads(self, bounds: Numbers) -> Floats:
        """Return the earliest start of each rank, the least of those of all copies of the model; shape (layouts, ranks)."""
        placement = self.space.placement
        heads = []
        for copy in range(placement.copies):
            hops = np.concatenate(([0], np.cumsum(placement.crosses[copy])))
            first = [placement.stages_on(rank, copy)[0] for rank in range(placement.ranks)]
            heads.append(self.way[_F][bounds[:, first]] + self.hop * hops[first])
        least: Floats = np.minimum.reduce(heads)
        return least

    @cached_property
    def least(self) -> Bound:
        """The best lower bound over all layouts."""
        candidates = [self._chain, self._by_weights(), self._whole_layers(), self._by_memory()]
        if self.has_one_stage_each:
            candidates.append(Bound(self.one_stage_each[0], "the least work of the slowest rank with one stage each"))
        if self.communication is not None:
            bound = self.communication.least
            candidates.append(Bound(bound.value, bound.reason.replace("work", "communication")))
        return max(candidates, key=lambda bound: bound.value)

    @property
    def has_one_stage_each(self) -> bool:
        """True if every rank has one stage."""
        return self.space.placement.stages == self.space.placement.ranks and self.space.placement.copies == 1

    @property
    def _chain(self) -> Bound:
        if not self.onward:
            return Bound(0.0, "")
        length = self.way[_F, -1] + self.way[_I, -1] + self.last_weight + 2 * self.hop * self.hops[-1]
        return Bound(float(length), "the chain of one microbatch through all layers")

    def _by_weights(self) -> Bound:
        """Return the largest weighted mean of the ranks' bounds that some weights of ranks give."""
        terms = self.terms
        # At first the means are over the whole work of each rank.
        amount = terms.work.sum(axis=(0, 2))
        weights = np.where(amount >= amount.max() * (1 - tolerances.ROUNDING), 1.0, FAINT)
        weights /= weights.sum()
        best = 0.0
        for turn in range(ROUNDS):
            value, layout = self._shortest(weights)
            best = max(best, value)
            now = self.of(layout[None])[0]
            # Ranks whose bound is large on the least layout get more weight, by less and less.
            weights = weights * np.exp(STEP / np.sqrt(1 + turn / 5) * (now - weights @ now) / now.max())
            weights = np.maximum(weights / weights.sum(), FAINT / len(weights))
            weights /= weights.sum()
        return Bound(best, f"the work of all layers on {self.space.placement.ranks} ranks")

    def _shortest(self, weights: Floats) -> tuple[float, Numbers]:
        """Return the least weighted mean of the ranks' bounds over all layouts, and its positions."""
        terms, stages, layers = self.terms, self.space.stages, len(self.space.layers)
        start, end = self.space.ends
        counts = np.einsum("k,fks->fs", weights, terms.work)
        heads, tails, turns = (
            np.bincount(mark[mark >= 0], weights[mark >= 0], stages) for mark in (terms.head, terms.tail, terms.turn)
        )
        constant = float(
            weights @ (self._hops_of(terms.head) + self._hops_of(terms.tail))
            + self.last_weight * tails.sum()
            + (self.way[_F, -1] + self.way[_I, -1]) * turns.sum()
            + weights @ np.where(terms.turn >= 0, self.hop * (2 * self.hops[-1] - self.hops[terms.turn]), 0.0)
        )
        # A term for each boundary: it ends the stage before and begins the one after.
        ended = np.concatenate((np.zeros((3, 1)), counts), axis=1) - np.concatenate((counts, np.zeros((3, 1))), axis=1)
        at = ended.T @ self.before
        at[:-1] += heads[:, None] * self.way[_F] + tails[:, None] * self.way[_I]
        at[1:] -= turns[:, None] * self.way[_I]
        numbers = np.arange(layers + 1)
        reach = np.full(layers + 1, np.inf)
        reach[0] = at[0, 0]
        cause = np.zeros((stages + 1, layers + 1), np.intp)
        for boundary in range(1, stages + 1):
            # The best position of the boundary before, strictly below.
            least = np.minimum.accumulate(reach)
            place = np.maximum.accumulate(np.where(reach <= least, numbers, 0))
            cause[boundary, 1:] = place[:-1]
            reach = np.concatenate(([np.inf], least[:-1])) + at[boundary]
            if boundary == 1 and stages > 1:
                reach[:start] = np.inf
            if boundary == stages - 1 and stages > 1:
                reach[layers - end + 1 :] = np.inf
        positions = np.zeros(stages + 1, np.intp)
        positions[-1] = layers
        for boundary in range(stages, 0, -1):
            positions[boundary - 1] = cause[boundary, positions[boundary]]
        return float(reach[-1]) + constant, positions

    def _whole_layers(self) -> Bound:
        """Return the least time in which ranks can run whole numbers of layers."""
        space, placement = self.space, self.space.placement
        if placement.copies > 1 and space.stages == 1:
            return Bound(0.0, "")
        work = (self.total @ self.times).tolist()
        start, end = space.ends if space.stages > 1 else (0, 0)
        begins = np.full(placement.ranks, np.inf)
        for copy in range(placement.copies):
            for rank in range(placement.ranks):
                first = placement.stages_on(rank, copy)[0]
                # Each earlier stage has a layer at least, the first one those that it must have.
                layer = 0 if first == 0 else max(first + start - 1, start)
                head = self.way[_F, layer] + self.hop * self.hops[first] if self.onward else 0.0
                begins[rank] = min(begins[rank], head)
        for ranks in placement.table:
            begins[ranks[0]] += sum(work[:start])
            begins[ranks[-1]] += sum(work[len(work) - end :])
        free = np.array(work[start : len(work) - end] * placement.copies)
        if not free.size:
            return Bound(float(begins.max()), "the work of the layers that the first or the last stage must have")
        units = np.unique(np.concatenate([free / part for part in PARTS_OF_UNIT]))
        units = units[units > free.sum() * 1e-6]
        if len(units) > MOST_UNITS:
            units = units[:: -(-len(units) // MOST_UNITS)]
        best = float(begins.max())
        for unit in units.tolist():
            needed = int(np.floor(free / unit * (1 + tolerances.ROUNDING)).sum())
            if needed:
                places = (begins[:, None] + unit * np.arange(1, needed + 1)).ravel()
                best = max(best, float(np.partition(places, needed - 1)[needed - 1]))
        return Bound(best, f"the work of whole layers on {placement.ranks} ranks")

    def _by_memory(self) -> Bound:
        """Return the least makespan in which the memory of all ranks holds all activations."""
        space, problem = self.space, self.space.example
        limits = space.limits
        if limits is None or not self._memory_bounds or not problem.costs.memory.in_bytes:
            return Bound(0.0, "")
        activation, freed, static = np.diff(space.sums[:, 4:], axis=0).T
        trips = self.way[_F, -1] - self.way[_F, :-1] + self.way[_I, -1] - self.way[_I, :-1]
        weights = np.diff(self.way[_W])
        area = problem.microbatches * float((activation * trips + np.minimum(freed, activation) * weights).sum())
        room = float(limits.values.sum()) - space.placement.copies * float(static.sum())
        if room <= 0:
            return Bound(np.inf, "")
        return Bound(area / room, "the memory limits of all ranks together")

    @cached_property
    def one_stage_each(self) -> tuple[float, Numbers]:
        """The least largest bound of the layouts of one stage per rank, and positions that have it (dynamic programming)."""
        space, stages, layers = self.space, self.space.stages, len(self.space.layers)
        least = np.full(layers + 1, np.inf)
        least[layers] = 0.0
        ends = np.zeros((stages, layers + 1), np.intp)
        for stage in reversed(range(stages)):
            values = np.where(space.allowed[stage], np.maximum(self.arcs[stage], least[None, :]), np.inf)
            ends[stage], least = values.argmin(axis=1), values.min(axis=1)
        positions = np.zeros(stages + 1, np.intp)
        for stage in range(stages):
            positions[stage + 1] = ends[stage, positions[stage]]
        return float(least[0]), positions

    @cached_property
    def arcs(self) -> Floats:
        """Quick bound of each rank of a placement with one stage per rank, for each run of layers.

        Shape (stages, layers + 1, layers + 1), by first layer and end.
        """
        if self.space.pairs is not None and self.paired and self.space.example.costs.factors is None:
            return self._paired_arcs()
        work = self.total[:, None, None] * (self.before[:, None, :] - self.before[:, :, None])
        values = np.repeat(work.sum(axis=0)[None], self.space.stages, axis=0)
        if not self.onward:
            return values
        hops, head = self.hop * self.hops[:, None], self.way[_F][None, :] + self.hop * self.hops[:, None]
        tail = self.way[_I][None, :] + hops + self.last_weight
        turn = self.way[_F, -1] + self.way[_I, -1] - self.way[_I][None, :] + self.hop * (2 * self.hops[-1]) - hops
        values = np.maximum(values + head[:, :, None], (work[_F] + work[_I])[None] + (head + tail)[:, :, None])
        arcs: Floats = np.maximum(values, (work[_I] + work[_W])[None] + turn[:, None, :])
        return arcs

    def _paired_arcs(self) -> Floats:
        """Return the arcs if ops may overlap: with n forwards alone, the first backward at T and the first forward at H."""
        space, problem = self.space, self.space.example
        assert space.pairs is not None
        count, hop, turn = problem.microbatches, self.hop * self.hops, 2 * self.hop * self.hops[-1]
        times = self.way * problem.slices  # of a microbatch, as they are alike
        forward, inputs, _ = times[:, None, :] - times[:, :, None]
        weights = space.sums[None, :, 2] - space.sums[:, None, 2]
        full, half, whole = space.own_pairs
        if problem.split_backward:
            both = np.minimum(whole, inputs + weights)
        else:
            both, half = whole, full
        pair = np.maximum(np.minimum(np.minimum(full, half + weights), forward + both), both)
        head = (self.way[_F] + hop[:, None])[:, :, None]
        one = 1 / problem.slices
        if not self.onward:
            spans: Floats = (count - one) * pair + one * (forward + both)
            return spans
        tail = (self.way[_I] + hop[:, None])[:, :, None] + self.last_weight
        turned = (self.way[_F, -1] + self.way[_I, -1] - self.way[_I])[None, None, :] + (turn - hop)[:, None, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            early = np.clip(np.where(forward > 0, (turned - head) / forward, count), one, count)
        begun = np.maximum(turned, head + early * forward)
        whole_ends = begun + (count - early) * pair + early * both
        # The chain to the first stage follows the last I.
        of_input = np.minimum(np.minimum(full, half), forward + inputs)
        arcs: Floats = np.maximum(whole_ends, begun + (count - early) * of_input + early * inputs + tail)
        return arcs


def _sums(times: Floats) -> Floats:
    """Return the sums over the layers before each one, shape (kinds, layers + 1), of times of shape (kinds, layers)."""
    return np.concatenate((np.zeros((len(times), 1)), np.cumsum(times, axis=1)), axis=1)
