"""Which peak of a data sheet a precision is counted against."""

from __future__ import annotations

from pipeplan.hardware import Gpu
from pipeplan.workload import Precision

_FORMATS: dict[Precision, str] = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}


def format_peak(gpu: Gpu, precision: Precision) -> float:
    """FLOP/s of the format that products run in; the next wider one's where the GPU has no units for it."""
    for form in (_FORMATS[precision], "fp8", "bf16"):
        if form in gpu.peak and (form != "fp8" or _FORMATS[precision] != "bf16"):
            return gpu.peak[form]
    return gpu.peak["bf16"]
