"""Time single kernels of given sizes in PyTorch, on a GPU or a CPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from pipeplan.extensions.planning.workload import AttentionCore, Gemm, GroupedGemm, MemoryPass, Work
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.extensions import required_service

# Its parts check that PyTorch is installed when they are loaded.
choose_device, clock_for = (required_service("training", name) for name in ("choose_device", "clock_for"))

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

SAMPLE = 2e-3
"""Least duration of a sample in seconds, long enough to make launches and the clock's own time negligible."""

_MOST_RUNS = 1000


def kernel_timer(
    device: str = "auto", *, precision: str = "bf16", threads: int = 1, name: str = "", samples: int = 5
) -> KernelTimer:
    """Return a timer for this host's GPU or CPU (``device`` cpu, cuda or auto), for bf16 or fp16 products.

    ``name`` is the required GPU, such as ``h100-sxm``; empty: any. The median of the samples counts.

    Raises InputError if there is no GPU or another one than required, or the precision is unsupported.
    """
    if precision not in ("bf16", "fp16"):
        raise InputError(f"invalid precision '{precision}': expected bf16 or fp16", field="precision")
    chosen = torch.device(choose_device(device, 1))
    if name:
        _require(chosen, name)
    if chosen.type == "cpu":
        torch.set_num_threads(threads)
    return KernelTimer(chosen, dtype=torch.float16 if precision == "fp16" else torch.bfloat16, samples=samples)


def _require(device: torch.device, name: str) -> None:
    """Require that a device is the GPU of this name: its first word (h100, mi300x, gb200) is in the driver's name for it."""
    if device.type != "cuda":
        raise InputError(
            f"calibrating {name} needs a GPU, but PyTorch finds none; to calibrate a CPU, pass device cpu and a file that "
            "describes it",
            field="gpu",
        )
    gpu, word = torch.cuda.get_device_name(device), name.split("-", maxsplit=1)[0]
    if word.lower() not in re.split(r"[\W_]+", gpu.lower()):
        raise InputError(f"this machine's GPU is {gpu}, not {name}: pass the GPU that is to be measured", field="gpu")


class KernelTimer:
    """Timer of single kernels on ``cpu`` or a GPU of PyTorch: the median of a number of samples."""

    def __init__(self, device: torch.device, *, dtype: torch.dtype = torch.bfloat16, samples: int = 5) -> None:
        self._device = device
        self._dtype = dtype
        self._samples = samples
        self._clock = clock_for(device)

    @property
    def described(self) -> str:
        """Return the name of the device and PyTorch's version."""
        on_gpu = self._device.type == "cuda"
        name = torch.cuda.get_device_name(self._device) if on_gpu else f"CPU, {torch.get_num_threads()} thread(s)"
        return f"{name}, PyTorch {torch.__version__}"

    def __call__(self, work: Work) -> float:
        """Return the seconds of one kernel, or of one pass over memory. Raises InputError if it does not fit into memory."""
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
        """Return the seconds of a cross entropy of float32 logits, forward and backward. Raises InputError like a kernel."""
        with _fitting("loss"):
            logits = self._random(_whole(tokens), _whole(vocabulary)).requires_grad_()
            targets = torch.randint(_whole(vocabulary), (_whole(tokens),), device=self._device)

            def run() -> None:
                torch.nn.functional.cross_entropy(logits.float(), targets).backward()
                logits.grad = None

            return self._timed(run)

    def optimizer(self, parameters: float) -> float:
        """Return the seconds of a fused AdamW step on float32 parameters. Raises InputError like a kernel."""
        with _fitting("optimizer"):
            weight = torch.zeros(_whole(parameters), device=self._device, requires_grad=True)
            # A gradient must be there for the optimizer to update the weight.
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
        """Time causal attention: its forward, or its backward without the forward."""
        # Causal attention sees half of the keys on average.
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
        # The graph is retained, so that only backwards are timed.
        output = forward()
        gradient = torch.ones_like(output)
        return self._timed(lambda: torch.autograd.grad(output, (query, key, values), gradient, retain_graph=True))

    def _pass(self, work: MemoryPass) -> float:
        """Time a pass over memory that reads half of the bytes and writes the other half, in ``work.kernels`` kernels."""
        numbers = _whole(work.bytes / (2 * self._dtype.itemsize * work.kernels))
        read = self._random(numbers)
        write = torch.empty_like(read)

        def run() -> None:
            for _ in range(work.kernels):
                torch.neg(read, out=write)

        return self._timed(run)

    def _random(self, *shape: int) -> Tensor:
        """Return random numbers: products of zeros draw less power and run faster."""
        return torch.randn(shape, device=self._device, dtype=self._dtype)

    def _timed(self, run: Callable[[], Any]) -> float:
        """Return the seconds of one run: the median of samples that are long enough."""
        # The first run loads and tunes the kernel; the second tells how many fit into a sample.
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
    """Raise InputError if the block runs out of memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, (torch.OutOfMemoryError, MemoryError)) and "allocate memory" not in str(error):
            raise
        raise InputError(
            f"not enough device memory to measure the {what}: use a shorter sequence", field="sequence"
        ) from None


def _whole(size: float) -> int:
    return max(1, round(size))
