"""Which pipeplan this is."""

from __future__ import annotations

import sys


def version() -> str:
    """Of the package that runs here, which may be another than the one installed; what runs elsewhere must be the same."""
    return str(sys.modules[__package__.partition(".")[0]].__version__)
