"""What is pasted to train with a plan, and what cannot be said there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerFlags:
    """One trainer's settings for a configuration.

    Attributes
    ----------
    text
        Flags to paste, below comments that say what they need.
    files
        The text of each file that they name, by the path that they name it with.
    warnings
        What the trainer does not do as planned, or cannot be told, a sentence each; the text says it too.
    """

    text: str
    files: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
