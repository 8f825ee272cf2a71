"""Small functions that the constructs call, from another file."""

# mypy: disable-error-code="no-any-return"

from pipeplan.foundation.kernels import inlined
from pipeplan.model import Ints
from tests.foundation.kernels.constructs.records import Inner, Rows


@inlined
def twice(value: int) -> int:
    """Return twice a number."""
    return 2 * value


def count_up(ints: Ints) -> int:
    """Add 1 to the first item, and return it."""
    ints[0] += 1
    return ints[0]


def divided(value: int, by: int) -> tuple[int, int]:
    """Return quotient and remainder."""
    return value // by, value % by


def inner_of(rows: Rows) -> Inner:
    """Return the record within a record."""
    return rows.inner


def row_of(rows: Rows, is_inner: bool) -> Ints:
    """Return one of two rows."""
    return rows.inner.ints if is_inner else rows.ints
