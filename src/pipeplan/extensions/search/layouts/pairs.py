"""Overlapped pairs of stages: their times by the layers of both, and functions of one stage's layers that bound them.

Let T(x, y) be the time of a forward of layers x and a backward of layers y. A cut needs a function of each stage's layers.
For a layout with the layers X and Y, two functions are the tightest at X and Y (c-transforms; Villani, *Optimal transport*,
2009, definition 5.2)::

    u(x) = T(x, Y)      v(y) = min over x of T(x, y) - T(x, Y)      u(x) + v(y) <= T(x, y), equal at x = X, y = Y

Their mean with those of exchanged roles is used. If the layers differ too much for a table of T, computation and
communication of both ops bound their pair: each lane runs one piece after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs import COMPUTE, OpSegments, Segments, in_sequence, segments_of
from pipeplan.extensions.search.layouts.order import ALONE, WITH_FULL, WITH_INPUT
from pipeplan.extensions.search.layouts.stages import LaidLayer, StageTables
from pipeplan.model import Floats

Runs = NDArray[np.intp]
"""Numbers of runs of layers; equal layers in the same order have the same number."""

MOST_RUNS, MOST_OWN = 400, 2_000
"""Maximum number of runs of a stage whose times in pairs with another stage, and with itself, are computed for a bound."""


class StagePairs:
    """Times of overlapped pairs for all runs of layers that stages can have.

    Parameters
    ----------
    tables
        Layers with their options. An option without segments only computes.
    stages
        Number of stages.
    slowdown, delayed_weights
        As in :class:`~pipeplan.costs.Segments`.

    Attributes
    ----------
    runs
        Number of the run of each stage (the first, those in between, the last), shape (3, choices, layers + 1, layers + 1)
        by choice, first layer and end; -1 if there is none.
    lanes
        The :func:`lanes_of` each run, shape (runs, 6).
    """

    def __init__(self, tables: StageTables, stages: int, *, slowdown: float, delayed_weights: bool) -> None:
        self.slowdown, self.delayed_weights = slowdown, delayed_weights
        self._layers: dict[OpSegments, int] = {}
        self._of_layers: list[bytes] = []
        self.runs = self._numbered(tables, stages)
        own = np.array([lanes_of(segments, slowdown) for segments in self._layers])
        self.lanes: Floats = np.stack([own[np.frombuffer(run, np.intp)].sum(axis=0) for run in self._of_layers])
        self._segments = list(self._layers)
        self._stages: dict[int, OpSegments] = {}
        # Times that were computed, by sorted keys; the first key is of no pair.
        self._keys, self._times = np.array([-1]), np.zeros(1)

    def _numbered(self, tables: StageTables, stages: int) -> Runs:
        parts, layers = tables.parts, tables.layers
        numbers: dict[bytes, int] = {}
        runs = np.full((3, len(tables.choices), layers + 1, layers + 1), -1)
        for role, stage in enumerate((0, stages // 2, stages - 1)):
            first, last = stage == 0, stage == stages - 1
            for number, choice in enumerate(tables.choices):
                base, chosen = self._options(parts.middle, None), self._options(parts.middle, choice.name)
                name = choice.name if choice.layers is None else None
                start = self._options(parts.start if first else (), name)
                end = self._options(parts.end if last else (), name)
                for begin in range(1 if first else layers + 1):
                    for stop in range(layers if last else begin, layers + 1):
                        until = stop if choice.layers is None else min(begin + choice.layers, stop)
                        key = np.concatenate((start, chosen[begin:until], base[until:stop], end)).tobytes()
                        if key:
                            runs[role, number, begin, stop] = numbers.setdefault(key, len(numbers))
        self._of_layers = list(numbers)
        return runs

    def _options(self, layers: Sequence[LaidLayer], name: str | None) -> Runs:
        """Return the number of each layer's option of a name, or of its first one."""
        options = [layer.options[0] if name is None else layer.option(name) for layer in layers]
        return np.array([self._layers.setdefault(segments_of(one), len(self._layers)) for one in options], np.intp)

    def of_options(self, layer: LaidLayer) -> Floats:
        """Return the :func:`lanes_of` a layer by its options, shape (options, 6)."""
        return np.array([lanes_of(segments_of(option), self.slowdown) for option in layer.options])

    def times(self, kind: int, forward: Runs, backward: Runs) -> Floats:
        """Return the times of pairs of a kind, by the runs of their forwards and backwards, which are broadcast.

        For ``ALONE``, both are the run of the B.
        """
        keys = (kind * len(self.lanes) + np.asarray(forward)) * len(self.lanes) + backward
        at = np.searchsorted(self._keys, keys)
        missing = np.unique(keys[self._keys[np.minimum(at, len(self._keys) - 1)] != keys])
        if len(missing):
            made = self._made(kind, *np.divmod(missing % len(self.lanes) ** 2, len(self.lanes)))
            known = np.concatenate((self._keys, missing))
            order = np.argsort(known)
            self._keys, self._times = known[order], np.concatenate((self._times, made))[order]
            at = np.searchsorted(self._keys, keys)
        times: Floats = self._times[at]
        return times

    def _made(self, kind: int, forward: Runs, backward: Runs) -> Floats:
        own, places = np.unique((forward, backward), return_inverse=True)
        first, second = places.reshape(2, -1)
        stages = tuple(self._stage(run) for run in own.tolist())
        segments = Segments(stages=stages, slowdown=self.slowdown, delayed_weights=self.delayed_weights)
        if kind == ALONE:
            return segments.alone().time[second]
        return segments.together(first, second, kind == WITH_INPUT).time

    def _stage(self, run: int) -> OpSegments:
        if run not in self._stages:
            layers = np.frombuffer(self._of_layers[run], np.intp).tolist()
            self._stages[run] = in_sequence([self._segments[layer] for layer in layers])
        return self._stages[run]

    def own(self, kind: int, domain: Runs) -> Floats:
        """Return the time of a pair of a stage with itself by its run, shape (runs,); infinite outside of the domain.

        For layers that differ too much, it is a lower bound.
        """
        times = np.full(len(self.lanes), np.inf)
        if len(domain) <= MOST_OWN:
            times[domain] = self._made(kind, domain, domain)
        else:
            lanes = self.lanes[domain] * ([kind != ALONE, 1, 1] * 2)  # a B alone has no forward
            times[domain] = np.maximum(*(lanes[:, list(lane)].sum(axis=1) for lane in _LANES[kind]))
        return times

    def separated(self, kind: int, at: tuple[int, int], domains: tuple[Runs, Runs]) -> Floats:
        """Return a function of the forward's run and one of the backward's, shape (2, runs), that bound their pair.

        They add up to the time of the pair for the two runs ``at``, and to at most that of any two runs of the domains of
        the two stages. Elsewhere they are infinite.
        """
        (first, second), (forward, backward) = at, domains
        functions = np.full((2, len(self.lanes)), np.inf)
        if max(len(forward), len(backward)) > MOST_RUNS:
            lane = self.lane(kind, first, second)
            functions[0, forward], functions[1, backward] = self.lanes[forward, lane[0]], self.lanes[backward, lane[1]]
            return functions
        table = self.times(kind, forward[:, None], backward)
        of_forward = self.times(kind, forward, np.array(second))
        of_backward = self.times(kind, np.array(first), backward)
        functions[0, forward] = (of_forward + (table - of_backward).min(axis=1)) / 2
        functions[1, backward] = (of_backward + (table - of_forward[:, None]).min(axis=0)) / 2
        return functions

    def lane(self, kind: int, forward: int, backward: int) -> tuple[int, int]:
        """Return the columns of ``lanes`` of the forward and the backward whose sum bounds a pair of these runs best."""
        return max(_LANES[kind], key=lambda lane: self.lanes[forward, lane[0]] + self.lanes[backward, lane[1]])


_LANES = {WITH_FULL: ((0, 1), (3, 4)), WITH_INPUT: ((0, 2), (3, 5)), ALONE: ((0, 1), (3, 4))}
"""Columns of the lanes of a forward and a backward: those of their computation, and those of their communication."""


def lanes_of(segments: OpSegments, slowdown: float) -> Floats:
    """Return the computation of F, B and I, and their communication, shape (6,).

    While a pair communicates, it computes at 1 / slowdown. The part of this time that is lost counts as computation.
    """
    times = np.zeros((2, 3))
    for number, op in enumerate((segments.forward, segments.backward_weight, segments.backward_input)):
        for name, time in op:
            times[int(name != COMPUTE), number] += time
    times[:, 1] += times[:, 2]
    times[0] += (1 - 1 / slowdown) * times[1]
    return times.ravel()


def busier_lane(lanes: Floats) -> Floats:
    """Return the computation of F and B, or their communication if it takes longer; shape (...) for lanes (..., 6)."""
    longer: Floats = np.maximum(lanes[..., 0] + lanes[..., 1], lanes[..., 3] + lanes[..., 4])
    return longer
