"""Small cases by seed: every kind of costs, and kinds combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from tests.costs.two_lanes import Written, of_lists, pair, random_op
from tests.extensions.search.case import Case, Numbers, numbers

CELLS = 24
"""Stages times microbatches, at most: nearly all exact answers then take less than a second."""

CELLS_OF_SPAN = 12
"""The same for the span, whose model assumes nothing."""

_PLACEMENTS: dict[int, tuple[tuple[str, tuple[int, ...]], ...]] = {
    1: (("linear", (0,)), ("loop", (0, 0)), ("loop", (0, 0, 0))),
    2: (
        ("linear", (0, 1)),
        ("linear", (0, 1)),
        ("loop", (0, 1, 0, 1)),
        ("loop", (0, 1, 0, 1, 0, 1)),
        ("v", (0, 1, 1, 0)),
        ("wave", (0, 1, 1, 0, 0, 1)),
        ("0,1,1,0", (0, 1, 1, 0)),
        ("0,1,0", (0, 1, 0)),
        ("0,0,1", (0, 0, 1)),
        ("0,1,0,0", (0, 1, 0, 0)),
    ),
    3: (
        ("linear", (0, 1, 2)),
        ("linear", (0, 1, 2)),
        ("loop", (0, 1, 2, 0, 1, 2)),
        ("v", (0, 1, 2, 2, 1, 0)),
        ("wave", (0, 1, 2, 2, 1, 0, 0, 1, 2)),
        ("0,1,2,1,0", (0, 1, 2, 1, 0)),
        ("0,2,1", (0, 2, 1)),
        ("0,1,2,0", (0, 1, 2, 0)),
    ),
    4: (("linear", (0, 1, 2, 3)), ("v", (0, 1, 2, 3, 3, 2, 1, 0)), ("0,1,3,2", (0, 1, 3, 2))),
}


def random_case(seed: int, *, cells: int = CELLS, cells_of_span: int = CELLS_OF_SPAN) -> Case:
    """The case of a seed: the same one on every machine."""
    return _Draw(Random(f"case {seed}"), cells, cells_of_span).case()


class _Draw:
    def __init__(self, random: Random, cells: int, cells_of_span: int) -> None:
        self.random = random
        self.span = self.chance(0.12)
        self.cells = cells_of_span if self.span else cells

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one_of(self, *values: float | str | Fraction) -> Fraction:
        return numbers(self.random.choice(values))[0]

    def case(self) -> Case:
        placement, rank_of = self._placement()
        stages = len(rank_of)
        microbatches = min(self.random.choice((1, 2, 2, 3, 3, 4, 4, 5, 6)), self.cells // stages)
        uneven = self.chance(0.5)
        each = stages if uneven else 1
        scale = self.one_of(1, 1, 1, "0.5", "0.1", Fraction(1, 3))
        forward, inputs, weights = (tuple(self._time() for _ in range(each)) for _ in range(3))
        backward = self._backward(inputs, weights)
        overlap = self._overlap(forward, backward) if self.chance(0.3) else None

        def spread(values: Numbers) -> Numbers:
            return tuple(scale * value for value in values) * (stages // each)

        case = Case(
            placement=placement,
            rank_of=rank_of,
            microbatches=microbatches,
            forward=spread(forward),
            backward=spread(backward),
            inputs=spread(inputs),
            weights=spread(weights),
            overlap=None if overlap is None else spread(overlap),
            transfer=scale * self.one_of(0, 0, 0, "0.5", 1, 2, 3),
            objective="span" if self.span else "makespan",
            split=not self.chance(0.12),
        )
        return self._with_pairs(self._with_memory(case))

    def _placement(self) -> tuple[str, tuple[int, ...]]:
        ranks = self.random.choices((1, 2, 3, 4), (1, 5, 4, 1))[0]
        fitting = [one for one in _PLACEMENTS[ranks] if len(one[1]) <= self.cells]
        return self.random.choice(fitting or [_PLACEMENTS[2][0]])

    def _time(self) -> Fraction:
        return Fraction(self.random.randint(1, 6))

    def _backward(self, inputs: Numbers, weights: Numbers) -> Numbers:
        """Whole backwards: as long as the halves, shorter, much shorter, longer, or anything on each stage."""
        kind = self.random.choice(("sum", "sum", "shorter", "much shorter", "longer", "anything"))

        def backward(half: Fraction, other: Fraction) -> Fraction:
            least, most = {
                "sum": (half + other, half + other),
                "shorter": (max(half, other), half + other),
                "much shorter": (Fraction(1), half),
                "longer": (half + other, half + other + 3),
                "anything": (Fraction(1), half + other + 3),
            }[kind]
            return Fraction(self.random.randint(int(least), int(most)))

        return tuple(backward(*halves) for halves in zip(inputs, weights, strict=True))

    def _overlap(self, forward: Numbers, backward: Numbers) -> Numbers:
        """Overlaps that save all there is to save, something, or nothing."""
        kind = self.random.choice(("all", "something", "something", "anything"))

        def together(one: Fraction, other: Fraction) -> Fraction:
            if kind == "all":
                return max(one, other)
            return Fraction(self.random.randint(int(max(one, other)), int(one + other) + (kind == "anything")))

        return tuple(together(*both) for both in zip(forward, backward, strict=True))

    def _with_pairs(self, case: Case) -> Case:
        """Some overlaps by a matrix of both stages, or by segments, which then also determine the times of ops."""
        kind = self.random.choice(("list", "matrix", "segments"))
        if case.overlap is None or kind == "list":
            return case
        if kind == "matrix":
            rows = tuple(
                tuple(max(one, other) + min(one, other) * self.one_of(0, "0.25", "0.5", 1) for other in case.backward)
                for one in case.forward
            )
            pairs = {"B": rows, "I": tuple(tuple(map(max, row, case.inputs)) for row in rows)}
            given: dict[str, Any] = {"overlap_times": tuple(tuple(map(float, row)) for row in rows)}
            return replace(case, overlap=None, pairs=pairs, pair_settings=given)
        slowdown, delayed = self.one_of(1, 1, "1.5"), self.chance(0.5)
        stages = [random_op(self.random, lambda: case.forward[0] * self.random.randint(1, 3) / 4) for _ in case.forward]

        def together(forward: Written, inputs: Written, weights: Written = ()) -> Fraction:
            return Fraction(pair(forward, inputs, weights, slowdown, delayed=delayed).time)

        sums = [
            tuple(Fraction(sum(time for _, time in lists)) for lists in of_op) for of_op in zip(*stages, strict=True)
        ]
        ops: dict[str, Any] = dict(zip(("forward", "inputs", "weights"), sums, strict=True))
        pairs = {
            "B": tuple(tuple(together(one[0], *other[1:]) for other in stages) for one in stages),
            "I": tuple(tuple(together(one[0], other[1]) for other in stages) for one in stages),
        }
        segments = [of_lists(*stage) for stage in stages]
        given = {"segments": segments, "pair_slowdown": float(slowdown), "delayed_weights": delayed}
        full = tuple(together((), *other[1:]) for other in stages)
        return replace(case, **ops, backward=full, overlap=None, pairs=pairs, pair_settings=given)

    def _with_memory(self, case: Case) -> Case:
        """Bytes or none, and limits in bytes, in activations or none: from the least feasible up, now and then below."""
        kind = self.random.choice(("none", "activations", "activations", "bytes", "bytes", "bytes"))
        if kind != "activations" or self.chance(0.6):
            case = self._with_bytes(case)
        if kind == "none":
            return case
        free = replace(case, limits=numbers(1) * case.ranks, in_activations=kind == "activations")
        activation, _ = free.held()
        static = [Fraction(0)] * case.ranks
        if kind == "bytes" and case.static is not None:
            static = [
                sum((case.static[stage] for stage in case.stages_on(rank)), Fraction(0)) for rank in range(case.ranks)
            ]
        least = [sum((activation[stage] for stage in case.stages_on(rank)), Fraction(0)) for rank in range(case.ranks)]
        steps = [min(activation[stage] for stage in case.stages_on(rank)) for rank in range(case.ranks)]
        extra = [self._extra() for _ in range(case.ranks)] if self.chance(0.4) else [self._extra()] * case.ranks
        limits = [one + step * more + fixed for one, step, more, fixed in zip(least, steps, extra, static, strict=True)]
        if self.chance(0.3):
            limits = [max(limits)] * case.ranks
        if self.chance(0.05):
            rank = self.random.randrange(case.ranks)
            limits[rank] -= Fraction(1, 2) * least[rank] + steps[rank] * extra[rank]
        return replace(free, limits=tuple(max(limit, Fraction(1, 4)) for limit in limits))

    def _extra(self) -> Fraction:
        """How many of a rank's smallest activations it may hold beside those of one microbatch."""
        return self.one_of(0, 0, 0, "0.5", 1, 1, "1.5", 2, 2, 3, 4, 6)

    def _with_bytes(self, case: Case) -> Case:
        each = case.stages if self.chance(0.5) else 1

        def spread(values: Sequence[Fraction]) -> Numbers:
            return tuple(values) * (case.stages // each)

        activation = [Fraction(self.random.randint(1, 4)) for _ in range(each)]
        kind = self.random.choice(("all", "none", "less", "more", "more", "much more", "anything"))
        kept = [Fraction(self._kept(kind, int(one))) for one in activation]
        static = [Fraction(self.random.randint(0, 5)) for _ in range(each)]
        return replace(
            case,
            activation=spread(activation),
            kept=None if kind == "all" and self.chance(0.5) else spread(kept),
            static=spread(static) if self.chance(0.3) else None,
        )

    def _kept(self, kind: str, activation: int) -> int:
        least, most = {
            "all": (activation, activation),
            "none": (0, 0),
            "less": (0, activation),
            "more": (activation, 2 * activation),
            "much more": (2 * activation, 4 * activation),
            "anything": (0, 3 * activation),
        }[kind]
        return self.random.randint(least, most)
