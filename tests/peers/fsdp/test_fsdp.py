"""PyTorch's FSDP2: the peak of a step of a real module on fake tensors, as its own tracker sums it up.

Modules, autograd, checkpoints, gathering and reduction are PyTorch's; only the data and the other ranks are made up.
"""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional
from torch.testing._internal.distributed.fake_pg import FakeStore

from pipeplan.extensions.planning import Configuration, estimate
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.foundation.files import GIBIBYTE

RANKS, LAYERS, HIDDEN, FFN, HEADS, KEY_HEADS, TOKENS = 8, 4, 4096, 14_336, 32, 8, 4096


class Attention(nn.Module):
    """Grouped queries without positions."""

    def __init__(self) -> None:
        super().__init__()
        width = HIDDEN // HEADS * KEY_HEADS
        self.query, self.out = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(HIDDEN, width, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            made(x).unflatten(-1, (heads, -1)).transpose(1, 2)
            for made, heads in ((self.query, HEADS), (self.key, KEY_HEADS), (self.value, KEY_HEADS))
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    """Llama's layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(HIDDEN) for _ in range(2))
        self.attention = Attention()
        self.gate, self.up = (nn.Linear(HIDDEN, FFN, bias=False) for _ in range(2))
        self.down = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norms[0](x))
        y = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


@pytest.fixture
def group() -> Iterator[None]:
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    yield
    dist.destroy_process_group()


def measured(vocabulary: int, *, keeps_ends: bool, defers: bool, upcasts: bool) -> float:
    """GiB at the peak of the second step of two microbatches, with everything in 16 bits and whole layers checkpointed."""
    mesh = init_device_mesh("cpu", (RANKS,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cpu"):
        torch.set_default_dtype(torch.bfloat16)
        ends = nn.Embedding(vocabulary, HIDDEN), nn.RMSNorm(HIDDEN), nn.Linear(HIDDEN, vocabulary, bias=False)
        layers = [checkpoint_wrapper(Layer()) for _ in range(LAYERS)]
        whole = nn.Sequential(ends[0], *layers, *ends[1:])
        torch.set_default_dtype(torch.float32)
        for layer in layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=True)
        fully_shard(whole, mesh=mesh, mp_policy=policy, reshard_after_forward=not keeps_ends)
        optimizer = torch.optim.AdamW(whole.parameters())
        tracker = FSDPMemTracker(whole, optimizer)

        def microbatch(last: bool) -> None:
            whole.set_requires_gradient_sync(last or not defers)
            tokens = torch.zeros((1, TOKENS), dtype=torch.int64)
            logits = whole(tokens).flatten(0, 1)
            functional.cross_entropy(logits.float() if upcasts else logits, tokens.flatten()).backward()

        microbatch(last=True)
        optimizer.step()
        optimizer.zero_grad()
        with tracker:
            microbatch(last=False)
            tracker.reset_mod_stats()
            microbatch(last=True)
    (peak,) = tracker.get_tracker_snapshot("peak").values()
    return float(peak["Total"]) / GIBIBYTE


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("software", "vocabulary", "keeps_ends", "defers", "upcasts"),
    [
        ("kempnerforge", 128_256, False, True, False),
        ("kempnerforge+gradients-summed-sharded", 8192, False, False, False),
        ("automodel", 128_256, True, False, True),
    ],
)
def test_peaks(software: str, vocabulary: int, keeps_ends: bool, defers: bool, upcasts: bool):
    """A narrow vocabulary peaks in a layer's backward, a wide one in the loss or at the ends of the model."""
    shape = ModelShape(
        name="fake", layers=LAYERS, hidden=HIDDEN, heads=HEADS, kv_heads=KEY_HEADS, ffn=FFN, vocabulary=vocabulary
    )
    requested = Configuration(
        sequence=TOKENS, global_batch=2 * RANKS, data=RANKS, zero=3, recompute=("full",), software=software
    )
    result = estimate(shape, cluster("h100-sxm:8"), requested, with_error_bar=False)
    peak = measured(vocabulary, keeps_ends=keeps_ends, defers=defers, upcasts=upcasts)
    assert result.peak_memory_gib == pytest.approx(peak, rel=0.1)
