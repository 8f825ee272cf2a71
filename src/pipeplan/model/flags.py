"""Whether something is to be done: True or False, and nothing that merely counts as one of them."""

from __future__ import annotations

import numpy as np

from pipeplan.errors import InputError
from pipeplan.model.names import shortened

_SHOWN = 60
"""Letters of a value in a message."""


def require_flags(**values: object) -> None:
    """Check flags by their names, before any work is done: a text, a list or an array is none.

    Raises
    ------
    InputError
        For what is neither True nor False; the flag is its ``field``.
    """
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            shown = shortened(repr(value), _SHOWN)
            raise InputError(f"{name.replace('_', ' ')} must be True or False, not {shown}", field=name)
