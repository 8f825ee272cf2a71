"""Placements: which rank holds each stage; and the kinds of a model's layers, which stages consist of."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.errors import ShapeError, UnknownNameError
from pipeplan.model.values import MOST_COPIES, Bools, Ints, in_digits, require_size

TWO_COPIES = ("bidirectional", "bidirectional-v")
"""Names of the placements with two copies of the model."""


@dataclass(frozen=True)
class Placement:
    """Assignment of stages to ranks, for each copy of the model.

    Attributes
    ----------
    name
        ``linear``, ``loop``, ``v``, ``wave``, ``bidirectional``, ``bidirectional-v`` or ``custom``.
    rank_of
        ``rank_of[copy][stage]``. Placements have one copy of the model; the bidirectional ones have two. Copies serve
        equal consecutive shares of the microbatches: the first half belongs to copy 0, which enters at rank 0.

    Raises
    ------
    ShapeError
        If there is no stage, a rank without a stage, copies of different lengths, or too many copies or stages.
    """

    name: str
    rank_of: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.rank_of or not self.rank_of[0]:
            raise ShapeError("a placement needs at least one stage")
        if len(self.rank_of) > MOST_COPIES:
            raise ShapeError(f"ranks hold at most {MOST_COPIES} copies of the model, not {len(self.rank_of)}")
        lengths = set(map(len, self.rank_of))
        if len(lengths) > 1:
            raise ShapeError(
                f"every copy of the model must have the same number of stages, not {min(lengths)} and {max(lengths)}"
            )
        self._require_every_rank()

    def _require_every_rank(self) -> None:
        # The time is linear in the stages, even if a file holds a rank number such as 50,000,000.
        held = set(chain.from_iterable(self.rank_of))
        if min(held) < 0:
            raise ShapeError(f"rank numbers must start at 0, not at {in_digits(min(held))}")
        require_size(ranks=len(held))
        if max(held) >= len(held):
            first = next(rank for rank in range(len(held)) if rank not in held)
            raise ShapeError(f"every rank from 0 to {in_digits(max(held))} must hold a stage; rank {first} does not")

    @classmethod
    def linear(cls, ranks: int) -> Placement:
        """Return the placement with stage s on rank s."""
        require_size(ranks=ranks)
        return cls("linear", (tuple(range(ranks)),))

    @classmethod
    def loop(cls, ranks: int, chunks: int) -> Placement:
        """Return the interleaved placement: stage s on rank s mod p. With one chunk this is ``linear``."""
        if chunks == 1:
            return cls.linear(ranks)
        require_size(ranks=ranks, chunks=chunks)
        return cls("loop", (tuple(range(ranks)) * chunks,))

    @classmethod
    def v(cls, ranks: int) -> Placement:
        """Return the V placement: two chunks per rank, down from rank 0 to p-1 and back up."""
        return cls.wave(ranks, 2)

    @classmethod
    def wave(cls, ranks: int, chunks: int) -> Placement:
        """Return the placement that runs down from rank 0 to p-1, back up, and down again, one pass per chunk.

        Two chunks make the V placement.
        """
        if chunks == 1:
            return cls.linear(ranks)
        require_size(ranks=ranks, chunks=chunks)
        down = range(ranks)
        passes = (down if chunk % 2 == 0 else down[::-1] for chunk in range(chunks))
        return cls("v" if chunks == 2 else "wave", (tuple(chain.from_iterable(passes)),))

    @classmethod
    def bidirectional(cls, ranks: int) -> Placement:
        """Return two copies of the model: stage s on rank s in the first copy, on rank p-1-s in the second.

        Raises
        ------
        ShapeError
            If the number of ranks is odd.
        """
        require_size(ranks=ranks)
        if ranks % 2:
            raise ShapeError(f"a bidirectional placement needs an even number of ranks, not {ranks}", field="ranks")
        down = tuple(range(ranks))
        return cls("bidirectional", (down, down[::-1]))

    @classmethod
    def bidirectional_v(cls, ranks: int) -> Placement:
        """Return two copies of the model, each on a V: the first starts at rank 0, the second at rank p-1.

        Raises
        ------
        ShapeError
            If the number of ranks is odd.
        """
        if ranks % 2:
            raise ShapeError(f"a bidirectional placement needs an even number of ranks, not {ranks}", field="ranks")
        down = cls.v(ranks).rank_of[0]
        return cls("bidirectional-v", (down, tuple(ranks - 1 - rank for rank in down)))

    @classmethod
    def called(cls, name: str, ranks: int, chunks: int) -> Placement:
        """Return the placement with this name.

        Names are ``linear``, ``loop``, ``v``, ``wave``, ``bidirectional`` and ``bidirectional-v``.

        Raises
        ------
        UnknownNameError
            If the name is not one of these.
        """
        makers = {
            "linear": lambda: cls.linear(ranks),
            "loop": lambda: cls.loop(ranks, chunks),
            "v": lambda: cls.v(ranks),
            "wave": lambda: cls.wave(ranks, chunks),
            "bidirectional": lambda: cls.bidirectional(ranks),
            "bidirectional-v": lambda: cls.bidirectional_v(ranks),
        }
        if name not in makers:
            raise UnknownNameError("placement", name, makers)
        return makers[name]()

    @classmethod
    def of(cls, *rank_of: tuple[int, ...]) -> Placement:
        """Return the placement with these ranks (one tuple per copy), under its standard name if it has one."""
        plain = cls("custom", rank_of)
        return next((usual for usual in plain._usual() if usual.rank_of == rank_of), plain)

    def _usual(self) -> list[Placement]:
        ranks, chunks, spare = self.ranks, *divmod(self.stages, self.ranks)
        if len(self.rank_of) == 2 and ranks % 2 == 0:
            maker = {ranks: Placement.bidirectional, 2 * ranks: Placement.bidirectional_v}.get(self.stages)
            return [] if maker is None else [maker(ranks)]
        return [] if spare else [Placement.loop(ranks, chunks), Placement.wave(ranks, chunks)]

    @cached_property
    def ranks(self) -> int:
        """Number of ranks, p."""
        return int(self.table.max()) + 1

    @property
    def stages(self) -> int:
        """Number of stages of one copy of the model, S."""
        return len(self.rank_of[0])

    @property
    def copies(self) -> int:
        """Number of copies of the model on the ranks."""
        return len(self.rank_of)

    @property
    def listed(self) -> list[int | list[int]]:
        """Rank of each stage as JSON has it; for several copies of the model, one list per copy."""
        if self.copies == 1:
            return list(self.rank_of[0])
        return [list(copy) for copy in self.rank_of]

    @cached_property
    def table(self) -> NDArray[np.int32]:
        """``rank_of`` as an array of shape (copies, stages)."""
        return np.array(self.rank_of, np.int32)

    @cached_property
    def crosses(self) -> Bools:
        """Mask of the stages s whose successor s + 1 is on another rank, shape (copies, stages - 1).

        A transfer is paid only there.
        """
        different: Bools = self.table[:, 1:] != self.table[:, :-1]
        return different

    @cached_property
    def chunks_on(self) -> Ints:
        """Number of stages of one copy on each rank, shape (ranks,)."""
        return np.bincount(self.table[0], minlength=self.ranks)

    @property
    def chunks(self) -> int:
        """Number of chunks per rank, v: the largest if ranks hold different numbers of stages."""
        return int(self.chunks_on.max())

    @cached_property
    def chunk_of(self) -> tuple[tuple[int, ...], ...]:
        """``chunk_of[copy][stage]``: index of the stage among those on its rank, in the order of the model."""
        chunks: list[tuple[int, ...]] = []
        for copy in self.rank_of:
            seen: defaultdict[int, int] = defaultdict(int)
            row: list[int] = []
            for rank in copy:
                row.append(seen[rank])
                seen[rank] += 1
            chunks.append(tuple(row))
        return tuple(chunks)

    def stages_on(self, rank: int, copy: int = 0) -> tuple[int, ...]:
        """Return the stages of one copy on a rank, in the order of the model: chunk 0 first."""
        return self._stages_of[copy][rank]

    @cached_property
    def _stages_of(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        copies = []
        for copy in self.rank_of:
            stages: list[list[int]] = [[] for _ in range(self.ranks)]
            for stage, rank in enumerate(copy):
                stages[rank].append(stage)
            copies.append(tuple(map(tuple, stages)))
        return tuple(copies)

    def copy_of(self, microbatch: NDArray[np.int32], microbatches: int) -> NDArray[np.int32]:
        """Return the copy of the model that serves each microbatch. Copies serve equal consecutive shares."""
        return (microbatch.astype(np.int64) * self.copies // microbatches).astype(np.int32)

    def ranks_of(self, stage: NDArray[np.int32], microbatch: NDArray[np.int32], microbatches: int) -> NDArray[np.int32]:
        """Return the rank that runs each (stage, microbatch)."""
        if self.copies == 1:
            only: NDArray[np.int32] = self.table[0][stage]
            return only
        ranks: NDArray[np.int32] = self.table[self.copy_of(microbatch, microbatches), stage]
        return ranks


LayerKind: TypeAlias = Literal["embedding", "dense", "moe", "mtp", "head", "loss"]
