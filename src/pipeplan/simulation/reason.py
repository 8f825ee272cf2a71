"""The reasons why a rank idles."""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """Why a rank idles; the names with ``-`` for ``_`` are the keys in reports."""

    START_UP = 0
    """nothing could have arrived yet"""
    COMPUTE = 1
    """waits for an op on another rank"""
    TRANSFER = 2
    """waits for a message that is under way"""
    IMBALANCE = 3
    """waits because an op of a slower stage takes longer than the mean"""
    MEMORY = 4
    """had a forward to do that did not fit under the memory limit"""
    DRAIN = 5
    """has done all its work"""
    OVERHEAD = 6
    """is between ops: the gap before one, or what a message takes from its rank"""
    OFFLOAD = 7
    """waits for a copy to the host, which frees its memory"""
    RELOAD = 8
    """waits for a copy back from the host"""

    @property
    def key(self) -> str:
        """Its name in reports: ``start-up``."""
        return self.name.lower().replace("_", "-")
