"""How long a kernel of a given size takes in PyTorch, on a GPU or a CPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch
from torch import Tensor

from pipeplan.errors import InputError
from pipeplan.runtime.clocks import clock_for
from pipeplan.runtime.group import choose_device
from pipeplan.workload import AttentionCore, Gemm, GroupedGemm, MemoryPass, Work

SAMPLE = 2e-3
"""Seconds that one sample lasts at least: launches and the clock's own time vanish in it."""

_MOST_RUNS = 1000


def kernel_timer(
    device: str = "auto", *, precision: str = "bf16", threads: int = 1, name: str = "", samples: int = 5
) -> KernelTimer:
    """Return a timer for this host's GPU, or its CPU.

    Parameters
    ----------
    device
        ``cpu``, ``cuda`` or ``auto``: cuda where there is a GPU.
    precision
        bf16 or fp16.
    threads
        Of the CPU.
    name
        Of the GPU that it should be, such as ``h100-sxm``; empty: any.

    Raises
    ------
    InputError
        For a GPU that is not there, another one than it should be, and a precision that kernels are not measured in.
    """
    if precision not in ("bf16", "fp16"):
        raise InputError(f"kernels are measured in bf16 or fp16, not {precision}", field="precision")
    chosen = torch.device(choose_device(device, 1))
    if name:
        _require(chosen, name)
    if chosen.type == "cpu":
        torch.set_num_threads(threads)
    return KernelTimer(chosen, dtype=torch.float16 if precision == "fp16" else torch.bfloat16, samples=samples)


def _require(device: torch.device, name: str) -> None:
    """Whether a device is the GPU of this name: its first word (h100, mi300x, gb200) is in what the driver calls it."""
    if device.type != "cuda":
        raise InputError(
            f"calibrating {name} needs one, and PyTorch finds no GPU here; a CPU is calibrated with the device cpu and a "
            "file that describes it",
            field="gpu",
        )
    gpu, word = torch.cuda.get_device_name(device), name.split("-", maxsplit=1)[0]
    if word.lower() not in re.split(r"[\W_]+", gpu.lower()):
        raise InputError(f"the GPU here is {gpu}, not {name}: name the one that is measured", field="gpu")


class KernelTimer:
    """Measures kernels one by one.

    Parameters
    ----------
    device
        ``cpu`` or a GPU of PyTorch.
    dtype
        Of products and activations.
    samples
        Of which the median counts.
    """

    def __init__(self, device: torch.device, *, dtype: torch.dtype = torch.bfloat16, samples: int = 5) -> None:
        self._device = device
        self._dtype = dtype
        self._samples = samples
        self._clock = clock_for(device)

    @property
    def described(self) -> str:
        """The device and PyTorch's version."""
        on_gpu = self._device.type == "cuda"
        name = torch.cuda.get_device_name(self._device) if on_gpu else f"CPU, {torch.get_num_threads()} thread(s)"
        return f"{name}, PyTorch {torch.__version__}"

    def __call__(self, work: Work) -> float:
        """Seconds of one kernel, or the kernels of one pass.

        Raises
        ------
        InputError
            Where it does not fit into the device's memory.
        """
        with _fitting(work.name):
            match work:
                case Gemm():
                    return self._product(work)
                case GroupedGemm():
                    return self._grouped(work)
                case AttentionCore():
                    return self._attention(work)
                case MemoryPass():
                    return self._pass(work)
                case _:
                    raise InputError(f"one GPU alone has no {work.name}")

    def loss(self, tokens: float, vocabulary: float) -> float:
        """Seconds of the cross entropy of logits in 32 bits, forward and backward. Raises as a kernel does."""
        with _fitting("loss"):
            logits = self._random(_whole(tokens), _whole(vocabulary)).requires_grad_()
            targets = torch.randint(_whole(vocabulary), (_whole(tokens),), device=self._device)

            def run() -> None:
                torch.nn.functional.cross_entropy(logits.float(), targets).backward()
                logits.grad = None

            return self._timed(run)

    def optimizer(self, parameters: float) -> float:
        """Seconds of a step of Adam, in one kernel, on parameters in 32 bits. Raises as a kernel does."""
        with _fitting("optimizer"):
            weight = torch.zeros(_whole(parameters), device=self._device, requires_grad=True)
            weight.grad = torch.ones_like(weight)
            adam = torch.optim.AdamW([weight], fused=True)
            return self._timed(adam.step)

    def _product(self, work: Gemm) -> float:
        rows, columns, inner = map(_whole, (work.rows, work.columns, work.inner))
        if work.copies > 1:
            left, right = self._random(work.copies, rows, inner), self._random(work.copies, inner, columns)
            return self._timed(lambda: torch.bmm(left, right))
        left, right = self._random(rows, inner), self._random(inner, columns)
        return self._timed(lambda: torch.mm(left, right))

    def _grouped(self, work: GroupedGemm) -> float:
        groups = _whole(work.groups)
        share, columns, inner = _whole(work.rows / groups), _whole(work.columns), _whole(work.inner)
        if work.weight_gradient:
            pairs = [(self._random(inner, share), self._random(share, columns)) for _ in range(groups)]
        else:
            pairs = [(self._random(share, inner), self._random(inner, columns)) for _ in range(groups)]
        return self._timed(lambda: [torch.mm(left, right) for left, right in pairs])

    def _attention(self, work: AttentionCore) -> float:
        """Causal; of the backward, what it adds to a forward."""
        sequence = _whole(2 * work.keys)
        batch = _whole(work.queries / sequence)
        heads, kv_heads = _whole(work.heads), _whole(work.kv_heads)
        score, value = _whole(work.score_dim), _whole(work.value_dim)
        query = self._random(batch, heads, sequence, score)
        key = self._random(batch, kv_heads, sequence, score)
        values = self._random(batch, kv_heads, sequence, value)

        def forward() -> Tensor:
            return torch.nn.functional.scaled_dot_product_attention(
                query, key, values, is_causal=True, enable_gqa=kv_heads != heads
            )

        if not work.backward:
            with torch.no_grad():
                return self._timed(forward)
        for tensor in (query, key, values):
            tensor.requires_grad_()
        output = forward()
        gradient = torch.ones_like(output)
        return self._timed(lambda: torch.autograd.grad(output, (query, key, values), gradient, retain_graph=True))

    def _pass(self, work: MemoryPass) -> float:
        """Half of the bytes are read and half written, in as many kernels."""
        numbers = _whole(work.bytes / (2 * self._dtype.itemsize * work.kernels))
        read = self._random(numbers)
        write = torch.empty_like(read)

        def run() -> None:
            for _ in range(work.kernels):
                torch.neg(read, out=write)

        return self._timed(run)

    def _random(self, *shape: int) -> Tensor:
        """Real numbers: products of zeros draw less power and run faster."""
        return torch.randn(shape, device=self._device, dtype=self._dtype)

    def _timed(self, run: Callable[[], Any]) -> float:
        """Seconds of one run, the median of some samples that are long enough."""
        run()
        once = self._sample(run, 1)
        runs = max(1, min(_MOST_RUNS, round(SAMPLE / max(once, 1e-9))))
        return median(self._sample(run, runs) for _ in range(self._samples))

    def _sample(self, run: Callable[[], Any], runs: int) -> float:
        self._clock.restart()
        start = self._clock.mark()
        for _ in range(runs):
            run()
        first, last = self._clock.times([start, self._clock.mark()]).tolist()
        return float(last - first) / 1e9 / runs


@contextmanager
def _fitting(what: str) -> Iterator[None]:
    """Turns running out of memory into a sentence."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, (torch.OutOfMemoryError, MemoryError)) and "allocate memory" not in str(error):
            raise
        raise InputError(
            f"the device has not enough memory to measure the {what}: take a shorter sequence", field="sequence"
        ) from None


def _whole(size: float) -> int:
    return max(1, round(size))
