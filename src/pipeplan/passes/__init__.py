"""From schedule to schedule."""

from pipeplan.passes.communication import Receives, insert_communication, without_communication
from pipeplan.passes.zero_bubble_runtime import NodeKind, RuntimeNode, zero_bubble_nodes

__all__ = [
    "NodeKind",
    "Receives",
    "RuntimeNode",
    "insert_communication",
    "without_communication",
    "zero_bubble_nodes",
]
