"""Segments of layers: their computations, and the exchanges with experts that a pair of ops hides.

A layer is cut where trainers that pair a forward with a backward cut it: attention with norms, router and shared experts;
dispatch; experts; combine; what is left. A layer without experts has exchanges of no time around its FFN, so that the layers
of a pair stay aligned. Embedding, head and loss are one computation each. Source: Megatron-LM
``models/gpt/fine_grained_callables.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import TypeGuard

from pipeplan.costs import COMPUTE, OpSegments, Segment
from pipeplan.extensions.planning.estimates.seconds import WorkMachine, collective_seconds, work_seconds
from pipeplan.extensions.planning.hardware import generation
from pipeplan.extensions.planning.workload import Collective, LayerWork, Work
from pipeplan.model import Floats


def pair_slowdown(machine: WorkMachine) -> float:
    """Return the factor on computation beside an exchange; 1 if its multiprocessors never compute (``reserved``)."""
    return 1.0 if machine.software.reserved else generation(machine.cluster.gpu.generation).beside


def layer_segments(machine: WorkMachine, layer: LayerWork, seconds: Floats) -> OpSegments:
    """Return the segments of a layer whose F, I and W take ``seconds``, by kind of work; shape (3, kinds)."""
    forward, exchanges = _cut(layer.forward)
    if not exchanges and layer.kind in ("dense", "moe", "mtp"):
        names = [work.name for work in layer.forward]
        begins = names.index(_BEFORE_FFN) + 1 if _BEFORE_FFN in names else 0
        forward, exchanges = [forward[0][:begins], forward[0][begins:], []], [[], []]
    backward, reversed_exchanges = _cut(layer.backward_input)
    if len(reversed_exchanges) in (0, len(exchanges)):
        # What is recomputed stands before I, and belongs to the part that it is recomputed for.
        backward = _placed(forward, chain.from_iterable(backward))
        reversed_exchanges = reversed_exchanges or exchanges
    of_forward, of_inputs, of_weights = (float(row.sum()) for row in seconds)
    return OpSegments(
        forward=_timed(machine, layer, forward, exchanges, of_forward),
        backward_input=_timed(machine, layer, backward, reversed_exchanges, of_inputs),
        backward_weight=_timed(machine, layer, _placed(forward, layer.backward_weight), (), of_weights),
    )


def exchange_seconds(machine: WorkMachine, layer: LayerWork) -> float:
    """Return the seconds of a layer's exchanges with experts, in F and I together."""
    works = chain(layer.forward, layer.backward_input)
    return sum(collective_seconds(machine, work) for work in works if is_exchange(work))


_BEFORE_FFN = "attention residual"
"""Name of the last work before the norm of a layer's FFN."""


def _cut(works: Iterable[Work]) -> tuple[list[list[Work]], list[list[Collective]]]:
    """Return the computations of an op, and the exchanges between them, of which there is one less."""
    parts: list[list[Work]] = [[]]
    exchanges: list[list[Collective]] = []
    for work in works:
        if not is_exchange(work):
            parts[-1].append(work)
            continue
        if parts[-1] or not exchanges:
            exchanges.append([])
            parts.append([])
        exchanges[-1].append(work)
    return parts, exchanges


def is_exchange(work: Work) -> TypeGuard[Collective]:
    """Return True for an exchange with experts."""
    return isinstance(work, Collective) and work.beside == "batch"


def _placed(forward: Sequence[Sequence[Work]], works: Iterable[Work]) -> list[list[Work]]:
    """Return the work of a backward in the parts of the forward that it belongs to by its name, the last part first."""
    places = {work.name: place for place, part in enumerate(forward) for work in part}
    parts: list[list[Work]] = [[] for _ in forward]
    place = 0
    for work in works:
        place = places.get(work.name, place)
        parts[-1 - place].append(work)
    return parts


def _timed(
    machine: WorkMachine,
    layer: LayerWork,
    parts: Sequence[Sequence[Work]],
    exchanges: Sequence[Sequence[Collective]],
    total: float,
) -> tuple[Segment, ...]:
    """Return the segments of an op of ``total`` seconds: exchanges in full, computations in proportion to their kernels."""
    communications = [
        (group[0].operation if group else "all_to_all", sum(collective_seconds(machine, work) for work in group))
        for group in exchanges
    ]
    kernels = [float(work_seconds(machine, part, layer.kind).sum()) for part in parts]
    computed = max(0.0, total - sum(time for _, time in communications))
    scale = computed / sum(kernels) if sum(kernels) else 0.0
    computations = [(COMPUTE, scale * time) for time in kernels]
    if not scale:
        computations[0] = (COMPUTE, computed)
    return tuple(segment for two in zip_longest(computations, communications) for segment in two if segment)
