"""Joint search: the layers of each stage, the rank of each stage, the number of chunks and the order of ops together."""

from pipeplan.extensions.search.joint.searching import joint_search
from pipeplan.extensions.search.joint.space import LayoutSpace

__all__ = ["LayoutSpace", "joint_search"]
