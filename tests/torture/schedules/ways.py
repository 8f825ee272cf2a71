"""Every kernel as plain Python, compiled, or both at once and compared: whatever its module would choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from pipeplan.foundation.kernels import Argument, Kernel, Output
from tests.torture import Found

Call = Callable[[Kernel, Sequence[Argument], Sequence[Output]], Any]


@contextmanager
def run_by(call: Call) -> Iterator[None]:
    """All kernels run by a function of the kernel, its inputs and its outputs."""

    def called(kernel: Kernel, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
        return call(kernel, inputs, outputs)

    with patch.object(Kernel, "__call__", called):
        yield


def as_python(kernel: Kernel, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
    """On lists."""
    return kernel.in_python(inputs, outputs)


def as_machine_code(kernel: Kernel, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
    """By the library, without which nothing can be compared."""
    assert kernel.entry is not None, f"{kernel.function.__name__} does not run as machine code"
    return kernel.entry(inputs, outputs)


def both_ways(kernel: Kernel, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
    """Both, from the same arrays. Raises Found unless they write the same bytes."""
    others = [_copied(output) for output in outputs]
    answer = as_python(kernel, inputs, outputs)
    again = as_machine_code(kernel, inputs, others)
    name = kernel.function.__qualname__
    if not _same_number(answer, again):
        raise Found(f"{name} gives {answer} as Python and {again} compiled")
    for number, (one, other) in enumerate(zip(outputs, others, strict=True)):
        where = _difference(one, other)
        if where is not None:
            raise Found(f"{name} writes other things into its output {number} compiled than as Python: {where}")
    return answer


def _copied(output: Output) -> Output:
    if isinstance(output, tuple):
        parts = [_copied(part) for part in output]
        return type(output)(*parts) if hasattr(output, "_fields") else tuple(parts)
    return output.copy()


def _same_number(one: Any, other: Any) -> bool:
    return one is None if other is None else np.asarray(one, float).tobytes() == np.asarray(other, float).tobytes()


def _difference(one: Output, other: Output) -> str | None:
    """Where two outputs differ, in words."""
    if isinstance(one, tuple):
        names = getattr(one, "_fields", range(len(one)))
        parts = ((name, _difference(*both)) for name, both in zip(names, zip(one, other, strict=True), strict=True))
        return next((f"{name}: {where}" for name, where in parts if where is not None), None)
    assert not isinstance(other, tuple)
    if one.tobytes() == other.tobytes():
        return None
    place = tuple(int(indices[0]) for indices in np.nonzero((one != other) & ~((one != one) & (other != other))))
    return f"at {place}, {one[place]} and {other[place]}" if place and len(place) == one.ndim else "the sign of a zero"
