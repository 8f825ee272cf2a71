"""Attention to compressed keys (CSA and HCA, DeepSeek-V4 technical report)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from pipeplan.extensions.planning.workload.components import within
from pipeplan.extensions.planning.workload.mixers.mixer import Mixer, MixerSizes, Projection
from pipeplan.extensions.planning.workload.part import FULL, HALF, Part, elementwise, joined, scattered
from pipeplan.extensions.planning.workload.work import AttentionCore, Execution, Kept, MemoryPass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention(Mixer):
    """Attention of many query heads to one key head, which is also the value: to the last tokens, and to compressed ones.

    Every ``rate`` tokens become one key. With an indexer, a query sees the ``keys`` compressed ones that it selects
    (CSA); without, all of them (HCA); without a rate, the window alone. Queries are compressed, and groups of heads
    share a low-rank output projection. Each token attends as if the kernel skipped what it does not see. Passes and
    formats are those of Megatron Core (``deepseek_v4_hybrid_attention.py``).

    Attributes
    ----------
    query_heads, head_dim
        Number and dimensions of query heads; the key has as many dimensions.
    query_rank
        Rank of the queries' projection.
    groups, group_rank
        Groups of heads, and the rank of each group's output projection.
    window
        Number of last tokens that a query sees.
    rate
        Tokens per compressed key; 0: none.
    index_heads, index_dim, keys
        Heads and dimensions of the indexer, and the number of keys that it selects; 0: no indexer.
    """

    kind: ClassVar[str] = "compressed-attention"
    title: ClassVar[str] = "compressed attention"

    query_heads: int
    head_dim: int
    query_rank: int
    groups: int
    group_rank: int
    window: int
    rate: int = 0
    index_heads: int = 0
    index_dim: int = 0
    keys: int = 0

    def sizes(self, hidden: int) -> MixerSizes:
        """Return the sizes; a compressor with an indexer works on two overlapping sets of tokens, so its width is twice."""
        dim, heads, sets = self.head_dim, self.query_heads, 2 if self.keys else 1
        projections = [
            Projection(name="query down", columns=self.query_rank, split=False),
            Projection(name="query up", columns=heads * dim, inner=self.query_rank),
            Projection(name="key", columns=dim, split=False),
            Projection(
                name="grouped output",
                columns=self.groups * self.group_rank,
                inner=heads * dim // self.groups,
                precision="bf16",
            ),
        ]
        replicated = self.query_rank + dim
        if self.rate:
            projections.append(Projection(name="compressed key and gate", columns=2 * sets * dim, split=False))
            replicated += self.rate * sets * dim + dim
        if self.keys:
            width = self.index_heads * self.index_dim
            projections += [
                Projection(name="indexer key and gate", columns=4 * self.index_dim, split=False),
                Projection(name="indexer query", columns=width, inner=self.query_rank, split=False),
                Projection(name="indexer weights", columns=self.index_heads, split=False),
            ]
            replicated += self.rate * 2 * self.index_dim + self.index_dim
        return MixerSizes(
            heads=heads,
            width=self.groups * self.group_rank,
            projections=tuple(projections),
            split=heads,
            replicated=replicated,
        )

    def keys_seen(self, sequence: int) -> float:
        """Return the mean number of keys of a query: those of its window, and compressed ones."""
        near = within(self.window, sequence)
        if not self.rate:
            return near
        compressed = max(1, sequence // self.rate)
        return near + (within(self.keys, compressed) if self.keys else compressed / 2)

    def token_flops(self, hidden: int, sequence: int, *, causal: bool = True) -> float:
        """Return the FLOPs of scores and values, and of the indexer's scores of all compressed keys."""
        flops = 4.0 * self.keys_seen(sequence) * self.query_heads * self.head_dim
        if self.keys:
            flops += 2.0 * sequence / self.rate / 2 * self.index_heads * (self.index_dim + 1)
        return flops

    def mixing(self, hidden: int, execution: Execution) -> Part:
        """Return compression, the indexer's scores and selection, and the core."""
        n, s = execution.tokens, execution.attended
        heads, dim = self.query_heads / execution.tensor, self.head_dim
        # Each query is normalized, and its output copied to its group; an eighth of either has positions.
        wide = HALF * n * (heads + 1) * dim
        parts = [elementwise("query norm, positions and groups", 4.5 * wide, 5.5 * wide, kernels=4)]
        if self.rate:
            moved = 4 * HALF * n * dim * (2 if self.keys else 1)
            parts.append(elementwise("compression", moved, 2 * moved, kernels=2, backward_kernels=3))
        if self.keys:
            indexer = partial(_core, "indexer", queries=n, heads=self.index_heads, dims=(self.index_dim, 0))
            scored, chosen = s / self.rate / 2, within(self.keys, max(1, s // self.rate))
            parts.append(
                Part(
                    forward=(
                        indexer(keys=scored),
                        MemoryPass(name="key selection", bytes=FULL * n * (2 * scored + chosen), kernels=2),
                    ),
                    backward_input=(indexer(keys=chosen, backward=True),),
                    kept=(Kept(name="selected keys", bytes=FULL * n * chosen),),
                )
            )
        # One list has the keys that a query sees, near and compressed.
        selected = n * self.keys_seen(s) * dim
        core = partial(
            _core,
            "attention core",
            queries=n,
            keys=self.keys_seen(s),
            heads=heads,
            dims=(dim, dim),
            gathered=HALF * selected,
        )
        parts.append(
            Part(
                forward=(core(),),
                backward_input=(core(backward=True), *scattered(selected)),
                kept=(
                    Kept(name="attention output before projection", bytes=HALF * n * heads * dim),
                    Kept(name="log sum of scores", bytes=FULL * n * heads),
                ),
            )
        )
        return joined(parts)


def _core(
    name: str,
    *,
    queries: float,
    keys: float,
    heads: float,
    dims: tuple[float, float],
    backward: bool = False,
    gathered: float = 0.0,
) -> AttentionCore:
    """Return scores and values with one key head; ``dims`` are those of a score and of a value."""
    score, value = dims
    return AttentionCore(
        name=name,
        queries=queries,
        keys=keys,
        heads=heads,
        kv_heads=1,
        score_dim=score,
        value_dim=value,
        backward=backward,
        gathered=gathered,
    )
