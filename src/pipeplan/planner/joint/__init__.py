"""Joint search: the layers of each stage, the rank of each stage, the number of chunks and the order of ops together."""

from pipeplan.planner.joint.searching import joint_search
from pipeplan.planner.joint.space import LayoutSpace, require_layout_search

__all__ = ["LayoutSpace", "joint_search", "require_layout_search"]
