"""Slices of a sequence: forwards of a microbatch run in their order, backwards in reverse."""

from pipeplan.kernels import inlined


@inlined
def mirrored(index: int, slices: int) -> int:
    """The index of the forward of a backward, and the other way round."""
    return index // slices * slices + slices - 1 - index % slices
