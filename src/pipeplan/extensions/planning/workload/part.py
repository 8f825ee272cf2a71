"""Parts of a layer: their share of F, I and W, and the collectives into and out of a tensor group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from pipeplan.extensions.planning.workload.components import Precision
from pipeplan.extensions.planning.workload.work import (
    Collective,
    Execution,
    Gemm,
    Kept,
    MemoryPass,
    Operation,
    RankParameters,
    Recompute,
    Work,
)

HALF = 2
"""Bytes per number of activations, norms and attention: bf16 or fp16."""

FULL = 4
"""Bytes per accumulated number."""

NUMBER_BYTES: dict[Precision, float] = {"bf16": 2, "fp16": 2, "fp8": 1, "mxfp8": 1 + 1 / 32, "nvfp4": 1 / 2 + 1 / 16}
"""Bytes per number of a product's operand, including block scales (OCP microscaling formats: 1 byte per 32; NVFP4: 1 per
16)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Part of a layer.

    Attributes
    ----------
    forward, backward_input, backward_weight, kept, parameters
        As in :class:`LayerWork`; ``backward_input`` in execution order.
    adapters
        Parameters of low-rank adapters, which are not among ``parameters``.
    transient_bytes
        Peak of its backward beyond what is kept at its start: gradients of its output and input, and workspaces. Tensors of
        later parts are free by then.
    products
        Matrix products of the separate linear modules without fusion, in the order of F.
    modules
        Modules in it that can be recomputed.
    """

    forward: tuple[Work, ...] = ()
    backward_input: tuple[Work, ...] = ()
    backward_weight: tuple[Work, ...] = ()
    kept: tuple[Kept, ...] = ()
    parameters: RankParameters = field(default_factory=RankParameters)
    adapters: RankParameters = field(default_factory=RankParameters)
    transient_bytes: float = 0.0
    products: tuple[Gemm, ...] = ()
    modules: dict[str, Recompute] = field(default_factory=dict)

    @property
    def kept_names(self) -> frozenset[str]:
        """Names of the tensors that it keeps."""
        return frozenset(tensor.name for tensor in self.kept)


def joined(parts: Iterable[Part]) -> Part:
    """Return parts in sequence; their backward runs from the last to the first."""
    every = tuple(parts)
    transient = 0.0
    for part in every:
        transient = max(transient - sum(tensor.bytes for tensor in part.kept), part.transient_bytes)
    return Part(
        forward=tuple(chain.from_iterable(part.forward for part in every)),
        backward_input=tuple(chain.from_iterable(part.backward_input for part in reversed(every))),
        backward_weight=tuple(chain.from_iterable(part.backward_weight for part in every)),
        kept=tuple(chain.from_iterable(part.kept for part in every)),
        parameters=_sum(part.parameters for part in every),
        adapters=_sum(part.adapters for part in every),
        transient_bytes=transient,
        products=tuple(chain.from_iterable(part.products for part in every)),
        modules={name: module for part in every for name, module in part.modules.items()},
    )


def _sum(held: Iterable[RankParameters]) -> RankParameters:
    pairs = [(one.dense, one.expert) for one in held]
    return RankParameters(dense=sum(dense for dense, _ in pairs), expert=sum(expert for _, expert in pairs))


def shard_tokens(execution: Execution) -> float:
    """Return the tokens on a rank for work that tensor parallelism does not split: norms, residuals, dropout."""
    return execution.tokens / (execution.tensor if execution.sequence_parallel else 1)


def kept_tokens(execution: Execution) -> float:
    """Return the tokens of a gathered input that are kept for W: the rank's shard if W gathers the others again."""
    return execution.tokens if execution.framework == "pytorch" else shard_tokens(execution)


def linear(
    name: str,
    execution: Execution,
    *,
    rows: float,
    inner: float,
    columns: float,
    keeps: str = "",
    kept_rows: float | None = None,
    fused_cast: bool = False,
    bias: bool = False,
    precision: Precision | None = None,
    modules: tuple[float, ...] | None = None,
) -> Part:
    """Return a product of ``rows`` tokens with weights of (inner, columns): one GEMM in each of F, I and W.

    Parameters
    ----------
    keeps
        Name of the input that is kept for W; empty: another part keeps it.
    kept_rows
        Tokens of the input that are kept (a shard, if W gathers the others again); None: all.
    fused_cast
        Whether the input's producer writes it in the product's format.
    precision
        Precision of the product; None: the execution's.
    modules
        Columns of the separate linear modules that the product fuses; None: it is a single module.
    """
    # Products of a format of their own are not linear modules that adapters go beside: router, head and the like.
    adapts = precision is None and execution.adapts(name)
    precision = precision or execution.precision
    small = NUMBER_BYTES[precision] < HALF
    number = kept_number(execution, precision)
    product = Gemm(name=name, rows=rows, columns=columns, inner=inner, precision=precision)
    casts = (cast(f"{name} input", rows * inner, precision),) if small and not fused_cast else ()
    gradient_casts = (cast(f"{name} gradient", rows * columns, precision),) if small else ()
    kept = Kept(
        name=keeps,
        bytes=number * inner * (rows if kept_rows is None else kept_rows),
        until="W",
        gradient_bytes=number * columns * rows,
    )
    bias_gradient = (MemoryPass(name=f"{name} bias gradient", bytes=HALF * rows * columns),) if bias else ()
    part = Part(
        forward=(*casts, product),
        backward_input=(
            *gradient_casts,
            Gemm(name=name, rows=rows, columns=inner, inner=columns, precision=precision),
        ),
        backward_weight=(
            Gemm(
                name=name,
                rows=columns,
                columns=inner,
                inner=rows,
                precision=precision,
                accumulates=execution.fp32_gradients,
            ),
            *bias_gradient,
        ),
        kept=(kept,) if keeps else (Kept(name=f"{name} output gradient", bytes=0, gradient_bytes=kept.gradient_bytes),),
        parameters=RankParameters(dense=round(inner * columns + (columns if bias else 0))),
        transient_bytes=HALF * rows * (inner + columns) + (2 * number * rows * columns if small else 0.0),
        products=tuple(
            Gemm(name=name, rows=rows, columns=width, inner=inner, precision=precision)
            for width in (modules or (columns,))
        ),
    )
    if not execution.adapter_rank:
        return part
    return adapted(part, execution, rows=rows, inner=inner, columns=columns) if adapts else frozen(part)


ADAPTER = "adapter"
"""Ending of the names of adapters' products."""


def adapted(part: Part, execution: Execution, *, rows: float, inner: float, columns: float) -> Part:
    """Return a frozen product with a low-rank adapter beside it: (inner, r) and (r, columns), whose output is added.

    Only the adapter has weight gradients. They need the product's input and output gradient, as the product's own would.
    Eager ones drop out their input and scale their output in kernels of their own (huggingface/peft tuners/lora/layer.py).
    """
    rank = execution.adapter_rank
    name = f"{part.forward[-1].name} {ADAPTER}"

    def pair(*shapes: tuple[float, float, float], accumulates: bool = False) -> tuple[Gemm, ...]:
        return tuple(Gemm(name=name, rows=m, columns=n, inner=k, accumulates=accumulates) for m, n, k in shapes)

    def passes(added: float) -> MemoryPass:
        # Dropout of every module's input, with its mask, and scaling of the output, or their gradients, with the casts of
        # adapters of their own format; the output or gradient is added.
        number, casts = execution.adapter_bytes, execution.adapter_bytes > HALF
        dropout = 2 * number + 1 + (HALF + number if casts else 0.0)
        scaling = 2 * number + (3 * number - HALF if casts else 0.0)
        apart = 0.0 if execution.fused_activation else dropout * inner * len(part.products) + scaling * columns
        return MemoryPass(name=name, bytes=rows * (3 * HALF * added + apart), kernels=3 if apart else 1)

    return joined(
        (
            replace(part, backward_weight=()),
            Part(
                forward=(*pair((rows, rank, inner), (rows, columns, rank)), passes(columns)),
                backward_input=(*pair((rows, rank, columns), (rows, inner, rank)), passes(inner)),
                backward_weight=pair((rank, inner, rows), (columns, rank, rows), accumulates=execution.fp32_gradients),
                kept=(Kept(name=name, bytes=HALF * rows * rank, until="W", gradient_bytes=HALF * rows * rank),),
                adapters=RankParameters(dense=round(rank * (inner + columns))),
            ),
        )
    )


def frozen(part: Part) -> Part:
    """Return a product without weight gradients, which keeps nothing for them."""
    return replace(part, backward_weight=(), kept=())


def trained(part: Part, execution: Execution) -> tuple[RankParameters, RankParameters, tuple[Work, ...]]:
    """Return the trained and the frozen parameters of a part, and its weight gradients: those of adapters if it has any."""
    if not execution.adapter_rank:
        return part.parameters, RankParameters(), part.backward_weight
    gradients = tuple(work for work in part.backward_weight if work.name.endswith(ADAPTER))
    return part.adapters, part.parameters, gradients


def kept_number(execution: Execution, precision: Precision) -> float:
    """Return the bytes per number of a product's operand that is kept for W."""
    return NUMBER_BYTES[precision] if execution.small_inputs else HALF


def keeps_copies(execution: Execution) -> bool:
    """Return True if products keep low-precision copies of their inputs, so that no two of them share a kept tensor."""
    return kept_number(execution, execution.precision) < HALF


def cast(name: str, numbers: float, precision: Precision) -> MemoryPass:
    """Return the conversion from 16 bits to a product's format: read once, written along rows and along columns."""
    return MemoryPass(name=f"quantise {name}", bytes=numbers * (HALF + 2 * NUMBER_BYTES[precision]))


def elementwise(
    name: str, forward: float, backward: float, *, kernels: int = 1, backward_kernels: int | None = None
) -> Part:
    """Return work bound by memory; ``forward`` and ``backward`` are the bytes that F and I read and write."""
    again = kernels if backward_kernels is None else backward_kernels
    return Part(
        forward=(MemoryPass(name=name, bytes=forward, kernels=kernels),) if forward else (),
        backward_input=(MemoryPass(name=name, bytes=backward, kernels=again),) if backward else (),
    )


def scattered(numbers: float) -> tuple[MemoryPass, ...]:
    """Return the sums of the gradients of keys that were gathered for each query: 32-bit additions to where they came from.

    On MI355X, they take as long as the products (AMD-AGI/Primus examples/deepseek-v4/benchmark).
    """
    return (MemoryPass(name="gradients of selected keys", bytes=2 * FULL * numbers),) if numbers else ()


def into_tensor(name: str, execution: Execution, width: float) -> Part:
    """Return the collectives before a product whose columns are split over t (arXiv 2205.05198 section 4.2.2).

    With sequence parallelism, F gathers the input and I scatters its gradient; W gathers the input again if only the shard
    was kept. Otherwise I reduces the gradient.
    """
    if execution.tensor == 1:
        return Part()
    numbers = execution.tokens * width

    def collective(operation: Operation, number: float = HALF) -> tuple[Collective, ...]:
        return (_of_tensor(name, operation, number * numbers),)

    if not execution.sequence_parallel:
        return Part(backward_input=collective("all_reduce"))
    gathered = collective("all_gather", HALF if name == "head" else execution.gather_bytes)
    return Part(
        forward=gathered,
        backward_input=collective("reduce_scatter"),
        backward_weight=gathered if execution.framework == "megatron" else (),
    )


def out_of_tensor(name: str, execution: Execution, width: float, *, beside: Literal["gemm", ""] = "gemm") -> Part:
    """Return the sum over t after a product whose inner dimension is split; ``beside`` as in :class:`Collective`."""
    if execution.tensor == 1:
        return Part()
    whole = HALF * execution.tokens * width
    if not execution.sequence_parallel:
        return Part(forward=(_of_tensor(name, "all_reduce", whole, beside),))
    return Part(
        forward=(_of_tensor(name, "reduce_scatter", whole, beside),),
        backward_input=(_of_tensor(name, "all_gather", whole, beside),),
    )


def _of_tensor(name: str, operation: Operation, whole: float, beside: Literal["gemm", ""] = "gemm") -> Collective:
    return Collective(name=name, operation=operation, group="tensor", bytes=whole, beside=beside)
