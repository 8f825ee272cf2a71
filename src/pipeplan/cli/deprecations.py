"""Deprecated names that a command line or its files use: a note on stderr for each, once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipeplan.cli.answers import tell
from pipeplan.deprecation import Deprecated, DeprecatedWarning


@contextmanager
def deprecations_told() -> Iterator[None]:
    """While this lasts, what is deprecated is told in the words of the command line; other warnings go their way."""
    told: set[Deprecated] = set()
    with warnings.catch_warnings():
        show = warnings.showwarning
        warnings.filterwarnings("always", category=DeprecatedWarning)

        def note(message: Warning | str, *rest: Any, **more: Any) -> None:
            if not isinstance(message, DeprecatedWarning):
                show(message, *rest, **more)
            elif message.about not in told:
                told.add(message.about)
                tell(f"note: {message.about.sentence(options=True)}")

        warnings.showwarning = note
        yield
