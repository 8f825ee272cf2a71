"""Base of mixers: parameters and work of one, from its projections, its convolution, and its mixing of tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar

from pipeplan.extensions.planning.workload.components import ParameterPart, Precision, check_size
from pipeplan.extensions.planning.workload.part import (
    FULL,
    HALF,
    Part,
    elementwise,
    into_tensor,
    joined,
    linear,
    out_of_tensor,
    shard_tokens,
)
from pipeplan.extensions.planning.workload.work import Collective, Execution, Kept, MemoryPass, RankParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Projection of a mixer's input, or of an earlier projection's output.

    Attributes
    ----------
    name
        Name such as ``query, key, value``.
    columns
        Width of its output.
    inner
        Width of its input; 0: the hidden state.
    split
        Whether the tensor group splits its columns; otherwise every rank computes all of them.
    precision
        Number format of its product; None: that of the run.
    """

    name: str
    columns: int
    inner: int = 0
    split: bool = True
    precision: Precision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """Kernels of a chunkwise recurrence, which hand tensors on through memory, by token and over all heads.

    Attributes
    ----------
    flops, flops_again
        FLOPs of the products in a forward, and of those that the backward repeats because it needs their results.
    forward_bytes, backward_bytes
        Bytes that the kernels read and write.
    """

    flops: float
    flops_again: float
    forward_bytes: float
    backward_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerSizes:
    """Everything from which the parameters, FLOPs and work of a mixer follow.

    Attributes
    ----------
    heads
        Number of heads (or channels) that the tensor group and the context group split.
    width
        Width of the input of the output projection.
    projections
        Projections before the mixing.
    recurrence
        Kernels of the chunkwise recurrence; None without one.
    flops
        FLOPs of one token's recurrence, as a named source counts them.
    channels, taps
        Channels of the short causal convolution, and the width of its kernel in tokens.
    state
        Numbers of the state that a chunk hands on, over all heads.
    split, replicated
        Number of parameters in vectors that the tensor group splits (values per head, biases, norms over all heads), and in
        vectors that every rank holds (norms per head, biases of the output).
    """

    heads: int
    width: int
    projections: tuple[Projection, ...]
    recurrence: Recurrence | None = None
    flops: float = 0.0
    channels: int = 0
    taps: int = 0
    state: int = 0
    split: int = 0
    replicated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer(ABC):
    """Mixer of tokens in the place of attention: input projections, short convolution, recurrence, norm, gate, output.

    A subclass has fields for its sizes, and :meth:`sizes`; one without a recurrence has its own :meth:`mixing`, too. A
    recurrence runs in chunks of ``chunk`` tokens: products of matrices inside each chunk and with the state that chunks hand
    on, which is written to memory once per chunk.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    chunk: ClassVar[int] = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, bool):
                check_size(field.name, value, at_least=0 if field.default == 0 else 1)

    @abstractmethod
    def sizes(self, hidden: int) -> MixerSizes:
        """Return the sizes of the mixer in a model of this hidden size."""

    def splits(self, hidden: int) -> Iterator[tuple[str, int]]:
        """Yield what the tensor group splits, in words, and its size."""
        yield f"heads of {self.title}", self.sizes(hidden).heads

    def token_flops(self, hidden: int, sequence: int, *, causal: bool = True) -> float:
        """Return the FLOPs of mixing one token with others in the forward of a layer."""
        return self.sizes(hidden).flops

    def parameters(self, hidden: int) -> tuple[ParameterPart, ...]:
        """Return the parameters of one layer's mixer in a model of this hidden size."""
        sizes = self.sizes(hidden)
        parts = (
            *(
                ParameterPart(
                    projection.name,
                    (projection.inner or hidden) * projection.columns,
                    "tensor" if projection.split else "replicated",
                )
                for projection in sizes.projections
            ),
            ParameterPart("convolution", sizes.channels * sizes.taps, matrix=False),
            ParameterPart("per-head values and biases", sizes.split, matrix=False),
            ParameterPart("norms per head and output bias", sizes.replicated, "replicated", matrix=False),
            ParameterPart(f"{self.title} output", sizes.width * hidden),
        )
        return tuple(part for part in parts if part.count)

    def work(self, hidden: int, execution: Execution) -> Part:
        """Return the work of one layer's mixer on a rank of the tensor group.

        With a context group, each rank has some of the heads for the whole sequence, and two all-to-alls exchange heads for
        tokens (Megatron Core, ``MambaContextParallel``).
        """
        n, t = execution.tokens, execution.tensor
        sizes = self.sizes(hidden)
        own = sizes.width / t
        projected = [_projected(projection, hidden, execution) for projection in sizes.projections]
        read = _read(sizes, execution)
        return joined(
            (
                into_tensor(self.title, execution, hidden),
                *projected,
                Part(
                    kept=(Kept(name=f"{self.title} input", bytes=HALF * shard_tokens(execution) * hidden, until="W"),)
                ),
                _exchange(execution, n * (read + own)),
                self.mixing(hidden, execution),
                Part(
                    kept=(
                        Kept(name=f"{self.title} projections", bytes=HALF * n * read),
                        Kept(name=f"{self.title} recurrence output", bytes=HALF * n * own),
                    ),
                    parameters=RankParameters(dense=round(sizes.split / t) + sizes.replicated),
                ),
                linear(
                    f"{self.title} output",
                    execution,
                    rows=n,
                    inner=own,
                    columns=hidden,
                    keeps=f"{self.title} output",
                ),
                out_of_tensor(self.title, execution, hidden),
            )
        )

    def mixing(self, hidden: int, execution: Execution) -> Part:
        """Return the work between the projections: convolution, recurrence, norm and gate."""
        sizes = self.sizes(hidden)
        numbers = execution.tokens * sizes.width / execution.tensor
        # The gate and the norm are one kernel; it keeps the recurrence's output.
        gate = elementwise(f"{self.title} norm and gate", 3 * HALF * numbers, 5 * HALF * numbers)
        return joined(
            (_copies(sizes, execution), _convolution(sizes, execution), _mixing(sizes, self.chunk, execution), gate)
        )


def _read(sizes: MixerSizes, execution: Execution) -> float:
    """Return the numbers of a token that the projections make for a rank."""
    return sum(projection.columns / (execution.tensor if projection.split else 1) for projection in sizes.projections)


def _copies(sizes: MixerSizes, execution: Execution) -> Part:
    """Return the copies that put sequences before tokens and back, as Megatron Core's mixers do with several sequences."""
    if execution.microbatch_size == 1 or execution.framework != "megatron":
        return Part()
    moved = 2 * HALF * execution.tokens * (_read(sizes, execution) + sizes.width / execution.tensor)
    return elementwise("order of sequences and tokens", moved, moved, kernels=2)


def _projected(projection: Projection, hidden: int, execution: Execution) -> Part:
    # Every projection reads the layer's input, which is kept once; low-rank ones read a narrow output.
    return linear(
        projection.name,
        execution,
        rows=execution.tokens,
        inner=projection.inner or hidden,
        columns=projection.columns / (execution.tensor if projection.split else 1),
        fused_cast=True,
        precision=projection.precision,
    )


def _exchange(execution: Execution, numbers: float) -> Part:
    if execution.context == 1:
        return Part()
    exchange = Collective(name="heads and sequence", operation="all_to_all", group="context", bytes=HALF * numbers)
    return Part(forward=(exchange,), backward_input=(exchange,))


def _convolution(sizes: MixerSizes, execution: Execution) -> Part:
    """Return the short convolution with its activation function: memory bound; I recomputes it."""
    numbers = execution.tokens * sizes.channels / execution.tensor
    weights = round(sizes.channels * sizes.taps / execution.tensor)
    return joined(
        (
            elementwise("short convolution", 2 * HALF * numbers, 5 * HALF * numbers, backward_kernels=2),
            Part(parameters=RankParameters(dense=weights)),
        )
    )


def _mixing(sizes: MixerSizes, chunk: int, execution: Execution) -> Part:
    """Return the chunkwise recurrence; its backward holds the states that chunks hand on, and their gradients."""
    recurrence = sizes.recurrence
    if recurrence is None:
        return Part()
    tokens = execution.tokens / execution.tensor
    forward = MemoryPass(
        name="recurrence", bytes=tokens * recurrence.forward_bytes, flops=tokens * recurrence.flops, kernels=5
    )
    backward = MemoryPass(
        name="recurrence",
        bytes=tokens * recurrence.backward_bytes,
        flops=tokens * (2 * recurrence.flops + recurrence.flops_again),
        kernels=12,
    )
    states = FULL * max(tokens, chunk / execution.tensor) / chunk * sizes.state
    return Part(forward=(forward,), backward_input=(backward,), transient_bytes=2 * states)
