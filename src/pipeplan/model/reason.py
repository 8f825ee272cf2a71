"""Reasons why a rank idles, and the words for them."""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """Reason why a rank idles."""

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
    QUEUE = 9
    """waits for a message that is ready, but behind others on its streams or without its receive"""
    UNSHARD = 10
    """waits until the parameters of a stage are gathered"""
    REDUCE = 11
    """waits until gradients are reduced"""

    @property
    def key(self) -> str:
        """Name of the reason in reports, such as ``start-up``."""
        return self.name.lower().replace("_", "-")


REASON_WORDS = {
    Reason.START_UP: "before the first microbatch arrives",
    Reason.COMPUTE: "waiting for ops on other ranks",
    Reason.TRANSFER: "waiting for messages",
    Reason.IMBALANCE: "waiting for slower stages",
    Reason.MEMORY: "held back by the memory limit",
    Reason.DRAIN: "after the last op",
    Reason.OVERHEAD: "between ops",
    Reason.OFFLOAD: "waiting for copies to the host",
    Reason.RELOAD: "waiting for copies back from the host",
    Reason.QUEUE: "waiting for messages behind others",
    Reason.UNSHARD: "waiting for the parameters of stages",
    Reason.REDUCE: "waiting for reduced gradients",
}
"""Words for each reason in sentences, after an idle time, and in legends."""
