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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise, zip_longest
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeplan.costs.pair_kernel import OpChains, PairResults, Pairs, run_pairs
from pipeplan.costs.values import NOT_NEGATIVE
from pipeplan.costs.written_numbers import number_fault
from pipeplan.foundation.errors import CostError, UnknownNameError
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import Bools, Floats, Kind, shortened

LANES = ("compute", "all_to_all", "all_gather", "reduce_scatter", "all_reduce")
"""Names of segments: a computation, and the communications that are known."""

COMPUTE = LANES[0]

Segment = tuple[str, float]
"""Name and time of a part of an op: a computation or a communication. Files have it as a mapping, ``{compute: 1.2}``."""

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

    def scaled(self, factors: Sequence[float], *, communication: float = 1.0) -> OpSegments:
        """Return the segments with the times of F, I and W multiplied by a factor each, and of communication by another."""

        def times(op: str, factor: float) -> tuple[Segment, ...]:
            segments: tuple[Segment, ...] = getattr(self, op)
            return tuple((name, time * factor * (1.0 if name == COMPUTE else communication)) for name, time in segments)

        return OpSegments(**{op: times(op, factor) for op, factor in zip(OPS, factors, strict=True)})


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
    if name not in LANES:
        raise UnknownNameError(f"part in {words}:", name, LANES, field="segments")
    if type(time) not in (int, float):
        fault = f": {number_fault(time, 'time')}" if isinstance(time, str) else f" must be a number, not {time!r}"
        raise CostError(f"{words}: {name}{fault}", field="segments")
    if wrong := NOT_NEGATIVE.fault(float(time)):
        raise CostError(f"{words}: {name}{wrong}", field="segments")
    return name, float(time)


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


def _with_weights(op: OpSegments, *, apart: bool) -> list[tuple[str, float, bool]]:
    """Return the segments of a full backward, those of I and W in their order."""
    inputs = [(lane, time, False) for lane, time in op.backward_input]
    weights = [(lane, time, apart and lane == COMPUTE) for lane, time in op.backward_weight]
    begins = [place for place, (lane, *_) in enumerate(weights) if lane == COMPUTE]
    if not begins or len(begins) != _computes(op.backward_input):
        return inputs + weights
    # Behind computation n of I comes computation n of W with what it sends, then what I sends.
    parts = (weights[first:end] for first, end in pairwise([0, *begins[1:], len(weights)]))
    return [part for own in inputs for part in (own, *(next(parts) if own[0] == COMPUTE else ()))]


class PairTimes(NamedTuple):
    """Times of pairs from start to end, and their parts in which the communication lane works: alone, and beside the other.

    The three arrays have one shape.
    """

    time: Floats
    exposed: Floats
    hidden: Floats


class PairPiece(NamedTuple):
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
    whole
        True if an I is a full backward, as in costs of :meth:`Costs.unsplit`.
    """

    stages: tuple[OpSegments, ...]
    slowdown: float = 1.0
    delayed_weights: bool = False
    whole: bool = field(default=False, repr=False)

    def together(
        self, forward: NDArray[np.integer] | int, backward: NDArray[np.integer] | int, inputs: Bools | bool = False
    ) -> PairTimes:
        """Return the times of pairs by the stages of both ops, arrays of the shape to which the arguments are broadcast.

        ``inputs`` is True where the backward is an I, without W.
        """
        return self._distinct(*self._numbers(forward, backward, inputs))

    def alone(self) -> PairTimes:
        """Return the times of each stage's full backward alone, shape (stages,): delayed weights hide communication."""
        full = self._chains.full
        return self._distinct(np.zeros_like(full), full)

    def settings(self) -> dict[str, Any]:
        """Return the settings of the stages' segments, and of how pairs run."""
        slowdown = {"pair_slowdown": self.slowdown} if self.slowdown > 1 else {}
        return {"segments": self.stages, "delayed_weights": self.delayed_weights, **slowdown}

    def times(self) -> dict[str, Floats]:
        """Return the times of ops alone by their names, such as ``backward_input``, and ``backward``; shape (stages,)."""
        times = {op: np.array([stage.time(op) for stage in self.stages]) for op in OPS}
        return times | {"backward": self.alone().time}

    def require_times(self, stages: int, given: Mapping[str, Floats | None]) -> None:
        """Raise CostError unless there is an entry for each stage, and its segments add up to the given times of ops."""
        if len(self.stages) != stages:
            raise CostError(
                f"segments: {len(self.stages)} entries for {stages} stages; set one for all, or one per stage",
                field="segments",
            )
        for op, sums in self.times().items():
            times = given.get(op)
            for stage, (total, time) in enumerate(zip(sums, () if times is None else times, strict=False)):
                require_sum(total, time, op, f"stage {stage}")

    @property
    def communication(self) -> str:
        """Kinds of communication that take time, in words: ``all-to-all, all-gather``; empty without any."""
        used = {name for stage in self.stages for op in OPS for name, time in getattr(stage, op) if time > 0}
        return ", ".join(name.replace("_", "-") for name in LANES[1:] if name in used)

    def _numbers(self, forward: Any, backward: Any, inputs: Any) -> tuple[NDArray[np.int64], ...]:
        """Return the numbers of the chains of pairs, broadcast; see :meth:`together`."""
        chains = self._chains
        is_input = np.asarray(inputs) & (not self.whole)
        second = np.where(is_input, chains.inputs[backward], chains.full[backward])
        return tuple(np.broadcast_arrays(chains.forward[forward], second))

    def _distinct(self, forward: NDArray[np.int64], backward: NDArray[np.int64]) -> PairTimes:
        """Return the times of pairs of chains, each of which runs once."""
        count = len(self._chains.content)
        pairs, where = np.unique(forward.ravel() * count + backward.ravel(), return_inverse=True)
        results = self._run(pairs // count, pairs % count)
        return PairTimes(*(part[where].reshape(forward.shape) for part in results[:3]))

    def _run(self, forward: NDArray[np.int64], backward: NDArray[np.int64]) -> PairResults:
        turns = 5 * max(map(len, self._chains.content))
        results = PairResults(*np.zeros((3, len(forward))), *np.zeros((2, turns)))
        _RUN_PAIRS((self._chains.steps, Pairs(forward, backward), self.slowdown), (results,))
        return results

    def lanes(self, forward: int, backward: int, inputs: bool = False) -> tuple[PairPiece, ...]:
        """Return the pieces of a pair that take time, by their starts.

        The arguments are those of :meth:`together`. The weights of a full backward are part of its pieces, unless they
        are delayed.
        """
        numbers = self._numbers([forward], [backward], inputs)
        results = self._run(*numbers)
        own, other = (self._chains.content[int(number)] for (number,) in numbers)
        kind = Kind.I if inputs else Kind.B
        # The order of the turns of PairResults; in a turn without a piece, no time passes.
        turns: list[tuple[Kind, str]] = [
            (of, COMPUTE) for _ in range(max(len(own), len(other))) for of in (kind, Kind.W, Kind.F)
        ]
        for steps in zip_longest(other, own, fillvalue=_Step()):
            turns += [(of, step.lane) for of, step in zip((kind, Kind.F), steps, strict=True)]
        times = zip(turns, results.begin.tolist(), results.end.tolist(), strict=False)
        pieces = (PairPiece(*turn, begin, end) for turn, begin, end in times if end > begin)
        return tuple(sorted(pieces, key=attrgetter("begin", "lane")))

    def scaled(self, factors: Floats, *, communication: float = 1.0) -> Segments:
        """Return the same segments with other times, as :meth:`OpSegments.scaled` has them; shape (stages, 3)."""
        pairs = zip(self.stages, factors.tolist(), strict=True)
        return replace(self, stages=tuple(stage.scaled(own, communication=communication) for stage, own in pairs))

    @cached_property
    def _chains(self) -> _StageChains:
        numbers: dict[tuple[_Step, ...], int] = {(): 0}
        # Stages that share one record share its chains.
        of_records = {}
        for stage in {id(stage): stage for stage in self.stages}.values():
            alone = (((name, time, False) for name, time in own) for own in (stage.forward, stage.backward_input))
            ops = (*alone, _with_weights(stage, apart=self.delayed_weights))
            of_records[id(stage)] = [numbers.setdefault(_steps_of(op), len(numbers)) for op in ops]
        of_stages = [of_records[id(stage)] for stage in self.stages]
        content = list(numbers)
        message, compute, weight = np.array([step[:3] for steps in content for step in steps]).T.copy()
        length = np.array([len(steps) for steps in content], np.int64)
        chains = OpChains(np.cumsum(length) - length, length, compute, weight, message)
        return _StageChains(chains, content, *np.array(of_stages, np.int64).T.copy())


class _StageChains(NamedTuple):
    """Chains that occur, each once, and the number of each stage's F, I and B among them; number 0 has no steps."""

    steps: OpChains
    content: list[tuple[_Step, ...]]
    forward: NDArray[np.int64]
    inputs: NDArray[np.int64]
    full: NDArray[np.int64]


def require_sum(total: float, time: float, op: str, where: str) -> None:
    """Raise CostError unless an op's segments add up to its time, up to the rounding of costs files.

    ``where`` names the stage or layer.
    """
    if abs(total - time) > _ROUNDED * max(time, total):
        raise CostError(
            f"the segments of {where} add up to a {op.replace('_', ' ')} time of {total:g}, but it is set to {time:g}: make "
            "them equal, or set only the segments",
            field="segments",
        )


_ROUNDED = 1e-3
"""Tolerance of sums: costs files have five digits of each time."""
