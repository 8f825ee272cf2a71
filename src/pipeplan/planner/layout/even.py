"""The even splits that trainers offer: as equal as they can be, with embedding and loss counted as layers or not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from pipeplan.model import Placement


def even_splits(layers: int, stages: int, *, bare_first: bool, bare_last: bool) -> Iterator[tuple[int, ...]]:
    """Layers of each stage, each split once, the plainest first.

    Where they do not come out even, the earlier stages have one more, or the later ones, or those in the middle. Megatron's
    switches that account for embedding and loss take one layer off the first stage, the last, or both.

    Parameters
    ----------
    bare_first, bare_last
        Whether the first and the last stage can do without a layer of their own.
    """
    seen = set()
    for first in (0, 1):
        for last in (0, 1):
            for counts in _spread(layers + first + last, stages):
                split = list(counts)
                split[0] -= first
                split[-1] -= last
                least = [1] * stages
                least[0], least[-1] = least[0] - bare_first, least[-1] - (bare_last and stages > 1)
                if all(map(int.__ge__, split, least)) and tuple(split) not in seen:
                    seen.add(tuple(split))
                    yield tuple(split)


def chunkwise_splits(layers: int, placement: Placement) -> Iterator[tuple[int, ...]]:
    """Splits whose stages of one chunk have the same number of layers but on some ranks of one chunk, each once.

    Which chunks have one more matters where ranks alternate between a forward of one chunk and a backward of another.
    """
    each, more = divmod(layers, placement.stages)
    chunks, chunk_of = placement.chunks, placement.chunk_of[0]
    full, some = divmod(more, placement.ranks)
    for larger in combinations(range(chunks), full):
        for partly in (chunk for chunk in range(chunks) if chunk not in larger):
            stages = [stage for stage, chunk in enumerate(chunk_of) if chunk == partly]
            for taking in {tuple(stages[:some]), tuple(stages[len(stages) - some :])}:
                yield tuple(each + (chunk in larger or stage in taking) for stage, chunk in enumerate(chunk_of))


def _spread(layers: int, stages: int) -> Iterator[tuple[int, ...]]:
    each, more = divmod(layers, stages)
    for start in (0, stages - more, (stages - more) // 2):
        yield tuple(each + (start <= stage < start + more) for stage in range(stages))
