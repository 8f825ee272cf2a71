"""The plugin passes the checks of pipeplan's own strategies and formats."""

from pipeplan.testing import check_format, check_strategy
from pipeplan_lifo.schedules import LIFO
from pipeplan_lifo.words import WORDS


def test_lifo() -> None:
    check_strategy(LIFO)


def test_words() -> None:
    check_format(WORDS)
