"""Memory in words, in bytes or in activations."""

from __future__ import annotations


def size_in_words(value: float, in_activations: bool) -> str:
    """``3 activations``, or ``3.1 GiB``."""
    if in_activations:
        return f"{value:,.4g} activation{'' if value == 1 else 's'}"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"
