"""Shapes of messages between stages if microbatches differ in length.

PyTorch looks ahead with one microbatch and expects every other one to have its shapes. Here it looks ahead with the shortest
and with the longest one: a dimension that differs between the two grows with the length, and the shapes of all other lengths
follow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from pipeplan.foundation.errors import InputError


@dataclass(frozen=True, slots=True)
class LookAhead:
    """Result of PyTorch's look-ahead with a microbatch of one length.

    Attributes
    ----------
    length
        Length of the microbatch.
    inputs, gradients
        Metadata of the tensors that a stage receives forward and backward; None for what it does not receive.
    whole
        PyTorch's record of the metadata of all tensors.
    """

    length: int
    inputs: tuple[Any, ...]
    gradients: tuple[Any, ...]
    whole: Any

    @classmethod
    def of(cls, stage: Any, length: int) -> LookAhead:
        """Return what a stage has found."""
        return cls(length, _metas(stage.args_recv_info), _metas(stage.grad_recv_info), replace(stage._stage_meta))


def _metas(infos: dict[int, tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(info.tensor_meta for info in infos.get(0, ()))


def expect(stage: Any, short: LookAhead, long: LookAhead, lengths: list[int]) -> dict[int, Any]:
    """Make a stage expect messages of microbatches of these lengths, and return the metadata of each microbatch.

    Raises
    ------
    InputError
        If a dimension does not grow evenly with the length, or stages send DTensors.
    """
    # What the first stage takes and the last one returns are no messages.
    names: list[str] = [] if stage.is_first else ["inputs", "input_grads"]
    names += [] if stage.is_last else ["outputs", "output_grads"]
    received = [
        *(() if stage.is_first else [(stage.args_recv_info, short.inputs, long.inputs)]),
        (stage.grad_recv_info, short.gradients, long.gradients),
    ]
    whole = {}
    for microbatch, length in enumerate(lengths):
        at = short.length, long.length, length
        for infos, shorts, longs in received:
            for info, meta in zip(infos.get(microbatch, ()), _between(shorts, longs, at) or (), strict=True):
                info.tensor_meta = meta
        metas = {name: _between(getattr(short.whole, name), getattr(long.whole, name), at) for name in names}
        whole[microbatch] = replace(long.whole, **metas)
    return whole


def _between(shorts: Any, longs: Any, lengths: tuple[int, int, int]) -> tuple[Any, ...] | None:
    """Return the metadata of tensors of the last length, given those of the first two."""
    if shorts is None or longs is None:
        return None
    return tuple(
        None if short is None or long is None else _one_between(short, long, *lengths)
        for short, long in zip(shorts, longs, strict=True)
    )


def _one_between(short: Any, long: Any, shortest: int, longest: int, length: int) -> Any:
    if hasattr(long, "placements"):
        raise InputError("microbatches of different lengths need plain tensors between stages, not DTensors")
    sizes = []
    for least, most in zip(short.shape, long.shape, strict=True):
        more = (most - least) * (length - shortest)
        if more % (longest - shortest):
            raise InputError(
                f"a stage has {least} and {most} entries for microbatches of length {shortest} and {longest}: their number "
                "must grow evenly with the length",
                field="inputs",
            )
        sizes.append(least + more // (longest - shortest))
    # Messages are contiguous; the strides of another length would make a view of the wrong tensor.
    strides = torch.empty(sizes, device="meta").stride()
    return replace(short, shape=torch.Size(sizes), stride=strides)
