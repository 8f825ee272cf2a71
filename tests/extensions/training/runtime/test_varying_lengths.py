"""Batches whose microbatches differ in length: what is their length, and what the stages expect."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch.distributed.pipelining._utils import _StageMeta, _TensorMeta

from pipeplan.extensions.training.runtime.feeds import Batch, Feeds
from pipeplan.extensions.training.runtime.microbatches import joined, sizes_of, split
from pipeplan.extensions.training.runtime.torch_internals.varying import LookAhead, expect
from pipeplan.foundation.errors import InputError

CPU = torch.device("cpu")


def batch(*lengths: int, samples: int = 2, **keywords: Any) -> Batch:
    return Batch([torch.zeros(samples, length, 8) for length in lengths], None, keywords)


def prepared(feeds: Feeds, one: Batch) -> tuple[list[int] | None, bool]:
    """The lengths of a batch's microbatches, and whether the stages look ahead again."""
    own, numbers = feeds.prepare("step", one)
    assert len(numbers) == feeds.numbers
    feed, changed = feeds.agreed("step", own, numbers)
    return feed.lengths, changed


def test_the_length_is_the_size_that_differs_within_a_batch() -> None:
    feeds = Feeds(0, True, False, 3, CPU, varying_lengths=True)
    assert prepared(feeds, batch(4, 4, 4)) == ([0, 0, 0], False)
    assert prepared(feeds, batch(6, 6, 6)) == ([0, 0, 0], True)
    assert prepared(feeds, batch(6, 3, 9)) == ([6, 3, 9], True)
    assert prepared(feeds, batch(5, 5, 5)) == ([5, 5, 5], False)
    assert prepared(feeds, batch(6, 3, 9, samples=1)) == ([6, 3, 9], True)
    assert prepared(feeds, batch(6, 3, 9, samples=1, mask=torch.zeros(3, 4))) == ([6, 3, 9], True)
    assert prepared(Feeds(1, False, False, 3, CPU, varying_lengths=True), batch(6, 3, 9)) == ([0, 0, 0], False)


def test_microbatches_may_differ_in_sizes_alone() -> None:
    parts = [(torch.zeros(2, length, 8), {"mask": torch.zeros(length)}) for length in (5, 3)]
    float32 = torch.float32
    assert sizes_of(parts)[0] == (float32, 2, None, 8, float32, None)
    assert split(parts, 2, what="the inputs", device=CPU, varying=True)[1][0].shape == (2, 3, 8)
    with pytest.raises(InputError, match="pad it, or create the pipeline with varying_lengths"):
        split(parts, 2, what="the inputs", device=CPU)
    for other in (torch.zeros(2, 3), torch.zeros(2, 3, 8, dtype=torch.int64)):
        with pytest.raises(
            InputError, match="microbatch 1 has other types, or another number of tensors or dimensions"
        ):
            sizes_of([torch.zeros(2, 3, 8), other])
    assert [part.shape for part in joined([torch.zeros(2, 5), torch.zeros(2, 3)])] == [(2, 5), (2, 3)]


def looked(length: int, *sizes: int) -> LookAhead:
    meta = _TensorMeta.from_tensor(torch.zeros(sizes))
    return LookAhead(length, (meta,), (), _StageMeta(inputs=(meta,), outputs=(meta,)))


def stage(first: bool = False) -> Any:
    infos = {number: (SimpleNamespace(tensor_meta=None),) for number in range(3)}
    return SimpleNamespace(is_first=first, is_last=True, args_recv_info=infos, grad_recv_info={})


def test_messages_grow_evenly_with_the_length() -> None:
    last = stage()
    metadata = expect(last, looked(2, 1, 8, 5), looked(6, 1, 16, 5), [2, 5, 8])
    metas = [last.args_recv_info[number][0].tensor_meta for number in range(3)]
    assert [tuple(meta.shape) for meta in metas] == [(1, 8, 5), (1, 14, 5), (1, 20, 5)]
    assert metas[1].stride == (70, 5, 1)
    assert [metadata[number].inputs for number in range(3)] == [(meta,) for meta in metas]
    assert metadata[0].outputs == looked(6, 1, 16, 5).whole.outputs
    with pytest.raises(InputError, match="8 and 17 entries for microbatches of length 2 and 6"):
        expect(stage(), looked(2, 8), looked(6, 17), [3])
    expect(stage(first=True), looked(2, 8), looked(6, 17), [3])
