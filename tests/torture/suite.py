"""What a suite is: cases made from seeds, and who judges them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class Found(Exception):
    """What is wrong, in one sentence."""


def _anywhere() -> str | None:
    return None


@dataclass(frozen=True)
class Suite:
    """A kind of attack.

    A case is made from its seed alone (``random.Random(seed)``), so that it can be tried again, and writes nothing outside
    its folder. No clock takes part in a verdict but the generous ``limit``.

    Attributes
    ----------
    name
        As it is asked for: ``commands``.
    about
        One sentence: what is attacked, and who judges.
    attempt
        Takes a seed and an empty folder of the case's own, which is the working folder too; gives in a word or two what
        came of it (``refused``, ``answered``), for the counts. Raises ``Found``; any other exception is found too.
    limit
        Seconds that a case may take; beyond it is found.
    sample
        Cases that the tests try: seeds 0 to ``sample - 1``.
    share
        Of the time of a whole run, against the others'.
    cores
        2: nothing else runs beside a case.
    needs
        Why it cannot run on this machine, in a sentence; None where it can.
    """

    name: str
    about: str
    attempt: Callable[[int, Path], str]
    limit: float = 60.0
    sample: int = 3
    share: float = 1.0
    cores: int = 1
    needs: Callable[[], str | None] = _anywhere
