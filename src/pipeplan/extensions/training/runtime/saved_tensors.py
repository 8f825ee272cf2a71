"""Saved tensors of a forward: moving their bytes off the device and back, or computing them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from weakref import WeakSet, WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from pipeplan.extensions.training.runtime.microbatches import tensors


class Piece:
    """Bytes of one storage: on the device, on the host, or on both while they are copied.

    Several saved tensors may be views of one storage: they leave and come back together, once.

    Attributes
    ----------
    device, host
        The bytes on the device and on the host, shape (bytes,); None where there are none.
    place, bytes
        The device, and the number of bytes.
    """

    def __init__(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        self.device: Tensor | None = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
        self.host: Tensor | None = None
        self.place, self.bytes = tensor.device, storage.nbytes()
        self.saved: WeakSet[_Saved] = WeakSet()

    def leave(self) -> None:
        """Release the bytes on the device, once they are on the host."""
        for saved in self.saved:
            saved.leave()
        self.device = None


class _Saved:
    """Stand-in for a saved tensor in autograd's graph."""

    __slots__ = ("__weakref__", "_geometry", "_tensor", "_version", "piece")

    def __init__(self, tensor: Tensor, piece: Piece) -> None:
        # Autograd's own tensor would hold the graph that holds this.
        self._tensor: Tensor | None = tensor.detach()
        self._version = tensor._version
        self._geometry = (tensor.dtype, tensor.storage_offset(), tensor.shape, tensor.stride())
        self.piece = piece
        piece.saved.add(self)

    def leave(self) -> None:
        self._unchanged()
        self._tensor = None

    def tensor(self) -> Tensor:
        if self._tensor is not None:
            return self._unchanged()
        if self.piece.device is None:
            raise RuntimeError(
                "the activations of this backward are in the host's memory: its RELOAD must come before it"
            )
        dtype, offset, shape, stride = self._geometry
        bytes_ = self.piece.device
        empty = torch.empty(0, dtype=dtype, device=bytes_.device)
        return empty.set_(bytes_.untyped_storage(), offset, shape, stride)

    def _unchanged(self) -> Tensor:
        """Return the tensor if it was not changed in place; autograd does not check packed tensors."""
        assert self._tensor is not None
        if self._tensor._version != self._version:
            raise RuntimeError(
                f"a tensor of shape {tuple(self._tensor.shape)} that the backward needs was changed in place after it was "
                "saved: compute it anew instead"
            )
        return self._tensor


class SavedTensors:
    """Tensors that autograd saves in one forward, except those that stay on the device: weights, buffers, the batch.

    It keeps no tensor alive itself: a backward frees the tensors that it has used, as always.

    Parameters
    ----------
    stays
        Function that returns whether a tensor's storage stays on the device.
    """

    def __init__(self, stays: Callable[[Tensor], bool]) -> None:
        self._stays = stays
        self._pieces: WeakValueDictionary[int, Piece] = WeakValueDictionary()

    @property
    def pieces(self) -> list[Piece]:
        """Return each storage once, in the order in which they were saved."""
        return list(self._pieces.values())

    @property
    def device_bytes(self) -> int:
        """Return the number of these bytes on the device."""
        return sum(piece.bytes for piece in self.pieces if piece.device is not None)

    @property
    def host_bytes(self) -> int:
        """Return the number of these bytes in the host's memory."""
        return sum(piece.bytes for piece in self.pieces if piece.host is not None)

    def holds(self, tensor: Tensor) -> bool:
        """Return whether a tensor's storage is among the pieces."""
        return storage_of(tensor) in self._pieces

    def saving(self) -> AbstractContextManager[Any]:
        """Record the tensors that the forward in the block saves."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack)

    def _pack(self, tensor: Tensor) -> Tensor | _Saved:
        if not _is_plain(tensor) or self._stays(tensor):
            return tensor.detach()
        # Views of one storage share its piece, so its bytes are copied once.
        storage = storage_of(tensor)
        piece = self._pieces.get(storage)
        if piece is None:
            piece = self._pieces[storage] = Piece(tensor)
        return _Saved(tensor, piece)


def _unpack(saved: Tensor | _Saved) -> Tensor:
    return saved.tensor() if isinstance(saved, _Saved) else saved


class Staying:
    """Tensors of a stage that stay on its device: its weights in every form, its buffers, and the batch."""

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self._module, self._device = module, device
        self._weights: set[int] = set()
        self._batch: set[int] = set()

    def before(self, batch: Any) -> None:
        """Prepare for a forward, or its loss, with this part of the batch. Weights that FSDP shards are gathered now."""
        weights = (*self._module.parameters(), *self._module.buffers())
        self._weights.update(storage_of(_local(weight)) for weight in weights)
        self._batch = {storage_of(_local(tensor)) for tensor in tensors(batch)}

    def __call__(self, tensor: Tensor) -> bool:
        """Return whether a tensor stays on the device."""
        if tensor.device != self._device or not tensor.untyped_storage().nbytes():
            return True
        storage = storage_of(tensor)
        return storage in self._weights or storage in self._batch or self._is_weight(tensor)

    def _is_weight(self, tensor: Tensor) -> bool:
        """Return whether a tensor is computed from one weight alone, as a weight that ``autocast`` casts once per step."""
        # Follow autograd's graph as long as each op has one input with a gradient.
        node = tensor.grad_fn
        while node is not None:
            if hasattr(node, "variable"):
                return isinstance(node.variable, nn.Parameter)
            following = [one for one, _ in node.next_functions if one is not None]
            node = following[0] if len(following) == 1 else None
        return False


def storage_of(tensor: Tensor) -> int:
    """Return a number that identifies a storage while it is alive, wherever its bytes are."""
    number: int = tensor.untyped_storage()._cdata
    return number


def vacate(tensor: Tensor) -> None:
    """Release a tensor's memory without changing its place in autograd's graph. Its values are lost.

    Other tensors that share the memory keep it.
    """
    if _is_plain(tensor):
        tensor.data = tensor.detach().new_zeros(()).expand(tensor.shape)


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is an ordinary view of bytes: no subclass, dense, not lazily conjugated or negated."""
    return (
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.layout is torch.strided
        and not tensor.is_conj()
        and not tensor.is_neg()
    )


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


class Recomputation:
    """State that a stage needs to repeat a forward exactly: the random state of the first time, and its buffers.

    Parameters
    ----------
    module
        Module of the stage.
    device
        Device of the module.
    """

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self._module, self._device = module, device
        self._random: dict[int, tuple[Tensor, Tensor | None]] = {}
        self._moving: list[Tensor] | None = None

    def clear(self) -> None:
        """Discard the forwards of an unfinished step."""
        self._random.clear()

    def waits(self, microbatch: int) -> bool:
        """Return whether a microbatch's forward ran once, and will run again."""
        return microbatch in self._random

    @contextmanager
    def first(self, microbatch: int) -> Iterator[None]:
        """Run the first forward in the block: it keeps only the random state for a backward."""
        self._random[microbatch] = torch.get_rng_state(), self._device_random()
        # The first forward of all shows which buffers change; later ones need no copies.
        before = None if self._moving is not None else [buffer.detach().clone() for buffer in self._module.buffers()]
        with forgetting():
            yield
        if before is not None:
            pairs = zip(self._module.buffers(), before, strict=True)
            self._moving = [buffer for buffer, old in pairs if not torch.equal(buffer, old)]

    @contextmanager
    def again(self, microbatch: int) -> Iterator[None]:
        """Run the second forward and its loss in the block.

        It draws the same random numbers. Buffers that a forward changes (running means, counters) have seen the microbatch
        already, and are restored afterwards.
        """
        moving = self._moving or []
        kept = [(buffer.detach().clone(), buffer._version) for buffer in moving]
        host, device = self._random.pop(microbatch)
        with torch.random.fork_rng([] if device is None else [self._device], device_type=self._device.type):
            torch.set_rng_state(host)
            if device is not None:
                torch.get_device_module(self._device).set_rng_state(device, self._device)
            yield
        with torch.no_grad():
            for buffer, (before, version) in zip(moving, kept, strict=True):
                # A kernel that changed a buffer without a new version (batch norm) is undone in the same way: a new version
                # would make the backward fail.
                (buffer.data if buffer._version == version else buffer).copy_(before)

    def _device_random(self) -> Tensor | None:
        if self._device.type == "cpu":
            return None
        state: Tensor = torch.get_device_module(self._device).get_rng_state(self._device)
        return state


@contextmanager
def forgetting() -> Iterator[None]:
    """Disable gradients and the cache of ``autocast``: a weight that it cast here would have no gradient later."""
    caching = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_autocast_cache_enabled(caching)
