"""What autograd keeps of one forward, as bytes that can leave the device and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from weakref import WeakSet, WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from pipeplan.runtime.microbatches import tensors


class Piece:
    """The bytes of one storage: on the device, on the host, or on both while they are copied.

    Several saved tensors may be views of it: they leave and come back together, once.

    Attributes
    ----------
    device, host
        The bytes, shape (bytes,); None where they are not.
    place, bytes
        The device, and how many they are.
    """

    def __init__(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        self.device: Tensor | None = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
        self.host: Tensor | None = None
        self.place, self.bytes = tensor.device, storage.nbytes()
        self.saved: WeakSet[_Saved] = WeakSet()

    def leave(self) -> None:
        """Let go of the bytes on the device, which are on the host."""
        for saved in self.saved:
            saved.leave()
        self.device = None


class _Saved:
    """What autograd holds in place of a tensor."""

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
            raise RuntimeError("what this backward needs is in the host's memory: its RELOAD must stand before it")
        dtype, offset, shape, stride = self._geometry
        bytes_ = self.piece.device
        empty = torch.empty(0, dtype=dtype, device=bytes_.device)
        return empty.set_(bytes_.untyped_storage(), offset, shape, stride)

    def _unchanged(self) -> Tensor:
        """The tensor itself; autograd checks no versions of what is packed."""
        assert self._tensor is not None
        if self._tensor._version != self._version:
            raise RuntimeError(
                f"a tensor of shape {tuple(self._tensor.shape)} that the backward needs was changed in place after it was "
                "saved: compute it anew instead"
            )
        return self._tensor


class SavedTensors:
    """The tensors that autograd keeps of one forward, apart from those that stay on the device: weights, buffers, the batch.

    It does not keep anything alive itself: a backward frees what it has used, as always.

    Parameters
    ----------
    stays
        Whether a tensor's storage stays where it is.
    """

    def __init__(self, stays: Callable[[Tensor], bool]) -> None:
        self._stays = stays
        self._pieces: WeakValueDictionary[int, Piece] = WeakValueDictionary()

    @property
    def pieces(self) -> list[Piece]:
        """Each storage once, in the order in which they were saved."""
        return list(self._pieces.values())

    @property
    def device_bytes(self) -> int:
        """Bytes of them on the device."""
        return sum(piece.bytes for piece in self.pieces if piece.device is not None)

    @property
    def host_bytes(self) -> int:
        """Bytes of them in the host's memory."""
        return sum(piece.bytes for piece in self.pieces if piece.host is not None)

    def holds(self, tensor: Tensor) -> bool:
        """Whether a tensor's storage is among the pieces."""
        return storage_of(tensor) in self._pieces

    def saving(self) -> AbstractContextManager[Any]:
        """Save the tensors of the forward in the block."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack)

    def _pack(self, tensor: Tensor) -> Tensor | _Saved:
        if not _is_plain(tensor) or self._stays(tensor):
            return tensor.detach()
        storage = storage_of(tensor)
        piece = self._pieces.get(storage)
        if piece is None:
            piece = self._pieces[storage] = Piece(tensor)
        return _Saved(tensor, piece)


def _unpack(saved: Tensor | _Saved) -> Tensor:
    return saved.tensor() if isinstance(saved, _Saved) else saved


class Staying:
    """The tensors of a stage that stay on its device: its weights, whatever form they have, its buffers, and the batch."""

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self._module, self._device = module, device
        self._weights: set[int] = set()
        self._batch: set[int] = set()

    def before(self, batch: Any) -> None:
        """A forward follows, or its loss, with this part of the batch. Weights that FSDP shards are gathered now."""
        weights = (*self._module.parameters(), *self._module.buffers())
        self._weights.update(storage_of(_local(weight)) for weight in weights)
        self._batch = {storage_of(_local(tensor)) for tensor in tensors(batch)}

    def __call__(self, tensor: Tensor) -> bool:
        """Whether it stays."""
        if tensor.device != self._device or not tensor.untyped_storage().nbytes():
            return True
        storage = storage_of(tensor)
        return storage in self._weights or storage in self._batch or self._is_weight(tensor)

    def _is_weight(self, tensor: Tensor) -> bool:
        """Whether a tensor is made of one weight alone, as ``autocast`` casts it once for all microbatches."""
        node = tensor.grad_fn
        while node is not None:
            if hasattr(node, "variable"):
                return isinstance(node.variable, nn.Parameter)
            following = [one for one, _ in node.next_functions if one is not None]
            node = following[0] if len(following) == 1 else None
        return False


def storage_of(tensor: Tensor) -> int:
    """Return a number that tells one storage from another while both live, wherever their bytes are."""
    number: int = tensor.untyped_storage()._cdata
    return number


def vacate(tensor: Tensor) -> None:
    """Have a tensor let go of its memory while it stays what it is in autograd's graph: its values are lost.

    Others that look at the same memory keep it.
    """
    if _is_plain(tensor):
        tensor.data = tensor.detach().new_zeros(()).expand(tensor.shape)


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor is bytes and a way to look at them, and no more."""
    return (
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.layout is torch.strided
        and not tensor.is_conj()
        and not tensor.is_neg()
    )


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


class Recomputation:
    """The state that a stage needs to run a forward again: the random numbers of the first time, its buffers left alone.

    Parameters
    ----------
    module
        The stage.
    device
        Where it is.
    """

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self._module, self._device = module, device
        self._random: dict[int, tuple[Tensor, Tensor | None]] = {}
        self._moving: list[Tensor] | None = None

    def clear(self) -> None:
        """Forget the forwards of a step that was not finished."""
        self._random.clear()

    def waits(self, microbatch: int) -> bool:
        """Whether its forward ran once, and will again."""
        return microbatch in self._random

    @contextmanager
    def first(self, microbatch: int) -> Iterator[None]:
        """Run the first forward in the block: nothing is kept for a backward but the state of the random numbers."""
        self._random[microbatch] = torch.get_rng_state(), self._device_random()
        before = None if self._moving is not None else [buffer.detach().clone() for buffer in self._module.buffers()]
        with forgetting():
            yield
        if before is not None:
            pairs = zip(self._module.buffers(), before, strict=True)
            self._moving = [buffer for buffer, old in pairs if not torch.equal(buffer, old)]

    @contextmanager
    def again(self, microbatch: int) -> Iterator[None]:
        """Run the second forward and its loss in the block.

        The same random numbers are drawn. Buffers that a forward moves (running means, counters) have seen the microbatch
        already, and are put back.
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
                # What a kernel moves without telling autograd (batch norm) is put back so, or the backward would refuse.
                (buffer.data if buffer._version == version else buffer).copy_(before)

    def _device_random(self) -> Tensor | None:
        if self._device.type == "cpu":
            return None
        state: Tensor = torch.get_device_module(self._device).get_rng_state(self._device)
        return state


@contextmanager
def forgetting() -> Iterator[None]:
    """Without gradients, and without ``autocast``'s cache: a weight that it cast here would have no gradient later."""
    caching = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_autocast_cache_enabled(caching)
