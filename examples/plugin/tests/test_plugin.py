"""The plugin passes the checks of pipeplan's own strategies and formats."""

from pipeplan_lifo.schedules import LIFO
from pipeplan_lifo.words import WORDS

from pipeplan.testing import check_format, check_strategy


def test_lifo() -> None:
    """The schedule is valid, and within its own formulas, on all small shapes."""
    check_strategy(LIFO)


def test_words() -> None:
    """The format reads what it writes."""
    check_format(WORDS)
