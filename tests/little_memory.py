"""What is refused must be refused before memory is taken for it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def little_memory(most: int = 4 << 20) -> Iterator[None]:
    """Fails where the block takes more than so many bytes."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= most, f"{peak:,} bytes were taken, and {most:,} are allowed"
