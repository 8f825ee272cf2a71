"""Split a batch into microbatches, and join their outputs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Literal

import torch
from torch import Tensor

from pipeplan.foundation.errors import InputError

Shapes = tuple[Any, ...]
"""Shapes and dtypes of the tensors of a microbatch, nested as the microbatch is."""


Uneven = Literal["refused", "padded", "kept"]
"""Handling of a batch that does not divide evenly: an error; microbatches of one size, padded with copies of their last
sample; or microbatches of two sizes."""


def split(
    batch: Any,
    microbatches: int,
    *,
    what: str,
    device: torch.device,
    uneven: Uneven = "refused",
    varying: bool = False,
) -> list[Any]:
    """Return the microbatches of a batch, on a device.

    Parameters
    ----------
    batch
        A list of microbatches; or a tensor, or a tuple or dictionary of tensors, to be cut along the first dimension. Other
        values, and tensors without dimensions, go into every microbatch.
    microbatches
        Number of microbatches.
    what
        Name of the batch in error messages.
    device
        Device to move the tensors to.
    uneven
        Handling of a first dimension that is not divisible by the number of microbatches.
    varying
        True if the microbatches of a list may differ in shape.

    Raises
    ------
    InputError
        If the list has another length, the batch is empty or uneven and that is refused, or microbatches of a list differ in
        shape.
    """
    if isinstance(batch, list):
        if len(batch) != microbatches:
            raise InputError(
                f"{what} are a list of {len(batch)}, but the schedule has {microbatches} microbatches: pass as many, or the "
                "whole batch as a tensor",
                field="microbatches",
            )
        parts = [_moved(part, device) for part in batch]
        for number, part in enumerate(parts):
            if not varying and shapes(part) != shapes(parts[0]):
                raise InputError(
                    f"microbatch {number} of {what} has other shapes or types than microbatch 0: pad it, or create the "
                    "pipeline with varying_lengths"
                )
        return parts
    return _cut(_moved(batch, device), microbatches, what, uneven)


def samples(batch: Any) -> int:
    """Return the length of a batch's first tensor; 0 for a list of microbatches, or without tensors."""
    if isinstance(batch, list):
        return 0
    return next((len(tensor) for tensor in tensors(batch) if tensor.ndim), 0)


def sizes(size: int, microbatches: int) -> list[int]:
    """Return the number of samples of each microbatch of an uneven batch: the first ones have one more."""
    return [size // microbatches + (number < size % microbatches) for number in range(microbatches)]


def without_padding(part: Any, size: int, padded: int) -> Any:
    """Return the first ``size`` samples of a microbatch's tensors of ``padded`` samples; other values unchanged."""
    if isinstance(part, Tensor):
        return part[:size] if part.ndim and len(part) == padded else part
    if isinstance(part, tuple):
        return tuple(without_padding(entry, size, padded) for entry in part)
    if isinstance(part, dict):
        return {name: without_padding(entry, size, padded) for name, entry in part.items()}
    return part


def shapes(part: Any) -> Shapes:
    """Return the shapes and dtypes of a microbatch's tensors."""
    if isinstance(part, Tensor):
        return (tuple(part.shape), part.dtype)
    if isinstance(part, tuple | list):
        return tuple(shapes(entry) for entry in part)
    if isinstance(part, dict):
        return tuple((name, shapes(entry)) for name, entry in sorted(part.items()))
    return ()


def tensors(part: Any) -> Iterator[Tensor]:
    """Yield the tensors of a microbatch."""
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, tuple | list | dict):
        for entry in part.values() if isinstance(part, dict) else part:
            yield from tensors(entry)


Sizes = tuple[int | torch.dtype | None, ...]
"""Types and sizes of the tensors of all microbatches; None for a size that differs between them."""


def sizes_of(parts: list[Any]) -> tuple[Sizes, list[tuple[Any, ...]]]:
    """Return types and sizes that all microbatches share, and those of each microbatch.

    Raises
    ------
    InputError
        If a microbatch has another number of tensors or dimensions, or other types, than the first.
    """
    rows = [tuple(size for tensor in tensors(part) for size in (tensor.dtype, *tensor.shape)) for part in parts]
    kinds = [tuple(size if isinstance(size, torch.dtype) else 0 for size in row) for row in rows]
    for number, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise InputError(
                f"microbatch {number} has other types, or another number of tensors or dimensions, than microbatch 0",
                field="inputs",
            )
    columns = [column[0] if len(set(column)) == 1 else None for column in zip(*rows, strict=True)]
    return tuple(columns), rows


def in_words(tensor_shapes: Shapes) -> str:
    """Return the shapes of a microbatch in words."""
    if len(tensor_shapes) == 2 and isinstance(tensor_shapes[1], torch.dtype):
        return f"{tuple(tensor_shapes[0])} of {str(tensor_shapes[1]).removeprefix('torch.')}"
    return ", ".join(words for part in tensor_shapes if isinstance(part, tuple) and (words := in_words(part)))


def joined(parts: list[Any]) -> Any:
    """Undo :func:`split`. Values that cannot be joined stay a list with one entry per microbatch."""
    first = parts[0]
    if isinstance(first, Tensor) and first.ndim and len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(parts)
    if isinstance(first, tuple):
        return tuple(joined(list(column)) for column in zip(*parts, strict=True))
    if isinstance(first, dict):
        return {name: joined([part[name] for part in parts]) for name in first}
    return parts


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, tuple):
        return tuple(_moved(entry, device) for entry in value)
    if isinstance(value, dict):
        return {name: _moved(entry, device) for name, entry in value.items()}
    return value


def _cut(value: Any, microbatches: int, what: str, uneven: Uneven) -> list[Any]:
    if isinstance(value, Tensor) and value.ndim:
        return _cut_tensor(value, microbatches, what, uneven)
    if isinstance(value, tuple):
        columns = [_cut(entry, microbatches, what, uneven) for entry in value]
        return [tuple(column[number] for column in columns) for number in range(microbatches)]
    if isinstance(value, dict):
        cut = {name: _cut(entry, microbatches, f"{what} '{name}'", uneven) for name, entry in value.items()}
        return [{name: parts[number] for name, parts in cut.items()} for number in range(microbatches)]
    return [value] * microbatches


def _cut_tensor(tensor: Tensor, microbatches: int, what: str, uneven: Uneven) -> list[Tensor]:
    size = len(tensor)
    if size and size % microbatches == 0:
        # chunk returns views: nothing is copied.
        return list(tensor.chunk(microbatches))
    if uneven == "refused" or not size:
        raise InputError(
            f"{what} hold {size} samples, which do not divide into {microbatches} microbatches of one size: pass a "
            f"multiple of {microbatches}",
            field="microbatches",
        )
    if uneven == "kept":
        return list(tensor.split(sizes(size, microbatches)))
    stops = list(accumulate(sizes(size, microbatches)))
    starts = [0, *stops[:-1]]
    width = stops[0]
    # Beyond its end, a microbatch repeats its last sample; one without samples, the last of the batch.
    return [
        tensor[torch.arange(start, start + width).clamp(max=stop - 1).to(tensor.device)]
        for start, stop in zip(starts, stops, strict=True)
    ]
