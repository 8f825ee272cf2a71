"""The zero-bubble runtime's nodes as text: a line a rank of ``KIND.chunk.microbatch@time``, ``*`` behind a rollback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeplan.passes.zero_bubble_runtime import RuntimeNode


def format_zb_nodes(rows: Iterable[Sequence[RuntimeNode]]) -> str:
    """One line a rank, each ended by a newline. Whole times are written as integers."""
    return "".join(" ".join(map(_word, row)) + "\n" for row in rows)


def _word(node: RuntimeNode) -> str:
    time = int(node.time) if float(node.time).is_integer() else node.time
    return f"{node.kind}.{node.chunk}.{node.microbatch}@{time}" + "*" * node.rollback
