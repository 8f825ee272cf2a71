"""Segments of ops, and the time of a forward and a backward that hide each other's communication.

An op is a list of segments, each a computation or a communication such as the all-to-all of experts. A pair of a forward and
a backward has two lanes, each of which runs one piece at a time in a fixed order::

    compute        b0 f0 b1 f1 b2 f2 ...       b: pieces of the backward
    communication        b1 f1 b2 f2 ...       f: pieces of the forward; piece 1 communicates, then computes, and so on

A piece waits for the one before it of its op, and for its lane. This is the order of Megatron-LM's combined 1F1B
(``models/common/model_chunk_schedule_plan.py``, ``TransformerLayerSchedulePlan.run``), of DualPipe (DeepSeek-V3 Technical
Report, 2024, figure 4) and of torchtitan's DualPipeV (``distributed/dual_pipe_v.py``): the three differ in where they begin
to count. Layer i of the forward runs beside the i-th last layer of the backward; the layers that one op has more follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs.pair_kernel import Chains, PairResults, Pairs, run_pairs
from pipeplan.costs.values import NOT_NEGATIVE
from pipeplan.costs.written_numbers import number_fault
from pipeplan.foundation.errors import CostError, UnknownNameError
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import Floats, Kind, shortened

Lane = Literal["compute", "all_to_all", "all_gather", "reduce_scatter", "all_reduce"]
COMPUTE: Lane = "compute"
_NAMES: tuple[str, ...] = get_args(Lane)

Segment = tuple[str, float]
"""What a part of an op does, and its time. In files it is a mapping: ``{compute: 1.2}``."""

_RUN_PAIRS = Kernel(run_pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSegments:
    """Segments of the ops of a stage or layer, in order, for one microbatch.

    Attributes
    ----------
    forward, backward_input, backward_weight
        Segments of F, I and W. In a full backward, each computation of W follows the computation of I with its number if
        both have as many; otherwise all segments of W follow those of I.

    Raises
    ------
    CostError
        If an op has no segments, or a time is negative, not finite, or too large.
    UnknownNameError
        If a segment is neither a computation nor a communication that is known.
    """

    forward: tuple[Segment, ...]
    backward_input: tuple[Segment, ...]
    backward_weight: tuple[Segment, ...]

    def __post_init__(self) -> None:
        for op in OPS:
            object.__setattr__(self, op, segments_in(getattr(self, op), op))

    def time(self, op: str) -> float:
        """Return the time of one of the three ops alone."""
        segments: tuple[Segment, ...] = getattr(self, op)
        return sum(time for _, time in segments)

    def in_files(self) -> dict[str, list[dict[str, float]]]:
        """Return the segments as files have them: ``{"forward": [{"compute": 1.2}, ...], ...}``."""
        return {op: [{name: time} for name, time in getattr(self, op)] for op in OPS}

    def communication(self) -> Iterator[Segment]:
        """Yield the communications of all three ops."""
        return (segment for op in OPS for segment in getattr(self, op) if segment[0] != COMPUTE)

    def scaled(self, forward: float, backward_input: float, backward_weight: float) -> OpSegments:
        """Return the segments with the times of each op multiplied by a factor."""
        return OpSegments(
            forward=_times(self.forward, forward),
            backward_input=_times(self.backward_input, backward_input),
            backward_weight=_times(self.backward_weight, backward_weight),
        )


OPS = ("forward", "backward_input", "backward_weight")
"""Ops that have segments: F, I and W. A full backward has those of I and W."""


def segments_in(parts: Any, op: str, where: str = "") -> tuple[Segment, ...]:
    """Return the segments of an op from a list of pairs, or of mappings of one name to its time.

    Raises the errors of :class:`OpSegments`, in which ``where`` follows the op, such as `` of stage 3``.
    """
    words = f"segments of {op.replace('_', ' ')}{where}"
    if not isinstance(parts, list | tuple) or not parts:
        raise CostError(
            f"{words}: expected a list such as [{{compute: 1.2}}, {{all_to_all: 0.4}}], not {shortened(repr(parts), 60)}",
            field="segments",
        )
    return tuple(_segment(part, words) for part in parts)


def _segment(part: Any, words: str) -> Segment:
    pair = next(iter(part.items())) if isinstance(part, Mapping) and len(part) == 1 else part
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
        raise CostError(
            f"{words}: expected a name with its time, such as {{compute: 1.2}}, not {shortened(repr(part), 60)}",
            field="segments",
        )
    name, time = pair[0], pair[1].tolist() if hasattr(pair[1], "tolist") else pair[1]
    if name not in _NAMES:
        raise UnknownNameError(f"part in {words}:", name, _NAMES, field="segments")
    if type(time) not in (int, float):
        fault = f": {number_fault(time, 'time')}" if isinstance(time, str) else f" must be a number, not {time!r}"
        raise CostError(f"{words}: {name}{fault}", field="segments")
    if fault_of_range := NOT_NEGATIVE.fault(time):
        raise CostError(f"{words}: {name}{fault_of_range}", field="segments")
    return name, float(time)


def _times(segments: Iterable[Segment], factor: float) -> tuple[Segment, ...]:
    return tuple((name, time * factor) for name, time in segments)


def in_sequence(layers: Sequence[OpSegments]) -> OpSegments:
    """Return the segments of a stage that has these layers, whose backwards run from the last one to the first.

    Each layer keeps its computations of W behind its own of I.
    """
    back = [_aligned(layer) for layer in reversed(layers)]
    return OpSegments(
        forward=tuple(chain.from_iterable(layer.forward for layer in layers)),
        backward_input=tuple(chain.from_iterable(inputs for inputs, _ in back)),
        backward_weight=tuple(chain.from_iterable(weights for _, weights in back)),
    )


def _aligned(layer: OpSegments) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Return a layer's I and W with as many computations each, without a change of their order.

    If all of W follows I, computations of no time stand for those that W lacks.
    """
    inputs, weights = layer.backward_input, layer.backward_weight
    if _computes(inputs) == _computes(weights):
        return inputs, weights
    if any(name != COMPUTE for name, _ in weights):
        raise CostError(
            f"segments of a layer: backward_weight communicates, so it needs as many computations as backward_input, "
            f"{_computes(inputs)}, not {_computes(weights)}: write compute: 0 where it computes nothing",
            field="layers",
        )
    if inputs[-1][0] != COMPUTE:
        inputs = (*inputs, (COMPUTE, 0.0))
    return inputs, (*((COMPUTE, 0.0),) * (_computes(inputs) - 1), (COMPUTE, sum(time for _, time in weights)))


def _computes(segments: Iterable[Segment]) -> int:
    return sum(name == COMPUTE for name, _ in segments)


class _Step(NamedTuple):
    """A communication, the computation that waits for it, and the one behind that no communication waits for."""

    message: float = 0.0
    compute: float = 0.0
    weight: float = 0.0
    lane: str = COMPUTE


def _steps_of(segments: Iterable[tuple[str, float, bool]]) -> tuple[_Step, ...]:
    """Return the steps of an op; the third part of a segment is True for weights that no communication waits for."""
    steps, communicated = [_Step()], False
    for lane, time, apart in segments:
        step = steps[-1]
        if lane == COMPUTE:
            if apart:
                steps[-1] = step._replace(weight=step.weight + time)
            else:
                # What computes behind weights ends after them, for any communication that waits for it.
                steps[-1] = step._replace(compute=step.compute + step.weight + time, weight=0.0)
        elif communicated:
            steps[-1] = step._replace(message=step.message + time)
        else:
            steps.append(_Step(message=time, lane=lane))
        communicated = lane != COMPUTE
    return tuple(steps)


def _with_weights(op: OpSegments, *, apart: bool) -> Iterator[tuple[str, float, bool]]:
    """Yield the segments of a full backward, those of I and W in their order."""
    weights = op.backward_weight
    aligned = _computes(weights) == _computes(op.backward_input)
    # Where each computation of W begins, up to which the ones before it reach.
    begins = [place for place, (lane, _) in enumerate(weights) if lane == COMPUTE and aligned]
    following = zip([0, *begins[1:]], [*begins[1:], len(weights)], strict=True) if begins else iter([])
    for lane, time in op.backward_input:
        yield lane, time, False
        if lane == COMPUTE and aligned:
            first, stop = next(following)
            yield from ((name, more, apart and name == COMPUTE) for name, more in weights[first:stop])
    if not begins:
        yield from ((name, more, apart and name == COMPUTE) for name, more in weights)


class PairTimes(NamedTuple):
    """Times of pairs, three arrays of one shape.

    Attributes
    ----------
    time
        Time from the start of the pair to its end.
    exposed, hidden
        Part of it in which the communication lane works: alone, and beside computation.
    """

    time: Floats
    exposed: Floats
    hidden: Floats


class Piece(NamedTuple):
    """A piece of a pair: kind of its op (F, I, B or W), lane, and times from the start of the pair."""

    kind: Kind
    lane: str
    begin: float
    end: float


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments of the ops of all stages, and how pairs of them run.

    Attributes
    ----------
    stages
        Segments of each stage.
    slowdown
        Factor on the time of computation while a communication of the pair runs beside it, 1 or more.
    delayed_weights
        True if the computations of W within a full backward keep no communication waiting, as with Megatron-LM's
        ``--delay-wgrad-compute`` and in DualPipe. False: each is one piece with the computation of I before it.
    """

    stages: tuple[OpSegments, ...]
    slowdown: float = 1.0
    delayed_weights: bool = False
    _whole: bool = field(default=False, repr=False)

    def together(
        self,
        forward: NDArray[np.integer] | int,
        backward: NDArray[np.integer] | int,
        inputs: NDArray[np.bool_] | bool = False,
    ) -> PairTimes:
        """Return the times of pairs, arrays of the shape to which the arguments are broadcast.

        Parameters
        ----------
        forward, backward
            Stage of each pair's forward and of its backward.
        inputs
            True where the backward is an I, without W.
        """
        chains = self._chains
        second = np.where(np.asarray(inputs) & (not self._whole), chains.inputs[backward], chains.full[backward])
        first, second = np.broadcast_arrays(chains.forward[forward], second)
        return self._run(first, second)

    def alone(self) -> PairTimes:
        """Return the times of each stage's full backward alone, shape (stages,): delayed weights hide communication."""
        full = self._chains.full
        return self._run(np.zeros_like(full), full)

    @property
    def communication(self) -> str:
        """Kinds of communication that take time, in words: ``all-to-all, all-gather``; empty without any."""
        used = {kind for stage in self.stages for kind, time in stage.communication() if time > 0}
        return ", ".join(kind.replace("_", "-") for kind in _NAMES if kind in used)

    def _run(self, forward: NDArray[np.int64], backward: NDArray[np.int64]) -> PairTimes:
        count = len(self._chains.steps.offsets)
        pairs, where = np.unique(forward.ravel() * count + backward.ravel(), return_inverse=True)
        results = self._results(len(pairs))
        _RUN_PAIRS((self._chains.steps, Pairs(pairs // count, pairs % count), self.slowdown), (results,))
        return PairTimes(*(part[where].reshape(forward.shape) for part in results[:3]))

    def _results(self, pairs: int) -> PairResults:
        turns = 5 * int(np.diff(self._chains.steps.offsets).max())
        return PairResults(np.zeros(pairs), np.zeros(pairs), np.zeros(pairs), np.zeros(turns), np.zeros(turns))

    def lanes(self, forward: int, backward: int, inputs: bool = False) -> tuple[Piece, ...]:
        """Return the pieces of a pair that take time, by lane and start.

        The arguments are those of :meth:`together`. The weights of a full backward are part of its pieces, unless they
        are delayed.
        """
        chains, results = self._chains, self._results(1)
        first = int(chains.forward[forward])
        second = int((chains.inputs if inputs and not self._whole else chains.full)[backward])
        _RUN_PAIRS((chains.steps, Pairs(np.array([first]), np.array([second])), self.slowdown), (results,))
        own, other = (chains.content[number] for number in (first, second))
        steps = max(len(own), len(other))
        kind = Kind.I if inputs else Kind.B
        pieces = []
        for step in range(steps):
            for turn, (of, chosen) in enumerate(((kind, other), (Kind.W, other), (Kind.F, own))):
                if step < len(chosen):
                    pieces.append(_piece(results, 3 * step + turn, of, COMPUTE))
            for turn, (of, chosen) in enumerate(((kind, other), (Kind.F, own))):
                if 0 < step < len(chosen):
                    pieces.append(_piece(results, 3 * steps + 2 * step + turn, of, chosen[step].lane))
        return tuple(sorted((piece for piece in pieces if piece.end > piece.begin), key=lambda piece: piece[1:3]))

    def scaled(self, forward: Floats, backward_input: Floats, backward_weight: Floats) -> Segments:
        """Return the same segments with the times of each op multiplied by a factor, arrays of shape (stages,)."""
        factors = zip(forward.tolist(), backward_input.tolist(), backward_weight.tolist(), strict=True)
        stages = tuple(stage.scaled(*each) for stage, each in zip(self.stages, factors, strict=True))
        return replace(self, stages=stages)

    def unsplit(self) -> Segments:
        """Return segments in which an I is a full backward, as in costs of :meth:`Costs.unsplit`."""
        return replace(self, _whole=True)

    @cached_property
    def _chains(self) -> _StageChains:
        numbers: dict[tuple[_Step, ...], int] = {(): 0}

        def number(steps: tuple[_Step, ...]) -> int:
            return numbers.setdefault(steps, len(numbers))

        # Stages that share one record share its chains.
        chains = {
            id(stage): (
                number(_steps_of((lane, time, False) for lane, time in stage.forward)),
                number(_steps_of((lane, time, False) for lane, time in stage.backward_input)),
                number(_steps_of(_with_weights(stage, apart=self.delayed_weights))),
            )
            for stage in {id(stage): stage for stage in self.stages}.values()
        }
        of_stages = [chains[id(stage)] for stage in self.stages]
        content = list(numbers)
        message, compute, weight = np.array([step[:3] for steps in content for step in steps]).T.copy()
        offsets = np.array(list(accumulate(map(len, content), initial=0)), np.int64)
        return _StageChains(Chains(offsets, compute, weight, message), content, *np.array(of_stages, np.int64).T.copy())


class _StageChains(NamedTuple):
    """Chains that occur, each once, and the number of each stage's F, I and B among them; number 0 has no steps."""

    steps: Chains
    content: list[tuple[_Step, ...]]
    forward: NDArray[np.int64]
    inputs: NDArray[np.int64]
    full: NDArray[np.int64]


def _piece(results: PairResults, turn: int, kind: Kind, lane: str) -> Piece:
    return Piece(kind, lane, float(results.begin[turn]), float(results.end[turn]))


def require_sum(total: float, time: float, name: str, where: str) -> None:
    """Raise CostError unless an op's segments add up to its time, up to the rounding of costs files.

    ``name`` is that of the time, such as ``forward_times``; ``where`` names the stage or layer.
    """
    if abs(total - time) > _ROUNDED * max(time, total):
        words = name.replace("_", " ").removesuffix("s")
        raise CostError(
            f"the segments of {where} add up to a {words} of {total:g}, but it is set to {time:g}: make them equal, or set "
            "only the segments",
            field="segments",
        )


_ROUNDED = 1e-3
"""Tolerance of sums: costs files have five digits of each time."""
