"""Keeps a user's own settings of matplotlib out of a process of ours."""

from __future__ import annotations

import logging
import os
import sys
from importlib.util import find_spec
from pathlib import Path


def keep_out_users_settings() -> None:
    """Have matplotlib, once it is imported, read neither a matplotlibrc nor an ``MPLBACKEND`` of the user.

    A backend that does not exist or a matplotlibrc that cannot be read would end in an error, or in messages on stderr.
    """
    if "matplotlib" in sys.modules:
        return
    os.environ["MPLBACKEND"] = "agg"
    found = find_spec("matplotlib")
    if found is not None and found.origin is not None:
        os.environ["MATPLOTLIBRC"] = str(Path(found.origin).parent / "mpl-data" / "matplotlibrc")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
