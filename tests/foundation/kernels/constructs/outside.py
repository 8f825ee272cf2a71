"""Functions that a kernel calls from a row."""

# mypy: disable-error-code="no-any-return"

from pipeplan.model import Ints


def add(place: int, ints: Ints) -> int:
    ints[0] += place
    return ints[0]


def subtract(place: int, ints: Ints) -> int:
    ints[0] -= 3
    return place
