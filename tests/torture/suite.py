"""What a suite of the torture is: cases made from seeds, and what judges them."""

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
        The suite's name on the command line, such as ``commands``.
    about
        One sentence: what is attacked, and what judges the outcome.
    attempt
        Takes a seed and an empty folder, which is the working folder too; returns the outcome in a word or two, for the
        counts. Raises ``Found``; any other exception counts as a finding too.
    limit
        Seconds that a case may take; a longer one is a finding.
    sample
        Cases that the tests try: seeds 0 to ``sample - 1``.
    share
        Share of the time of a whole run, relative to the other suites.
    needs
        Returns why the suite cannot run on this machine, in a sentence; None where it can.
    """

    name: str
    about: str
    attempt: Callable[[int, Path], str]
    limit: float = 60.0
    sample: int = 3
    share: float = 1.0
    needs: Callable[[], str | None] = lambda: None
