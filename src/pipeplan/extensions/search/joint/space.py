"""All layouts of a model's layers on the stages of a placement: which are allowed, and the search problem of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb

import numpy as np

from pipeplan.costs import Costs, Layer, Layout, Limits, balanced
from pipeplan.extensions.search import Problem
from pipeplan.extensions.search.layouts import stages
from pipeplan.extensions.search.layouts.order import ALONE, WITH_FULL, WITH_INPUT
from pipeplan.extensions.search.layouts.pairs import StagePairs
from pipeplan.extensions.search.layouts.problem import Numbers
from pipeplan.extensions.search.layouts.stages import LaidLayer, LayerOption, StageOption, StageTables, parts_of
from pipeplan.foundation.errors import InfeasibleError, InputError, PipeplanError
from pipeplan.model import Bools, Floats, MemoryUse, Placement, counted, tolerances

MOST_LAYERS = 1_024
"""Maximum number of layers; the tables of runs of layers grow with its square."""

ProblemOf = Callable[[Layout], Problem]
"""Callback that returns the problem of a layout, without a memory limit."""


@dataclass(frozen=True, eq=False)
class LayoutSpace:
    """Layouts of a model on the stages of one placement.

    Attributes
    ----------
    layers
        Every layer separately, in the order of the model.
    problem_of
        Returns the problem of a layout, without a memory limit.
    placement
        The placement.
    limits
        Memory limits of the ranks; None: unlimited.

    Raises
    ------
    InputError
        If the stages are too many for the layers, or no stage can have the layers that it must have.
    """

    layers: tuple[Layer, ...]
    problem_of: ProblemOf
    placement: Placement
    limits: Limits | None

    def __post_init__(self) -> None:
        if len(self.layers) > MOST_LAYERS:
            raise InputError(
                f"{len(self.layers):,} layers are too many for a search for the layout: expected at most {MOST_LAYERS:,}",
                field="layers",
            )
        if self.stages > len(self.layers):
            raise InputError(
                f"{counted(len(self.layers), 'layer')} cannot make {self.stages} stages; each stage needs a layer",
                field="layers",
            )

    @property
    def stages(self) -> int:
        """Number of stages."""
        return self.placement.stages

    @cached_property
    def ends(self) -> tuple[int, int]:
        """Numbers of layers that the first and the last stage must have: embedding; MTP layers and head."""
        roles = [layer.role for layer in self.layers]
        start = max((number + 1 for number, role in enumerate(roles) if role == "embedding"), default=1)
        tails = [number for number, role in enumerate(roles) if role in ("mtp", "head")]
        return start, len(roles) - min(tails, default=len(roles) - 1)

    @cached_property
    def sums(self) -> Floats:
        """Sums over the layers before each one, shape (layers + 1, 7).

        Columns: times of F, I, W and of a full backward; bytes of the activation, of its part that W frees, and static.
        """
        rows = [
            (
                layer.forward,
                layer.backward_input,
                layer.backward_weight,
                layer.whole_backward,
                layer.activation_bytes,
                layer.freed_by_weight,
                layer.static_bytes,
            )
            for layer in self.layers
        ]
        return np.concatenate((np.zeros((1, 7)), np.cumsum(rows, axis=0)))

    def possible(self, bounds: Numbers) -> Bools:
        """Return which layouts are allowed, for positions of shape (layouts, stages + 1)."""
        lengths, (start, end) = np.diff(bounds, axis=1), self.ends
        times = self.sums[:, :3]
        some = (times[bounds[:, 1:]] - times[bounds[:, :-1]] > 0).all(axis=(1, 2))
        ends = (self.stages == 1) | ((bounds[:, 1] >= start) & (bounds[:, -2] <= len(self.layers) - end))
        allowed: Bools = (lengths > 0).all(axis=1) & some & ends
        return allowed

    @cached_property
    def allowed(self) -> Bools:
        """Mask of the runs of layers that each stage may have, shape (stages, layers + 1, layers + 1)."""
        layers, (start, end) = len(self.layers), self.ends
        times = self.sums[:, :3]
        some = (times[None, :, :] - times[:, None, :] > 0).all(axis=2) & np.triu(
            np.ones((layers + 1, layers + 1), np.bool_), 1
        )
        masks = np.repeat(some[None], self.stages, axis=0)
        if self.stages > 1:
            masks[0, :, :start] = False
            masks[-1, layers - end + 1 :, :] = False
        return masks

    @cached_property
    def count(self) -> int:
        """Number of layouts with the required ends, of which some may have a stage that takes no time."""
        start, end = self.ends
        if self.stages == 1:
            return 1
        # Boundaries between the required ends, all different.
        return comb(max(len(self.layers) - start - end + 1, 0), self.stages - 1)

    def balanced(self, weights: Sequence[float] | None = None) -> Layout:
        """Return the allowed layout whose slowest stage is the fastest; ``weights`` take the place of the times.

        Raises InputError if there is none.
        """
        times = [layer.time for layer in self.layers] if weights is None else weights
        try:
            return balanced(times, self.stages, fits=self.allowed)
        except InfeasibleError:
            raise InputError(
                f"{len(self.layers)} layers cannot make {self.stages} stages that each take time, with the embedding on "
                "the first and the head on the last: use fewer ranks or chunks",
                field="layers",
            ) from None

    def problem(self, layout: Layout) -> Problem | None:
        """Return the problem of a layout within the limits; None if one microbatch alone exceeds a limit."""
        try:
            free = self.problem_of(layout)
            return free if self.limits is None else replace(free, limits=self.limits)
        except InfeasibleError:
            return None

    def costs(self, layout: Layout) -> Costs:
        """Return the costs of a layout's stages."""
        return self.problem_of(layout).costs

    @cached_property
    def example(self) -> Problem:
        """Problem of the balanced layout, without a limit."""
        return self.problem_of(self.balanced())

    @cached_property
    def tables(self) -> StageTables | None:
        """Times and bytes of stages as the planner's layout search has them; None if it cannot lay these layers out."""
        if len(self.layers) > stages.MOST_LAYERS:
            return None
        try:
            parts = parts_of([_laid(layer) for layer in self.layers])
        except PipeplanError:
            return None
        return StageTables(parts, (StageOption(name=""),))

    @cached_property
    def pairs(self) -> StagePairs | None:
        """Times of overlapped pairs of stages; None if they take the sum of their ops, or there are no tables."""
        segments = self.example.costs.segments
        if self.tables is None or segments is None:
            return None
        return StagePairs(
            self.tables, self.stages, slowdown=segments.slowdown, delayed_weights=segments.delayed_weights
        )

    @cached_property
    def own_pairs(self) -> tuple[Floats, ...]:
        """Times of a pair of a stage with itself, with a B and with an I, and of a B alone, for each run of layers.

        Each of shape (stages, layers + 1, layers + 1), by first layer and end; 0 where there is no such stage.
        """
        assert self.tables is not None
        assert self.pairs is not None
        pairs, size = self.pairs, len(self.layers) + 1
        middle = slice(len(self.tables.parts.start), size - len(self.tables.parts.end))
        runs = np.full((self.stages, size, size), -1)
        runs[1:-1, middle, middle] = pairs.runs[1, 0]
        runs[0, 0, middle] = pairs.runs[0, 0, 0]
        runs[-1, middle, -1] = pairs.runs[2, 0, :, -1]
        domain = np.unique(runs[runs >= 0])
        times = (pairs.own(kind, domain) for kind in (WITH_FULL, WITH_INPUT, ALONE))
        return tuple(np.where(runs >= 0, own[runs], 0.0) for own in times)

    def excess(self, bounds: Numbers) -> Floats:
        """Return the bytes by which one microbatch alone exceeds the limits, summed over ranks; shape (layouts,).

        0 for limits in activations, which layouts do not change.
        """
        if self.limits is None or self.limits.in_activations:
            return np.zeros(len(bounds))
        static = self._on_ranks(self.sums[bounds[:, 1:], 6] - self.sums[bounds[:, :-1], 6]).sum(axis=0)
        held = np.zeros_like(static)
        if not self.example.choices.frees_memory:
            activation = self.sums[bounds[:, 1:], 4] - self.sums[bounds[:, :-1], 4] + self.inputs[bounds[:, :-1]]
            held = self._on_ranks(activation).max(axis=0)
        over: Floats = np.maximum(static + held - self.limits.values * (1 + tolerances.MEMORY), 0.0).sum(axis=1)
        return over

    def _on_ranks(self, sizes: Floats) -> Floats:
        """Return the sums over the stages of each rank, shape (copies, layouts, ranks), of sizes (layouts, stages)."""
        held = np.zeros((self.placement.copies, len(sizes), self.placement.ranks))
        for copy, ranks in enumerate(self.placement.table):
            for stage, rank in enumerate(ranks.tolist()):
                held[copy, :, rank] += sizes[:, stage]
        return held

    def over(self, memory: MemoryUse) -> float:
        """Return by how much the peaks of ranks exceed the limits, the sum over ranks; 0 within the limits."""
        if self.limits is None:
            return 0.0
        peaks = memory.peak_activation if self.limits.in_activations else memory.peak_bytes
        assert peaks is not None
        excess = peaks - self.limits.values * (1 + tolerances.MEMORY)
        return float(np.maximum(excess, 0.0).sum())

    @cached_property
    def inputs(self) -> Floats:
        """Bytes of the input of each layer, which the first layer of a stage holds in addition; shape (layers,)."""
        return np.array([layer.input_bytes for layer in self.layers])


def _laid(layer: Layer) -> LaidLayer:
    """Return a layer with costs as a layer of the planner, with one way to run it."""
    option = LayerOption(
        name="",
        forward=layer.forward,
        backward_input=layer.backward_input,
        backward_weight=layer.backward_weight,
        activation_bytes=layer.activation_bytes,
        weight_activation_bytes=layer.freed_by_weight,
        segments=layer.segments,
    )
    kind = "dense" if layer.role is None or layer.role == "block" else layer.role
    return LaidLayer(options=(option,), static_bytes=layer.static_bytes, kind=kind)
