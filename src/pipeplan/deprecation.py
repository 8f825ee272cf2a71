"""What goes with a later version: it goes on working until then, and says once what to use in its place.

In Python that is a ``DeprecationWarning``; on the command line a note on stderr, in the words of the command line. What is
deprecated in one version works at least through the next one: ``docs/explanation/compatibility.md``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecated:
    """A name that goes.

    Attributes
    ----------
    old, new
        As Python, or a file, has them.
    since, until
        The version that deprecates it, and the one that no longer has it.
    old_option, new_option
        The same on the command line, where that has it.
    """

    old: str
    new: str
    since: str
    until: str
    old_option: str = ""
    new_option: str = ""

    def sentence(self, *, options: bool = False) -> str:
        """What its user is told."""
        old, new = (self.old_option, self.new_option) if options and self.old_option else (self.old, self.new)
        return f"{old} is deprecated since {self.since} and goes with {self.until}; use {new}"


class DeprecatedWarning(DeprecationWarning):
    """Tells of a deprecated name that was used; ``about`` says which."""

    def __init__(self, about: Deprecated) -> None:
        super().__init__(about.sentence())
        self.about = about


def warn_of(about: Deprecated, *, stacklevel: int = 2) -> None:
    """Tell who uses a deprecated name; ``stacklevel`` as for ``warnings.warn``, from the caller's point of view."""
    warnings.warn(DeprecatedWarning(about), stacklevel=stacklevel + 1)


NAMES: Mapping[str, Deprecated] = {
    "read_schedule": Deprecated(
        old="pipeplan.read_schedule", new="pipeplan.read, which also reads timelines", since="0.1", until="0.3"
    ),
}
"""Of the package: functions and types that have another name now."""

FULL_BACKWARD = Deprecated(
    old="full_backward=True",
    new='leave="split"',
    since="0.1",
    until="0.3",
    old_option="--full-backward",
    new_option="--leave split",
)
"""Of the searches: that no backward is split is one of the things that a search can be told to leave."""

KEYS: dict[str, Deprecated] = {}
"""Of config files and settings, by the old name; ``new`` is the name of the setting. Those of the first simulator stay."""
