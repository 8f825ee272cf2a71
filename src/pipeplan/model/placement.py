"""Which rank holds each stage."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from pipeplan.errors import ShapeError, UnknownNameError
from pipeplan.model.quantities import MOST_COPIES, Bools, Ints, in_digits, require_size


@dataclass(frozen=True)
class Placement:
    """The rank of every stage, for each copy of the model.

    Attributes
    ----------
    name
        ``linear``, ``loop``, ``v``, ``wave``, ``bidirectional``, ``bidirectional-v`` or ``custom``.
    rank_of
        ``rank_of[copy][stage]``. Placements have one copy of the model; the bidirectional ones have two, and microbatches
        are dealt to the copies in equal consecutive shares: the first half to copy 0, which enters at rank 0.

    Raises
    ------
    ShapeError
        For no stage, a rank that holds nothing, copies of different length, more copies or stages than can be scheduled.
    """

    name: str
    rank_of: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.rank_of or not self.rank_of[0]:
            raise ShapeError("a placement needs at least one stage")
        if len(self.rank_of) > MOST_COPIES:
            raise ShapeError(f"ranks hold at most {MOST_COPIES} copies of the model, not {len(self.rank_of)}")
        lengths = {len(copy) for copy in self.rank_of}
        if len(lengths) > 1:
            raise ShapeError(f"every copy of the model has the same stages, not {min(lengths)} and {max(lengths)}")
        self._require_every_rank()

    def _require_every_rank(self) -> None:
        """Takes as long as there are stages, however large the numbers of their ranks are."""
        held = {rank for copy in self.rank_of for rank in copy}
        if min(held) < 0:
            raise ShapeError(f"ranks are numbered from 0, not from {in_digits(min(held))}")
        require_size(ranks=len(held))
        missing = max(held) + 1 - len(held)
        if missing:
            without = (rank for rank in range(len(held) + 3) if rank not in held)
            some = ", ".join(map(str, islice(without, min(missing, 3))))
            which = f"{in_digits(missing)} do not, among them {some}"
            if missing <= 3:
                which = f"{some} {'does' if missing == 1 else 'do'} not"
            raise ShapeError(f"every rank from 0 to {in_digits(max(held))} holds a stage; {which}")

    @classmethod
    def linear(cls, ranks: int) -> Placement:
        """Return the placement with stage s on rank s."""
        require_size(ranks=ranks)
        return cls("linear", (tuple(range(ranks)),))

    @classmethod
    def loop(cls, ranks: int, chunks: int) -> Placement:
        """Stage s on rank s mod p: interleaved. With one chunk this is ``linear``."""
        if chunks == 1:
            return cls.linear(ranks)
        require_size(ranks=ranks, chunks=chunks)
        return cls("loop", (tuple(range(ranks)) * chunks,))

    @classmethod
    def v(cls, ranks: int) -> Placement:
        """Two chunks a rank: down from rank 0 to p-1, and back up."""
        return cls.wave(ranks, 2)

    @classmethod
    def wave(cls, ranks: int, chunks: int) -> Placement:
        """Down from rank 0 to p-1, back up, and down again, one pass a chunk. Two chunks are the V."""
        if chunks == 1:
            return cls.linear(ranks)
        require_size(ranks=ranks, chunks=chunks)
        down = range(ranks)
        passes = (down if chunk % 2 == 0 else down[::-1] for chunk in range(chunks))
        return cls("v" if chunks == 2 else "wave", (tuple(chain.from_iterable(passes)),))

    @classmethod
    def bidirectional(cls, ranks: int) -> Placement:
        """Two copies of the model: stage s on rank s for the first, on rank p-1-s for the second.

        Raises
        ------
        ShapeError
            For an odd number of ranks.
        """
        require_size(ranks=ranks)
        if ranks % 2:
            raise ShapeError(f"a bidirectional placement needs an even number of ranks, not {ranks}", field="ranks")
        down = tuple(range(ranks))
        return cls("bidirectional", (down, down[::-1]))

    @classmethod
    def bidirectional_v(cls, ranks: int) -> Placement:
        """Two copies of the model, each on a V: the first down from rank 0 and back up, the second from rank p-1.

        Raises
        ------
        ShapeError
            For an odd number of ranks.
        """
        if ranks % 2:
            raise ShapeError(f"a bidirectional placement needs an even number of ranks, not {ranks}", field="ranks")
        down = cls.v(ranks).rank_of[0]
        return cls("bidirectional-v", (down, tuple(ranks - 1 - rank for rank in down)))

    @classmethod
    def called(cls, name: str, ranks: int, chunks: int) -> Placement:
        """The placement of this name: ``linear``, ``loop``, ``v``, ``wave``, ``bidirectional`` or ``bidirectional-v``.

        Raises
        ------
        UnknownNameError
            For any other name.
        """
        made = {
            "linear": lambda: cls.linear(ranks),
            "loop": lambda: cls.loop(ranks, chunks),
            "v": lambda: cls.v(ranks),
            "wave": lambda: cls.wave(ranks, chunks),
            "bidirectional": lambda: cls.bidirectional(ranks),
            "bidirectional-v": lambda: cls.bidirectional_v(ranks),
        }
        if name not in made:
            raise UnknownNameError("placement", name, made)
        return made[name]()

    @classmethod
    def of(cls, *rank_of: tuple[int, ...]) -> Placement:
        """The placement with these ranks (one tuple a copy), under its usual name where it has one."""
        plain = cls("custom", rank_of)
        return next((usual for usual in plain._usual() if usual.rank_of == rank_of), plain)

    def _usual(self) -> list[Placement]:
        ranks, chunks, spare = self.ranks, *divmod(self.stages, self.ranks)
        if len(self.rank_of) == 2 and ranks % 2 == 0:
            made = {ranks: Placement.bidirectional, 2 * ranks: Placement.bidirectional_v}.get(self.stages)
            return [] if made is None else [made(ranks)]
        return [] if spare else [Placement.loop(ranks, chunks), Placement.wave(ranks, chunks)]

    @cached_property
    def ranks(self) -> int:
        """The number of ranks, p."""
        return max(max(copy) for copy in self.rank_of) + 1

    @property
    def stages(self) -> int:
        """The number of stages, S, counted once however many copies there are."""
        return len(self.rank_of[0])

    @property
    def copies(self) -> int:
        """How many copies of the model the ranks hold together."""
        return len(self.rank_of)

    @cached_property
    def table(self) -> NDArray[np.int32]:
        """``rank_of`` as an array of shape (copies, stages)."""
        return np.array(self.rank_of, np.int32)

    @cached_property
    def crosses(self) -> Bools:
        """Whether stages s and s + 1 are on different ranks, shape (copies, stages - 1): a transfer is paid there."""
        different: Bools = self.table[:, 1:] != self.table[:, :-1]
        return different

    @cached_property
    def chunks_on(self) -> Ints:
        """How many stages of one copy each rank holds, shape (ranks,)."""
        return np.bincount(self.table[0], minlength=self.ranks)

    @property
    def chunks(self) -> int:
        """The number of chunks a rank, v; where ranks hold different numbers of stages, the largest."""
        return int(self.chunks_on.max())

    @cached_property
    def chunk_of(self) -> tuple[tuple[int, ...], ...]:
        """``chunk_of[copy][stage]``: the stage's index among those on its rank, in the order of the model."""
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
        """The stages of one copy that a rank holds, in the order of the model: chunk 0 first."""
        return self._stages_of[copy][rank]

    @cached_property
    def _stages_of(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """``_stages_of[copy][rank]``: the stages there, in the order of the model."""
        copies = []
        for copy in self.rank_of:
            stages: list[list[int]] = [[] for _ in range(self.ranks)]
            for stage, rank in enumerate(copy):
                stages[rank].append(stage)
            copies.append(tuple(map(tuple, stages)))
        return tuple(copies)

    def copy_of(self, microbatch: NDArray[np.int32], microbatches: int) -> NDArray[np.int32]:
        """Return the copy of the model that serves each microbatch: equal consecutive shares."""
        return (microbatch.astype(np.int64) * self.copies // microbatches).astype(np.int32)

    def ranks_of(self, stage: NDArray[np.int32], microbatch: NDArray[np.int32], microbatches: int) -> NDArray[np.int32]:
        """The rank on which each (stage, microbatch) belongs."""
        if self.copies == 1:
            only: NDArray[np.int32] = self.table[0][stage]
            return only
        ranks: NDArray[np.int32] = self.table[self.copy_of(microbatch, microbatches), stage]
        return ranks
