"""Time of a kernel on a GPU: a roofline whose efficiency depends on the size of the work.

A product is divided into tiles that the multiprocessors process in waves. The last wave may be partly empty, and each tile's
pipeline is filled and drained once. Small products, short inner dimensions and few rows therefore lose time as on real GPUs,
without a table of shapes. Constants: :mod:`pipeplan.extensions.planning.hardware.efficiency`.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil

from pipeplan.extensions.planning.hardware.efficiency import BYTES, FORMATS, Generation, generation
from pipeplan.extensions.planning.hardware.sheets import Gpu

_KEPT = 1 << 16

_SPLIT = 1024
"""Minimum steps of the inner dimension per multiprocessor if a product of few tiles is split along it."""


_USUAL_DIM = 128
"""Dimension per head of the measured attention kernels."""


@lru_cache(_KEPT)
def gemm_time(
    gpu: Gpu,
    rows: float,
    columns: float,
    inner: float,
    precision: str = "bf16",
    *,
    copies: int = 1,
    accumulates: bool = False,
) -> float:
    """Return the seconds of ``copies`` equal products of (rows, inner) with (inner, columns) in one kernel.

    Parameters
    ----------
    precision
        ``bf16``, ``fp16``, ``fp8``, ``mxfp8`` or ``nvfp4``; the result has 16 bits.
    accumulates
        Whether the result is added to a 32-bit one.
    """
    return _product_time(gpu, (rows, columns, inner), copies, precision=precision, accumulates=accumulates)


@lru_cache(_KEPT)
def grouped_gemm_time(
    gpu: Gpu,
    groups: float,
    rows: float,
    columns: float,
    inner: float,
    *,
    precision: str = "bf16",
    accumulates: bool = False,
    weight_gradient: bool = False,
) -> float:
    """Return the seconds of the products of ``groups`` experts, which share ``rows`` tokens evenly, in one kernel.

    For a weight gradient (``weight_gradient``), each expert's product has the size of its weights, and its share of the
    tokens is the inner dimension.
    """
    share = rows / groups
    shape = (inner, columns, share) if weight_gradient else (share, columns, inner)
    # A single expert's product reaches the full rate, those of many experts ``grouped`` of it.
    beside = 1.0 - (1.0 - generation(gpu.generation).grouped) * (1.0 - 1.0 / max(1.0, groups))
    return _product_time(gpu, shape, groups, precision=precision, accumulates=accumulates, beside=beside)


def _product_time(
    gpu: Gpu,
    shape: tuple[float, float, float],
    copies: float,
    *,
    precision: str,
    accumulates: bool,
    beside: float = 1.0,
) -> float:
    """Return the seconds of ``copies`` products of one shape, whose rate is ``beside`` of that of a single one."""
    rows, columns, inner = shape
    if rows * columns * inner * copies <= 0:
        return 0.0
    kernels = generation(gpu.generation)
    form = _format(gpu, kernels, precision)
    rate = gpu.peak[form] * kernels.gemm[form] * beside * gpu.sustained * (kernels.accumulating if accumulates else 1.0)
    result = 8.0 if accumulates else 2.0
    moved = copies * (BYTES[form] * (rows * inner + inner * columns) + result * rows * columns)
    compute = _tiled(gpu, kernels, shape, copies) / rate
    return max(compute, moved / (gpu.memory_bandwidth * kernels.memory)) + kernels.kernel


@lru_cache(_KEPT)
def attention_time(
    gpu: Gpu,
    *,
    queries: float,
    keys: float,
    heads: float,
    kv_heads: float,
    score_dim: float,
    value_dim: float,
    fused: bool = True,
    backward: bool = False,
    gathered: float = 0.0,
    precision: str = "bf16",
) -> float:
    """Return the seconds of scores and values of all heads.

    Parameters
    ----------
    queries
        Number of query tokens over all sequences.
    keys
        Mean number of keys that each query sees.
    score_dim, value_dim
        Dimensions per head.
    fused
        Whether one kernel does everything, so that scores never reach memory; otherwise there are two batched products (four
        backward), and softmax and dropout are separate passes.
    gathered
        Bytes of keys and values that each query reads on its own, because they were selected for it.
    precision
        Format of a fused core's operands. In 8 bits, products take less time, but exponentials do not.
    """
    if queries * keys * heads <= 0:
        return 0.0
    kernels = generation(gpu.generation)
    if not fused:
        copies = max(1, round(heads * queries / keys))
        by_scores = gemm_time(gpu, keys, keys, score_dim, copies=copies)
        by_values = gemm_time(gpu, keys, value_dim, keys, copies=copies)
        if not backward:
            return by_scores + by_values
        back_to_inputs = 2 * gemm_time(gpu, keys, score_dim, keys, copies=copies)
        return gemm_time(gpu, keys, keys, value_dim, copies=copies) + by_values + back_to_inputs
    core = kernels.backward if backward else kernels.forward
    products = (3 * score_dim + 2 * value_dim) if backward else (score_dim + value_dim)
    flops = 2.0 * queries * keys * heads * products
    rate = gpu.peak["bf16"] * gpu.sustained * core.reach * keys / (keys + core.half_keys)
    # Exponentials take the same time at any dimension; ``reach`` holds for the usual 128.
    dim = (score_dim + value_dim) / 2
    faster = gpu.peak["bf16"] / gpu.peak[_format(gpu, kernels, precision)]
    rate *= dim / (faster * dim + core.half_dim) * (_USUAL_DIM + core.half_dim) / _USUAL_DIM
    tail = 2.0 * core.block * 2.0 * keys * products * gpu.multiprocessors
    launches = passes = 2 if backward else 1
    moved = passes * 2.0 * (heads * queries * (score_dim + value_dim) + kv_heads * queries * (score_dim + value_dim))
    moved += gathered
    return max((flops + tail) / rate, moved / (gpu.memory_bandwidth * kernels.memory)) + launches * kernels.kernel


def memory_time(gpu: Gpu, size: float, kernels: int = 1, flops: float = 0.0) -> float:
    """Return the seconds of work that reads and writes ``size`` bytes in ``kernels`` kernels.

    ``flops`` are those of small products between the reads and writes of a recurrence's kernels, which do not overlap.
    """
    if size <= 0:
        return 0.0
    have = generation(gpu.generation)
    products = flops / (gpu.peak["bf16"] * have.small)
    return size / (gpu.memory_bandwidth * have.memory) + kernels * have.kernel + products


def optimizer_time(gpu: Gpu, parameters: float, *, bytes_each: float = 30.0) -> float:
    """Return the seconds of an optimizer step on a rank's share of the parameters.

    Parameters
    ----------
    parameters
        Number of parameters whose state this GPU holds.
    bytes_each
        Bytes read and written per parameter: 32-bit Adam reads gradient, weight and two moments, and writes the last three
        and a 16-bit weight: 4 + 4 + 8 + 4 + 8 + 2.
    """
    return memory_time(gpu, parameters * bytes_each)


def host_time(gpu: Gpu, size: float) -> float:
    """Return the seconds of a copy of ``size`` bytes to the host, or back."""
    return size / gpu.host_bandwidth


def _format(gpu: Gpu, kernels: Generation, precision: str) -> str:
    """Return the widest supported format for a precision: a GPU without units for it uses more bits."""
    for form in ("fp4", "fp8")[("fp4", "fp8").index(FORMATS[precision]) :] if FORMATS[precision] != "bf16" else ():
        if form in gpu.peak and form in kernels.gemm:
            return form
    return "bf16"


def _tiled(gpu: Gpu, kernels: Generation, shape: tuple[float, float, float], copies: float) -> float:
    """Return the FLOPs of a product with the best tile and split, as if all multiprocessors were busy throughout."""
    rows, columns, inner = shape
    best = float("inf")
    units = gpu.multiprocessors
    for height, width, reach in kernels.tiles:
        tiles = ceil(rows / height) * ceil(columns / width) * copies
        # Split the inner dimension ``depth`` ways if there are fewer tiles than multiprocessors.
        depth = max(1.0, min(units / tiles, inner / _SPLIT))
        # Splitting fills at most one wave; a rounding error must not begin another.
        waves = min(tiles * depth, max(tiles, units)) / units
        whole = ceil(waves)
        cost = (waves + kernels.quantised * (whole - waves)) * units
        cost *= 2.0 * height * width * (inner / depth + kernels.fill)
        best = min(best, cost / reach)
    return best
