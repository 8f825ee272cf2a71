"""What a suite of random cases is: cases made from seeds, and what judges them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class Found(Exception):
    """What is wrong, in one sentence."""


@dataclass(frozen=True)
class Suite:
    """Random cases of one kind.

    A case is made from its seed alone, so that it can be tried again, and writes nothing outside its folder.

    Attributes
    ----------
    name
        The suite's name in tests, such as ``mutants``.
    about
        One sentence: what is attacked, and what judges the outcome.
    attempt
        Takes a seed and an empty folder; returns the outcome in a word or two. Raises ``Found``; any other exception is a
        finding too.
    sample
        Number of cases that the tests try.
    needs
        Returns why the suite cannot run on this machine, in a sentence; None where it can.
    """

    name: str
    about: str
    attempt: Callable[[int, Path], str]
    sample: int = 3
    needs: Callable[[], str | None] = lambda: None
